"""Thread that calls the producer whenever a block is due, and the health of the chain: whether
a process produces its blocks in time."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..backends.base.health import Health, late_age
from ..backends.sql.lease import LeaseState
from ..backends.sql.store import ChainStore
from ..domain.time import SECOND
from ..errors import BackendError, BlockNotExecuted, StoreError
from .producer import Producer

log = logging.getLogger("flask_noderpc.producer")

_MAX_WAIT_S = 1.0

# Up to this block interval, a block counts as produced at once: senders can wait for it.
_SHORT_INTERVAL_S = 0.1

_YIELD_S = 0.001

AT_ONCE_S = 0.0
"""Block interval of a chain that produces a block as soon as it has a transaction."""


@dataclass(frozen=True, slots=True)
class BlockSchedule:
    """Conditions for producing blocks, and the duration of the lease."""

    interval_s: float = 1.0
    empty_blocks: bool = False
    proof_blocks: bool = False
    """True to produce a block after each change of the app hash, even if it is empty."""
    first_block: bool = False
    """True to produce the first block without a transaction."""
    lease_s: float = 3.0
    manual: bool = False
    """True to produce blocks only when :meth:`Producer.produce` is called."""

    @property
    def produces_first_block(self) -> bool:
        """True if the first block is produced without a transaction."""
        return not self.manual and (self.empty_blocks or self.proof_blocks or self.first_block)

    @property
    def at_once(self) -> bool:
        """True if a block is produced as soon as a transaction is pending."""
        is_short = self.interval_s <= _SHORT_INTERVAL_S
        return is_short and not self.manual and not self.empty_blocks


class BlockScheduler:
    """Thread that produces blocks after :meth:`start`, while its producer owns the lease."""

    def __init__(self, producer: Producer, store: ChainStore, schedule: BlockSchedule) -> None:
        self.producer = producer
        self.schedule = schedule
        self._store = store
        # Maximum pause of the thread: it checks the lease this often, and a stop takes no
        # longer.
        self._max_wait_s = min(schedule.lease_s / 3, _MAX_WAIT_S)
        # Not 0, which may be recent: a monotonic clock may start at 0 with the machine.
        self._last_block_at = -math.inf
        self.last_error = ""
        """Reason why the thread can't produce a block; empty if it can, or if no block is
        due."""
        self._failed = False
        self._awaited = False
        self._stopping = threading.Event()
        self._rescheduled = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def makes_blocks_at_once(self) -> bool:
        """True if the thread produces a block as soon as a transaction is pending."""
        return bool(self._threads) and self.schedule.at_once

    @property
    def is_running(self) -> bool:
        """True if the thread runs and its schedule is not manual."""
        return bool(self._threads) and not self.schedule.manual

    def reschedule(self, schedule: BlockSchedule) -> None:
        """Use another schedule from now on."""
        self.schedule = schedule
        self._rescheduled.set()

    def start(self) -> None:
        """Start the threads that produce blocks and renew the lease."""
        self._stopping.clear()
        self._threads = [
            threading.Thread(target=work, name=f"noderpc-{name}", daemon=True)
            for name, work in (("producer", self._run), ("lease", self._renew_lease))
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish the current block, end the threads, and release the lease."""
        self._stopping.set()
        self._rescheduled.set()
        threads, self._threads = self._threads, []
        for thread in threads:
            thread.join()
        self.producer.release_lease(self.last_error)

    def _renew_lease(self) -> None:
        while not self._stopping.wait(self.schedule.lease_s / 3):
            self.producer.renew_lease()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._produce_if_due()
                self.last_error = ""
            except BlockNotExecuted as error:
                # Keep the lease, because other processes don't know which transactions to
                # leave out. Produce the next block even if it is empty, to find out whether
                # they were the cause.
                self._failed = True
                self._log_failure(error)
                self._stopping.wait(self._max_wait_s)
            except BackendError as error:
                self._log_failure(error)
                self._release_lease()
            except Exception:
                # The application is third-party code: its bug must not end the thread.
                log.exception("the application raised an error; the block is executed again")
                self.last_error = "the application raised an error; see the server's log"
                self._release_lease()

    def _release_lease(self) -> None:
        """Release the lease so that another process may try, then wait."""
        self.producer.release_lease(self.last_error)
        self._stopping.wait(max(self.schedule.interval_s, self._max_wait_s))

    def _produce_if_due(self) -> None:
        """Produce a block if this process owns the lease and a block is due."""
        owns_lease = self.producer.acquire_or_renew_lease()
        self._rescheduled.clear()
        schedule = self.schedule
        if not owns_lease or schedule.manual or self._awaits_genesis_time():
            self._pause(self._max_wait_s)
            return
        early = self._last_block_at + schedule.interval_s - time.monotonic()
        if early > 0:
            self._pause(min(early, self._max_wait_s))
            return
        due = self._is_empty_block_due() or self._has_includable_txs()
        # Produce only if the schedule is still the same: the transaction may have been added
        # after a change to manual mining.
        if due and self.schedule is schedule:
            self._failed = False
            self._last_block_at = time.monotonic()
            self.producer.produce()
            # Pause, so that manual calls can acquire the producer's lock even if the interval
            # is very short.
            self._stopping.wait(_YIELD_S)

    def _awaits_genesis_time(self) -> bool:
        reason = self.producer.reason_not_begun()
        if reason and not self._awaited:
            log.warning("no block is produced yet: %s", reason)
        self._awaited = bool(reason)
        return self._awaited

    def _has_includable_txs(self) -> bool:
        """Return true if a block can include a pending transaction; wait for one up to the
        maximum pause."""
        if self.producer.is_frozen:
            self._pause(self._max_wait_s)
            return False
        # Use half the maximum pause, because this method may wait twice before the lease is
        # checked.
        timeout_s = self._max_wait_s / 2
        if not self._store.wait_for_pending(timeout_s):
            return False
        seen = self._store.mempool.latest_pending()
        if self.producer.has_includable_txs():
            return True
        # Produce no empty block if no pending transaction can be included yet, for example
        # because of a nonce gap.
        self._store.mempool.wait_for_pending_after(seen, timeout_s)
        return False

    def _pause(self, seconds: float) -> None:
        """Wait at most ``seconds`` until the schedule changes or the thread stops."""
        if not self._stopping.is_set():
            self._rescheduled.wait(seconds)

    def _is_empty_block_due(self) -> bool:
        """Return true if a block is due without a pending transaction."""
        if self.schedule.empty_blocks or self._failed:
            return True
        height, schedule = self._store.reads.latest_height(), self.schedule
        if height == 0 or schedule.manual or not schedule.proof_blocks:
            return height == 0 and schedule.produces_first_block
        # CometBFT: consensus/state.go, needProofBlock.
        written = self._store.reads.block_meta(height).header.app_hash
        results = self._store.reads.results(height)
        # An application may change its state in each block: an empty block must not trigger
        # another one, except the first one.
        is_first = height == self._store.reads.initial_height()
        return (is_first or bool(results.tx_results)) and results.app_hash != written

    def _log_failure(self, error: BackendError) -> None:
        # Clients see this error, so leave out the store's path, which is only for the log.
        last_error = error.reason if isinstance(error, StoreError) else str(error)
        # Log an error once, not at each attempt.
        if last_error != self.last_error:
            log.error("block production failed and will be tried again: %s", error)
        self.last_error = last_error


