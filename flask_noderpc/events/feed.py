"""The feed: follows what grows, such as heights, for as long as anybody wants to know."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from ..backends.base.backend import ChainBackend
from ..errors import BackendError

log = logging.getLogger("flask_noderpc.events")

# How often the feed looks whether it is still wanted, and how long it waits after a fault.
_LOOK_S = 0.25
# How many waiting transactions are read in one go.
_SLICE = 100
# How long stop() waits for a thread, which a backend may keep.
_STOP_S = 2.0


class Source(Protocol):
    """Something that grows, and a place in it: a height, or a number in the mempool."""

    def now(self) -> int:
        """The place behind all that there is."""

    def poll(self, after: int, patience_s: float) -> int:
        """Hand on what comes next, if anything does in time; the place behind it."""


class HeightSource:
    """The committed heights, each handed on once it is there, in order, without a gap.

    A chain of tests may take blocks back: what it has instead is handed on again.
    """

    def __init__(self, backend: ChainBackend, deliver: Callable[[int], None]) -> None:
        self._backend = backend
        self._hand_on = deliver
        self._rewinds = 0

    def now(self) -> int:
        """The latest height."""
        self._rewinds, _ = self._backend.reorgs_since(0)
        return self._backend.latest_height()

    def poll(self, after: int, patience_s: float) -> int:
        """Hand on one more height, if there is one."""
        latest = self._backend.wait_for_height(after, patience_s)
        self._rewinds, left = self._backend.reorgs_since(self._rewinds)
        if left is not None:
            return min(after, left)
        if latest <= after:
            return after
        # The first height of a chain need not be 1.
        height = max(after + 1, self._backend.base_height())
        self._hand_on(height)
        return height


class MempoolSource:
    """The transactions that come to wait for a block, each handed on once."""

    def __init__(
        self, backend: ChainBackend, deliver: Callable[[Sequence[bytes]], None]
    ) -> None:
        self._backend = backend
        self._hand_on = deliver

    def now(self) -> int:
        """The cursor of the newest."""
        return self._backend.latest_pending()

    def poll(self, after: int, patience_s: float) -> int:
        """Hand on those that have come, if any have."""
        if not self._backend.wait_for_pending_after(after, patience_s):
            return after
        # Asked first: what was dropped already is behind this, and not found.
        latest = self._backend.latest_pending()
        found = self._backend.arrived_after(after, _SLICE)
        self._hand_on([tx for _, tx in found])
        return found[-1][0] if found else latest


class Feed:
    """Follows a source in a thread of its own, from :meth:`follow` until ``wanted`` says no."""

    def __init__(self, source: Source, wanted: Callable[[], bool]) -> None:
        self._source = source
        self._wanted = wanted
        self._lock = threading.Lock()
        self._stopped = False
        self._pid = 0
        self._token: object = None
        """Held by the one thread that follows."""
        self._thread: threading.Thread | None = None

    def follow(self) -> None:
        """See to it that whatever comes from now on is handed on, unless stopped."""
        with self._lock:
            is_followed = self._token is not None and self._pid == os.getpid()
            if self._stopped or is_followed:
                return
            after = self._source.now()
            self._token, self._pid = object(), os.getpid()
            self._thread = threading.Thread(
                target=self._run, args=(self._token, after), name="noderpc-feed", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Read nothing more, for good; what is being handed on is finished."""
        with self._lock:
            self._stopped = True
            self._token = None
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_STOP_S)

    def _run(self, token: object, after: int) -> None:
        while self._goes_on(token):
            try:
                after = self._source.poll(after, _LOOK_S)
            except Exception as error:
                # Whatever a backend raises: subscribers wait, and miss nothing.
                unforeseen = None if isinstance(error, BackendError) else error
                log.error("events wait at %s: %s", after, error, exc_info=unforeseen)
                threading.Event().wait(_LOOK_S)

    def _goes_on(self, token: object) -> bool:
        # Decided under the lock: whoever subscribes after this starts a new thread.
        with self._lock:
            if self._token is token and not self._wanted():
                self._token = None
            return self._token is token
