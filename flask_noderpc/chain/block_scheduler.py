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
    by_hand: bool = False
    """Whether no block is made but by :meth:`Producer.produce`."""

    @property
    def begins_alone(self) -> bool:
        """True if the first block is made without a transaction."""
        return not self.by_hand and (self.empty_blocks or self.proof_blocks)

    @property
    def at_once(self) -> bool:
        """Whether a block is made as soon as a transaction waits."""
        quick = self.interval_s <= _SOON_S
        return quick and not self.by_hand and not self.empty_blocks


class BlockScheduler:
    """Makes blocks in a thread after :meth:`start`, while the lease is its producer's."""

    def __init__(self, producer: Producer, store: ChainStore, pace: BlockSchedule) -> None:
        self.producer = producer
        self.pace = pace
        self._store = store
        # The lease is looked after this often; a stop need not wait longer either.
        self._patience = min(pace.lease_s / 3, _MAX_WAIT_S)
        self._last_block_at = 0.0
        self.complaint = ""
        """Why the thread makes no block; empty while it does, or none is due."""
        self._failed = False
        self._stopping = threading.Event()
        self._repaced = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def makes_blocks_at_once(self) -> bool:
        """Whether its thread makes a block as soon as a transaction waits."""
        return bool(self._threads) and self.pace.at_once

    @property
    def is_running(self) -> bool:
        """Whether the thread makes blocks by itself."""
        return bool(self._threads) and not self.pace.by_hand

    def reschedule(self, pace: BlockSchedule) -> None:
        """Produce at another pace from now on."""
        self.pace = pace
        self._repaced.set()

    def start(self) -> None:
        """Produce at the pace that is set, for as long as the lease is ours."""
        self._stopping.clear()
        self._threads = [
            threading.Thread(target=work, name=f"noderpc-{name}", daemon=True)
            for name, work in (("producer", self._run), ("lease", self._keep_lease))
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish the block at hand, and give the lease back."""
        self._stopping.set()
        self._repaced.set()
        threads, self._threads = self._threads, []
        for thread in threads:
            thread.join()
        self.producer.release_lease_and_stop(self.complaint)

    def _keep_lease(self) -> None:
        while not self._stopping.wait(self.pace.lease_s / 3):
            self.producer.keep_lease()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._turn()
                self.complaint = ""
            except BlockNotExecuted as error:
                # Nobody else knows what not to propose again. The next shows whether that
                # was the fault, even where it is empty.
                self._failed = True
                self._log_failure(error)
                self._stopping.wait(self._patience)
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
        self.producer.release_lease_and_stop(self.complaint)
        self._stopping.wait(max(self.pace.interval_s, self._patience))

    def _turn(self) -> None:
        """One look at whether a block is due."""
        held = self.producer.hold_lease()
        self._repaced.clear()
        pace = self.pace
        if not held or pace.by_hand:
            self._pause(self._patience)
            return
        early = self._last_block_at + pace.interval_s - time.monotonic()
        if early > 0:
            self._pause(min(early, self._patience))
            return
        due = self._owes_a_block() or self._is_wanted()
        # What came to wait may have come after the pace was changed.
        if due and self.pace is pace:
            self._failed = False
            self._last_block_at = time.monotonic()
            self.producer.produce()
            # Whoever makes one by hand has a turn too, however often blocks are made.
            self._stopping.wait(_YIELD_S)

    def _is_wanted(self) -> bool:
        """Whether something waits that goes into a block; waits for it a while."""
        # It may wait twice, and then the lease is looked after.
        patience = self._patience / 2
        if not self._store.wait_for_pending(patience):
            return False
        seen = self._store.latest_pending()
        if self.producer.would_take_any():
            return True
        # All of it waits for what is not there: an empty block would not help.
        self._store.wait_for_pending_after(seen, patience)
        return False

    def _pause(self, seconds: float) -> None:
        """Wait, unless there is another pace now or an end."""
        if not self._stopping.is_set():
            self._repaced.wait(seconds)

    def _owes_a_block(self) -> bool:
        """Whether a block is due though no transaction waits."""
        if self.pace.empty_blocks or self._failed:
            return True
        if not self.pace.proof_blocks:
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