# Seconds after the expiry of a lease without a new owner until the chain counts as not ready.
_GRACE_S = 5.0


class ChainHealth(Health):
    """Health of a chain whose blocks this process or another one produces.

    ``clock`` returns the chain's time; ``scheduler`` is this process's block scheduler, if it
    may produce blocks. Blocks never count as late while ``is_timed`` is false, as on a
    development chain whose clock was changed.
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
        if self._scheduler and (reason := self._scheduler.producer.reason_not_begun()):
            return f"no block is produced yet: {reason}"
        return self.not_producing() or self._late()

    def not_producing(self) -> str:
        """Return the reason why no blocks are produced, or an empty string if blocks are
        produced."""
        # Pass the system's time, which leases use instead of the chain's clock.
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
            f" one is due every {schedule.interval_s:g} seconds; check whether a process is"
            " running that produces blocks"
        )

    def _is_timed_elsewhere(self) -> bool:
        """Return true if another process produces the blocks, whose block interval may differ
        from this process's setting."""
        state = self._store.lease_state()
        is_running = self._scheduler is not None and self._scheduler.is_running
        return not is_running and bool(state.owner) and time.time_ns() < state.expires


def _not_producing(state: LeaseState, block_scheduler: BlockScheduler | None, now: int) -> str:
    """Return the reason why no blocks are produced, or an empty string if blocks are produced.

    A process that can't produce blocks stores the reason when it releases the lease.
    """
    is_ours = block_scheduler is not None and state.owner == block_scheduler.producer.owner
    if is_ours and block_scheduler is not None and not block_scheduler.is_running:
        # Blocks are produced manually, so the lease may expire between two blocks.
        return ""
    if state.owner and not is_ours and now < state.expires:
        return ""
    last_error = (block_scheduler.last_error if block_scheduler else "") or state.last_error
    if last_error:
        return f"no block is produced: {last_error}"
    late_s = (now - state.expires) // SECOND
    if state.owner and late_s > _GRACE_S:
        return (
            "no block is produced: the lease of the process that produced blocks expired"
            f" {late_s} seconds ago, and no process has taken it over; start one"
        )
    return ""
