"""Write the progress of a backfill to the log, and to the store for the serving processes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from ..backends.sql.store import ChainStore
from ..domain.network import BackfillProgress
from . import shared_state

log = logging.getLogger("flask_noderpc.progress")

_STORE_EACH_S, _LOG_EACH_S = 1.0, 30.0
# After this many blocks, the results of one are compared with those of other nodes.
_SAMPLE_EACH = 1_000


class ShownProgress:
    """Counts the blocks of a backfill that has to fetch ``missing`` blocks.

    ``sample`` is called with the height of every thousandth block.
    """

    def __init__(self, store: ChainStore, missing: int, sample: Callable[[int], None]) -> None:
        self._store, self._missing, self._done = store, missing, 0
        self._sample = sample
        self._began = self._logged = self._stored = time.monotonic()

    def add(self, count: int) -> None:
        """Count ``count`` blocks that were just stored."""
        before, self._done = self._done, self._done + count
        if before // _SAMPLE_EACH < self._done // _SAMPLE_EACH:
            self._sample(self._store.reads.base_height())
        now, left = time.monotonic(), self._missing - self._done
        shown = BackfillProgress(self._done, left, self._done / max(0.001, now - self._began))
        if now - self._stored >= _STORE_EACH_S or left <= 0:
            self._stored = now
            shared_state.set_backfill(self._store, shown)
        if now - self._logged >= _LOG_EACH_S or left <= 0:
            self._logged = now
            log.info(
                "backfill: %d of %d blocks, %.0f a second, %.0f s left",
                shown.done,
                self._missing,
                shown.rate,
                shown.seconds_left,
            )

    def end(self) -> None:
        """Record that the backfill is over, as no node has lower blocks."""
        shared_state.set_backfill(self._store, BackfillProgress(self._done))
