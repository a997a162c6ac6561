"""Feed: a thread that polls for new heights or mempool transactions and delivers them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from ..backends.base.capabilities import Mempool
from ..backends.base.reads import ChainReads
from ..errors import BackendError, ResultNotFound

log = logging.getLogger("flask_noderpc.events")

# Seconds between two checks whether there are subscribers, and pause after an error.
_POLL_S = 0.25
# Maximum number of mempool transactions per read.
_BATCH = 100
# Maximum seconds for which stop() waits for the thread, which may be blocked in the backend.
_STOP_TIMEOUT_S = 2.0


class Source(Protocol):
    """A growing sequence of items with an integer cursor: a height, or a mempool cursor."""

    def now(self) -> int:
        """Return the cursor of the newest item."""

    def poll(self, after: int, timeout_s: float) -> int:
        """Deliver the next items that arrive before the timeout; return the new cursor."""


class HeightSource:
    """Source of committed heights, delivered in order and without gaps.

    After a reorg of a test chain, replaced heights are delivered again. ``refute`` is called
    with a reason if the results of the last delivered height turn out to be wrong, or are
    missing. ``begin`` is called with the height after which delivery begins, and ``revert``
    with the height after which it begins again; both also get the number of the last reorg.
    """

    def __init__(
        self,
        reads: ChainReads,
        deliver: Callable[[int], None],
        refute: Callable[[str], None] = lambda reason: None,
        begin: Callable[[int, int], None] = lambda height, reorg: None,
        revert: Callable[[int, int], None] = lambda height, reorg: None,
    ) -> None:
        self._reads = reads
        self._deliver, self._refute = deliver, refute
        self._begin, self._revert = begin, revert
        self._delivered = 0
        self._reorgs = self._refuted = 0

    def now(self) -> int:
        """Return the latest height."""
        self._reorgs, _ = self._reads.reorgs_since(0)
        self._refuted, _ = self._reads.refuted_since(0)
        latest = self._reads.latest_height()
        self._begin(latest, self._reorgs)
        return latest

    def poll(self, after: int, timeout_s: float) -> int:
        """Deliver the next height if it arrives before the timeout; return the new cursor."""
        latest = self._reads.wait_for_height(after, timeout_s)
        reorgs, lowest = self._reads.reorgs_since(self._reorgs)
        self._refuted, refuted = self._reads.refuted_since(self._refuted)
        if self._delivered in refuted:
            self._refute(f"the next header refuted the results of block {self._delivered}")
        if lowest is not None:
            self._revert(min(after, lowest), reorgs)
        self._reorgs = reorgs
        if lowest is not None:
            return min(after, lowest)
        if latest <= after:
            return after
        # The chain may begin above height 1.
        height = max(after + 1, self._reads.base_height())
        self._delivered = height
        try:
            self._deliver(height)
        except ResultNotFound:
            if self._reads.reorgs_since(self._reorgs)[1] is not None:
                # The block was replaced since; the next poll handles that.
                return after
            self._refute(f"the results of block {height} are missing: no node returned them")
        return height


class MempoolSource:
    """Source of transactions that enter the mempool, each delivered once."""

    def __init__(
        self, mempool: Callable[[], Mempool], deliver: Callable[[Sequence[bytes]], None]
    ) -> None:
        self._mempool = mempool
        self._deliver = deliver

    def now(self) -> int:
        """Return the cursor of the newest transaction."""
        return self._mempool().latest_pending()

    def poll(self, after: int, timeout_s: float) -> int:
        """Deliver the transactions that arrive before the timeout; return the new cursor."""
        if not self._mempool().wait_for_pending_after(after, timeout_s):
            return after
        # If all new transactions have left the mempool, the next poll continues after the
        # latest cursor. Read it first: a transaction that arrives between the two reads would
        # be skipped otherwise.
        latest = self._mempool().latest_pending()
        arrived = self._mempool().arrived_after(after, _BATCH)
        self._deliver([tx for _, tx in arrived])
        return arrived[-1][0] if arrived else latest


class Feed:
    """Polls a source in a thread that :meth:`follow` starts. The thread ends when
    ``is_followed`` returns false."""

    def __init__(self, source: Source, is_followed: Callable[[], bool]) -> None:
        self._source = source
        self._is_followed = is_followed
        self._lock = threading.Lock()
        self._stopped = False
        self._pid = 0
        self._token: object = None
        """Object that identifies the polling thread."""
        self._thread: threading.Thread | None = None

    def follow(self) -> None:
        """Start delivering items that are added from now on, unless the thread is running or
        the feed was stopped."""
        with self._lock:
            is_running = self._token is not None and self._pid == os.getpid()
            if self._stopped or is_running:
                return
            after = self._source.now()
            self._token, self._pid = object(), os.getpid()
            self._thread = threading.Thread(
                target=self._run, args=(self._token, after), name="noderpc-feed", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Stop permanently; a delivery in progress is finished."""
        with self._lock:
            self._stopped = True
            self._token = None
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_STOP_TIMEOUT_S)

    def _run(self, token: object, after: int) -> None:
        while self._is_active(token):
            try:
                after = self._source.poll(after, _POLL_S)
            except Exception as error:
                # Retry after any error: events are only delayed, and not lost.
                unexpected = None if isinstance(error, BackendError) else error
                log.error(
                    "the event feed failed, and retries from cursor %s: %s",
                    after,
                    error,
                    exc_info=unexpected,
                )
                threading.Event().wait(_POLL_S)

    def _is_active(self, token: object) -> bool:
        # Decide under the lock, so that a subscription that comes later starts a new thread.
        with self._lock:
            if self._token is token and not self._is_followed():
                self._token = None
            return self._token is token
