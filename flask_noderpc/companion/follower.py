"""Follow the head of a chain into a store, and backfill the store at the same time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

from ..backends.sql.lease import Lease
from ..backends.sql.store import ChainStore
from ..domain.network import BackfillProgress
from ..errors import (
    BackendError,
    Busy,
    NodeRPCError,
    StoreError,
    UpstreamError,
    UpstreamUnavailable,
)
from . import shared_state
from .agreement import agree, check_chain
from .beginning import FetchOptions, begin
from .comparison import Comparison
from .genesis import GenesisThread
from .head_appender import HeadAppender
from .heads import Heads
from .history import History
from .lease import LeaseTaken, held_lease
from .pool import Upstreams
from .progress import ShownProgress
from .threads import in_background
from .ticker import Ticker

log = logging.getLogger("flask_noderpc.companion")

_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.5, 15.0
# Maximum pause until the backfill asks again for blocks that all nodes lack, as an upstream
# may be replaced by one that has them.
_MAX_LATER_S = 60.0
# A poll takes about this many calls, which limits polling under a rate limit. Polls are this
# many times rarer while notifications arrive.
_CALLS_PER_POLL, _LIVE_POLL = 4, 4


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """Options for following a chain."""

    fetch: FetchOptions = field(default_factory=FetchOptions)
    poll_s: float = 0.5
    """Seconds between polls for the nodes' height while no notifications arrive."""
    head_delay: int = 0
    """Number of blocks by which the store's head stays behind the nodes' head."""
    lowest: int = 1
    """Lowest height to fetch."""


