"""When blocks are made: a thread that has its producer make one whenever one is due."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from ..backends.base.store import ChainStore
from ..errors import BackendError, BlockNotExecuted, StoreError
from .producer import Producer

log = logging.getLogger("flask_noderpc.producer")

_MAX_WAIT_S = 1.0

# No longer than whoever sends a transaction would wait for its block.
_SOON_S = 0.1

_YIELD_S = 0.001

AT_ONCE_S = 0.0
"""The interval of a chain that makes a block for each transaction."""


@dataclass(frozen=True, slots=True)
class BlockSchedule:
    """How often blocks are made, and how long a silent producer keeps its lease."""

    interval_s: float = 1.0
    empty_blocks: bool = False
    proof_blocks: bool = False
    """Whether a new hash of the application's state gets a block that carries it, even an
    empty one."""
    lease_s: float = 3.0
    manual: bool = False
    """Whether no block is made but by :meth:`Producer.produce`."""

    @property
    def begins_alone(self) -> bool:
        """True if the first block is made without a transaction."""
        return not self.manual and (self.empty_blocks or self.proof_blocks)

    @property
    def at_once(self) -> bool:
        """Whether a block is made as soon as a transaction waits."""
        quick = self.interval_s <= _SOON_S
        return quick and not self.manual and not self.empty_blocks


class BlockScheduler:
    """Makes blocks in a thread after :meth:`start`, while the lease is its producer's."""

    def __init__(self, producer: Producer, store: ChainStore, schedule: BlockSchedule) -> None:
        self.producer = producer
        self.schedule = schedule
        self._store = store
        # The lease is looked after this often; a stop need not wait longer either.
        self._max_wait_s = min(schedule.lease_s / 3, _MAX_WAIT_S)
        self._last_block_at = 0.0
        self.complaint = ""
        """Why the thread makes no block; empty while it does, or none is due."""
        self._failed = False
        self._stopping = threading.Event()
        self._rescheduled = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def makes_blocks_at_once(self) -> bool:
        """Whether its thread makes a block as soon as a transaction waits."""
        return bool(self._threads) and self.schedule.at_once

    @property
    def is_running(self) -> bool:
        """Whether the thread makes blocks by itself."""
        return bool(self._threads) and not self.schedule.manual

    def reschedule(self, schedule: BlockSchedule) -> None:
        """Produce at another pace from now on."""
        self.schedule = schedule
        self._rescheduled.set()

    def start(self) -> None:
        """Produce at the pace that is set, for as long as the lease is ours."""
        self._stopping.clear()
        self._threads = [
            threading.Thread(target=work, name=f"noderpc-{name}", daemon=True)
            for name, work in (("producer", self._run), ("lease", self._renew_lease))
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish the block at hand, and give the lease back."""
        self._stopping.set()
        self._rescheduled.set()
        threads, self._threads = self._threads, []
        for thread in threads:
            thread.join()
        self.producer.release_lease(self.complaint)

    def _renew_lease(self) -> None:
        while not self._stopping.wait(self.schedule.lease_s / 3):
            self.producer.renew_lease()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._produce_if_due()
                self.complaint = ""
            except BlockNotExecuted as error:
                # Nobody else knows what not to propose again. The next shows whether that
                # was the fault, even where it is empty.
                self._failed = True
                self._log_failure(error)
                self._stopping.wait(self._max_wait_s)
            except BackendError as error:
                self._log_failure(error)
                self._release_lease()
            except Exception:
                # The application is foreign code: its fault must not end the chain.
                log.exception("the application failed; the block is tried again")
                self.complaint = "the application failed; the server's log says why"
                self._release_lease()

    def _release_lease(self) -> None:
        """Let another process try, which may have what this one lacks."""
        self.producer.release_lease(self.complaint)
        self._stopping.wait(max(self.schedule.interval_s, self._max_wait_s))

    def _produce_if_due(self) -> None:
        """One look at whether a block is due."""
        held = self.producer.acquire_or_renew_lease()
        self._rescheduled.clear()
        schedule = self.schedule
        if not held or schedule.manual:
            self._pause(self._max_wait_s)
            return
        early = self._last_block_at + schedule.interval_s - time.monotonic()
        if early > 0:
            self._pause(min(early, self._max_wait_s))
            return
        due = self._is_empty_block_due() or self._has_includable_txs()
        # What came to wait may have come after the pace was changed.
        if due and self.schedule is schedule:
            self._failed = False
            self._last_block_at = time.monotonic()
            self.producer.produce()
            # Whoever makes one by hand has a turn too, however often blocks are made.
            self._stopping.wait(_YIELD_S)

    def _has_includable_txs(self) -> bool:
        """Whether something waits that goes into a block; waits for it a while."""
        # It may wait twice, and then the lease is looked after.
        patience = self._max_wait_s / 2
        if not self._store.wait_for_pending(patience):
            return False
        seen = self._store.latest_pending()
        if self.producer.has_includable_txs():
            return True
        # All of it waits for what is not there: an empty block would not help.
        self._store.wait_for_pending_after(seen, patience)
        return False

    def _pause(self, seconds: float) -> None:
        """Wait, unless there is another pace now or an end."""
        if not self._stopping.is_set():
            self._rescheduled.wait(seconds)

    def _is_empty_block_due(self) -> bool:
        """Whether a block is due though no transaction waits."""
        if self.schedule.empty_blocks or self._failed:
            return True
        if not self.schedule.proof_blocks:
            return False
        # CometBFT: consensus/state.go, needProofBlock.
        height = self._store.latest_height()
        if height == 0:
            return True
        written = self._store.block_meta(height).header.app_hash
        return self._store.results(height).app_hash != written

    def _log_failure(self, error: BackendError) -> None:
        # Where the store lies is for the log alone.
        complaint = error.reason if isinstance(error, StoreError) else str(error)
        # Said once, not once a turn.
        if complaint != self.complaint:
            log.error("no block is made: %s", error)
        self.complaint = complaint
