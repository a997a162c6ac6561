"""Health of the embedded chain: does a process produce its blocks, and in time."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..backends.base.health import Health, late_age
from ..backends.sql.lease import LeaseState
from ..backends.sql.store import ChainStore
from ..domain.time import SECOND
from .block_scheduler import BlockSchedule, BlockScheduler

# How long a lapsed lease may stay without a new owner before the chain counts as not ready.
_GRACE_S = 5.0


class ChainHealth(Health):
    """Health of a chain whose blocks this process produces, or another one.

    ``clock`` returns the chain's time; ``scheduler`` is that of this process, if it may produce
    blocks. Blocks are never late while ``is_timed`` is false, as on a development chain whose
    clock is moved.
    """

    def __init__(
        self,
        store: ChainStore,
        schedule: BlockSchedule,
        scheduler: BlockScheduler | None,
        clock: Callable[[], int],
        *,
        is_timed: bool,
    ) -> None:
        self._store, self._schedule, self._scheduler = store, schedule, scheduler
        self._clock, self._is_timed = clock, is_timed

    def problem(self) -> str:
        if self._scheduler and (reason := self._scheduler.producer.not_begun()):
            return f"no block is produced yet: {reason}"
        return self.not_producing() or self._late()

    def not_producing(self) -> str:
        """Return the reason why no blocks are produced, or an empty string if they are."""
        # The lease uses the system's time, not the chain's clock.
        return _not_producing(self._store.lease_state(), self._scheduler, time.time_ns())

    def _late(self) -> str:
        """Return the reason why the newest block is too old, or an empty string."""
        schedule = self._schedule
        height = self._store.reads.latest_height()
        if not height or not schedule.empty_blocks or schedule.manual or not self._is_timed:
            return ""
        newest = self._store.reads.block_meta(height).header.time
        age = late_age(self._clock(), newest, schedule.interval_s)
        if age is None or self._is_timed_elsewhere():
            return ""
        return (
            f"no block is produced: the newest block, {height}, is {age:.0f} seconds old, and"
            f" one is due every {schedule.interval_s:g} seconds; is a process running that"
            " produces blocks?"
        )

    def _is_timed_elsewhere(self) -> bool:
        """Return true if another process holds the lease, and this one only serves: the chain
        need not have its interval."""
        state = self._store.lease_state()
        is_running = self._scheduler is not None and self._scheduler.is_running
        return not is_running and bool(state.owner) and time.time_ns() < state.expires


def _not_producing(state: LeaseState, block_scheduler: BlockScheduler | None, now: int) -> str:
    """Return the reason why no blocks are produced, or an empty string if they are.

    A process that can't produce releases the lease, so that another may acquire it.
    """
    is_ours = block_scheduler is not None and state.owner == block_scheduler.producer.owner
    if is_ours and block_scheduler is not None and not block_scheduler.is_running:
        # Blocks are produced manually, and the lease lapses between them.
        return ""
    if state.owner and not is_ours and now < state.expires:
        return ""
    last_error = (block_scheduler.last_error if block_scheduler else "") or state.last_error
    if last_error:
        return f"no block is produced: {last_error}"
    late_s = (now - state.expires) // SECOND
    if state.owner and late_s > _GRACE_S:
        return (
            "no block is produced: the producer does not answer, its lease expired"
            f" {late_s} seconds ago, and no process took it over"
        )
    return ""