class Follower:
    """Follows the nodes of a chain in background threads, while it holds the store's lease.

    After an error it starts again, once the lease is free. ``emit_refuted`` is called with
    each height whose results a header refutes.
    """

    def __init__(
        self,
        store: ChainStore,
        upstreams: Upstreams,
        options: FollowOptions,
        emit_refuted: Callable[[int], None] = lambda height: None,
    ) -> None:
        self._store, self._upstreams, self._options = store, upstreams, options
        self._stopped = upstreams.stopped
        self._refuted = 0
        self._ticker: Ticker | None = None
        self._emit_refuted = emit_refuted
        self._compare_older: Callable[[int], None] = lambda height: None
        self._dialect = ""
        self._stored_refused: dict[str, str] | None = None
        upstreams.on_refused = self._store_refused
        fetch = options.fetch
        upstreams.check = partial(check_chain, store, fetch.chain_id)
        self._appender = HeadAppender(store, upstreams, fetch, options.head_delay)
        self._risk = ""
        self._reported = ""
        self._thread = threading.Thread(target=self._run, name="noderpc-follow", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and release the lease."""
        self._upstreams.stop()
        if self._ticker is not None:
            self._ticker.wake()
        self._thread.join()

    def _run(self) -> None:
        with closing(self._appender):
            self._follow_until_stopped()

    def _follow_until_stopped(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                self._follow()
            except LeaseTaken as error:
                # Waiting for the lease took long enough: try again without a pause.
                log.debug("%s", error)
                continue
            except NodeRPCError as error:
                if self._stopped.is_set():
                    return
                self._report(error)
            except Exception:
                log.exception("following the chain stopped by a bug, it starts again soon")
            if time.monotonic() - began > _MAX_PAUSE_S:
                pause = _FIRST_PAUSE_S
            self._stopped.wait(pause)
            pause = min(2 * pause, _MAX_PAUSE_S)

    def _report(self, error: NodeRPCError) -> None:
        """Log an error after which following starts again; log it once while it repeats."""
        reason = str(error)
        if isinstance(error, UpstreamUnavailable):
            reason += "; check that the node runs, and --upstream (NODERPC_UPSTREAM)"
        level = logging.DEBUG if reason == self._reported else logging.ERROR
        self._reported = reason
        log.log(level, "following the chain stopped, it starts again soon: %s", reason)

    def _follow(self) -> None:
        """Follow the chain until an error, or until the follower is stopped."""
        fetch = self._options.fetch
        with held_lease(self._store, self._stopped) as lease:
            self._warn_of_loss()
            self._stored_refused = None
            self._store_refused()
            self._refuted, _ = self._store.reads.refuted_since(0)
            agreed = agree(self._store, self._upstreams, fetch.chain_id, fetch.trust)
            self._reported = ""
            head = agreed.latest - 1 - self._options.head_delay
            begin(self._store, self._upstreams, agreed, max(1, head), fetch)
            ended = threading.Event()
            history = History(self._store, self._upstreams, fetch.jobs, fetch.unchecked, ended)
            self._appender.begin(history.gaps)
            comparison = Comparison(self._store, self._upstreams, ended)
            self._compare_older = comparison.add_older
            filling = threading.Thread(
                target=self._fill_in_background,
                args=(ended, history),
                name="noderpc-backfill",
                daemon=True,
            )
            filling.start()
            usable = self._upstreams.usable_readers()
            ticker = self._ticker = Ticker(
                {each.name: each.node.address for each in usable}, ended
            )
            ticker.start()
            comparison.start()
            genesis = GenesisThread(self._store, self._upstreams, ended)
            genesis.start()
            try:
                self._follow_head(lease, ticker, comparison)
            finally:
                ended.set()
                ticker.close()
                comparison.close()
                genesis.close()
                filling.join()

    def _warn_of_loss(self) -> None:
        """Log a warning once if a failover of the database may lose stored blocks."""
        risk = self._store.risk_of_loss()
        if risk != self._risk:
            self._risk = risk
            log.warning("%s", risk)

    def _store_refused(self) -> None:
        """Store the names of refused nodes for the serving processes, if they have changed."""
        refused = dict(self._upstreams.refused)
        if refused == self._stored_refused:
            return
        try:
            shared_state.set_refused_upstreams(self._store, refused)
            self._stored_refused = refused
        except BackendError as error:
            log.warning(
                "the list of refused upstream nodes is not stored, so other processes may still"
                " ask them: %s",
                error,
            )

    def _note_refuted(self) -> None:
        self._refuted, heights = self._store.reads.refuted_since(self._refuted)
        for height in heights:
            self._emit_refuted(height)

    def _store_dialect(self) -> None:
        """Store the dialect of the nodes, for processes that start while no node responds."""
        names = {reader.node.known_dialect for reader in self._upstreams.usable_readers()} - {
            ""
        }
        if self._dialect in names or not names:
            # Keep the dialect while any node has it: nodes are upgraded one after the other.
            return
        name = self._dialect = min(names)
        identity = self._store.identity()
        known = identity.dialect if identity else ""
        if known != name:
            if known:
                log.warning(
                    "the upstream nodes' dialect changed from %s to %s; noderpc start serves it"
                    " now, restart an app to serve it",
                    known,
                    name,
                )
            self._store.set_dialect(name)

    def _follow_head(self, lease: Lease, ticker: Ticker, comparison: Comparison) -> None:
        heads, name = Heads(self._upstreams), ""
        while not self._stopped.is_set():
            heads.ask(self._store.reads.latest_height() + self._options.head_delay, name)
            self._store_dialect()
            # Store the list again, as some refused nodes are accepted after a pause.
            self._store_refused()
            if self._appender.append(heads, lease):
                # Compare the block before the head, which nodes that lag one block have as
                # well.
                comparison.add(self._store.reads.latest_height() - 1)
                self._note_refuted()
            known = self._store.reads.latest_height() + self._options.head_delay
            name = ticker.wait(self._poll_s(ticker), known)

    def _poll_s(self, ticker: Ticker) -> float:
        """Return the seconds until the next poll if no notification arrives."""
        seconds = self._options.poll_s
        if ticker.is_live() and not self._appender.is_refused:
            seconds *= _LIVE_POLL
        rates = [each.node.limits.rate for each in self._upstreams.usable_readers()]
        return max(seconds, *(_CALLS_PER_POLL / rate for rate in rates if rate), 0.0)

    def _fill_to(self, low: int, history: History, reported: int) -> int:
        """Backfill the store down to height ``low``.

        If the nodes' lowest block is higher, log and return its height; it is not logged again
        if it was ``reported``. Otherwise return ``reported``.
        """
        base = self._store.reads.base_height()
        shown = ShownProgress(self._store, base - low, self._compare_older)
        history.fill(base - 1, low, shown.add)
        reached = self._store.reads.base_height()
        if reached == low or history.has_ended():
            return reported
        shown.end()
        if reached != reported:
            log.info("the nodes have no blocks below %d: they are asked again later", reached)
        return reached

    def _note_pause(self, error: NodeRPCError) -> None:
        """Log the reason why the backfill pauses, and store it for the serving processes."""
        is_passing = isinstance(error, UpstreamError | Busy | StoreError)
        log.log(
            logging.WARNING if is_passing else logging.ERROR,
            "the backfill pauses and continues soon: %s",
            error,
        )
        progress = shared_state.backfill(self._store)
        if progress is not None and not isinstance(error, StoreError):
            stands = replace(progress, rate=0.0, reason=str(error))
            shared_state.set_backfill(self._store, stands)

    def _fill_in_background(self, ended: threading.Event, history: History) -> None:
        with in_background(ended):
            self._fill(ended, history)

    def _fill(self, ended: threading.Event, history: History) -> None:
        """Backfill the store, and ask again for missing results, until ``ended`` is set.

        After an error, or if the nodes lack older blocks, try again after a pause.
        """
        store = self._store
        low = max(self._options.lowest, store.reads.initial_height())
        if store.reads.base_height() > low:
            # Store the number of missing blocks first: filling the gaps may take long, and the
            # store would look complete meanwhile.
            left = BackfillProgress(left=store.reads.base_height() - low)
            shared_state.set_backfill(store, left)
        pause, reported = _FIRST_PAUSE_S, 0
        while not ended.is_set():
            base = store.reads.base_height()
            try:
                history.retry()
                if base > low:
                    reported = self._fill_to(low, history, reported)
            except NodeRPCError as error:
                if not ended.is_set() and not self._stopped.is_set():
                    self._note_pause(error)
            except Exception:
                log.exception("the backfill pauses because of a bug, and continues soon")
            # End the decoding processes, which are only used by a backfill.
            self._upstreams.decoders.close()
            if store.reads.base_height() < base:
                pause = _FIRST_PAUSE_S
            ended.wait(pause)
            pause = min(2 * pause, _MAX_LATER_S)
