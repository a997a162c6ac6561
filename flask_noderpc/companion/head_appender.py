"""Append the nodes' new blocks to a store, and report why the head can't advance."""

from __future__ import annotations

import logging
import time

from .. import block_log
from ..backends.sql.lease import Lease
from ..backends.sql.store import ChainStore
from ..domain.time import SECOND
from ..errors import UpstreamError, UpstreamRefused, UpstreamUnavailable
from . import shared_state
from .beginning import FetchOptions
from .gaps import RESULTS, Gaps
from .growth import Growth
from .head_age import HeadAge
from .heads import Heads
from .pool import Upstreams
from .trust import CannotFollow, HeaderAhead

log = logging.getLogger("flask_noderpc.companion")

# Seconds for which missing results of the next block are awaited: a node may execute an
# epoch's last block for a minute, and lacks its results until then (cometbft#564).
_MAX_REFUSED_S = 120.0
_STANDSTILL_S, _WARN_EACH_S = 15.0, 60.0
# The stored lead of the next block over the clock is updated each time it shrinks by this many
# seconds, for health reports of other processes.
_STEP_S = 5


class HeadAppender:
    """Appends new blocks to a store, in the thread that follows the head.

    The store's head stays ``head_delay`` blocks behind the nodes' head.
    """

    def __init__(
        self,
        store: ChainStore,
        upstreams: Upstreams,
        options: FetchOptions,
        head_delay: int,
    ) -> None:
        self._store, self._upstreams = store, upstreams
        self._trust, self._head_delay = options.trust, head_delay
        self._age = HeadAge(store, upstreams, options.trust, head_delay)
        self._growth = Growth(
            store,
            upstreams,
            options.trust,
            self._age,
            options.jobs,
            options.unchecked,
            proven_only=head_delay > 0,
        )
        self._gaps: Gaps
        self._refused_since: float | None = None
        self._standstill = ""
        self._ahead: shared_state.BlockAhead | None = None
        self._warned_at = -_WARN_EACH_S
        self._log = block_log.BlockLog()

    @property
    def is_refused(self) -> bool:
        """True while every node refuses the next block or its results."""
        return self._refused_since is not None

    def begin(self, gaps: Gaps) -> None:
        """Reset the reasons why the head can't advance. Heights without results are recorded
        in ``gaps``."""
        self._gaps, self._refused_since = gaps, None
        self._set_standstill("")
        self._set_ahead(None)

    def close(self) -> None:
        """Forget the link between the head and a trusted header."""
        self._growth.close()

    def append(self, heads: Heads, lease: Lease) -> bool:
        """Append the blocks up to the highest one of the nodes; return true if one was
        appended.

        Wait for 15 s if the head is too old to prove the next block, and for 1 s if that block
        is ahead of the clock. Raise the errors of :meth:`Growth.extend`.
        """
        try:
            self._age.note()
            is_extended = self._extend(heads, lease)
        except CannotFollow as error:
            if str(error) != self._standstill:
                log.error("new blocks are not stored: %s", error)
                self._set_standstill(str(error))
            self._upstreams.stopped.wait(_STANDSTILL_S)
            return False
        if self._standstill:
            self._set_standstill("")
        return is_extended

    def _extend(self, heads: Heads, lease: Lease) -> bool:
        delay = self._head_delay
        for height in heads.above(self._store.reads.latest_height() + delay):
            # A range is only stored as a whole, so append one block at a time after a refusal.
            before = self._store.reads.latest_height()
            last = before + 1 if self.is_refused else height - delay
            try:
                self._growth.extend(last, self._log_blocks, lease)
            except HeaderAhead as error:
                self._wait_for_clock(error)
                return self._store.reads.latest_height() > before
            except (UpstreamRefused, UpstreamUnavailable) as error:
                if not self._growth.may_step_over(error):
                    raise
                # The results are not available yet, or the node that reported this height
                # lacks the blocks: try the next lower reported height.
                heads.forget(height)
                self._note_refusal(error, lease)
            else:
                self._refused_since = None
                if self._ahead is not None:
                    self._set_ahead(None)
                return True
        return False

    def _wait_for_clock(self, error: HeaderAhead) -> None:
        """Wait for a second, after the next block was found to be ahead of the clock."""
        now, header = time.monotonic(), error.header
        ahead = (header.time - self._trust.clock()) // SECOND
        known = self._ahead
        if not known or known.height != header.height or known.seconds - ahead >= _STEP_S:
            self._set_ahead(shared_state.BlockAhead(header.height, ahead))
        if now - self._warned_at >= _WARN_EACH_S:
            self._warned_at = now
            log.warning("%s: the block is stored later; check this machine's clock", error)
        self._upstreams.stopped.wait(1.0)

    def _set_standstill(self, reason: str) -> None:
        self._standstill = reason
        shared_state.set_standstill_reason(self._store, reason)

    def _set_ahead(self, block: shared_state.BlockAhead | None) -> None:
        self._ahead = block
        shared_state.set_ahead(self._store, block)

    def _log_blocks(self, count: int) -> None:
        """Log the latest ``count`` blocks, and the age of the newest one."""
        if not block_log.is_enabled():
            return
        high = self._store.reads.latest_height()
        metas = self._store.reads.block_metas(high - count + 1, high)
        txs = sum(meta.tx_count for meta in metas)
        lag = max(0.0, time.time() - metas[0].header.time / SECOND)
        self._log.add(high - count + 1, high, {"txs": txs, "lag_seconds": lag})

    def _note_refusal(self, error: UpstreamError, lease: Lease) -> None:
        """Store the next block without its results if no node has returned them for 120 s;
        raise the error if no node returns the block itself."""
        now = time.monotonic()
        if self._refused_since is None:
            self._refused_since = now
        if now - self._refused_since <= _MAX_REFUSED_S:
            return
        try:
            reason = self._growth.step_over(lease)
        except (UpstreamRefused, UpstreamUnavailable):
            raise error from None
        if reason:
            self._gaps.note(self._store.reads.latest_height(), RESULTS, reason)
