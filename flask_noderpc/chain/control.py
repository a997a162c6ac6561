"""Control of an embedded development chain: mining, time, snapshots and state changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Protocol

from ..backends.base.capabilities import MAX_MINED, Control
from ..backends.sql.store import ChainStore
from ..domain.abci import ExecTxResult
from ..domain.time import SECOND
from ..errors import Busy, LeaseLost, TxRejected, ValueNotAllowed
from .block_scheduler import AT_ONCE_S, BlockScheduler
from .clock import ShiftedClock
from .producer import Producer

# Limit for all pending transactions: the highest LIMIT of SQLite.
_ALL = (1 << 63) - 1
_MAX_SNAPSHOTS = 10_000
# Name of this control in errors, as some chains can't do it: a block's time is the median of
# the times of the votes for the block before, so a chosen time needs new votes for that block.
_OTHER_TIME = "a block at a chosen time"


class SchedulerOwner(Protocol):
    """A chain that has a block scheduler."""

    def block_scheduler(self) -> BlockScheduler:
        """Return the scheduler; raise :exc:`~flask_noderpc.errors.StoreError` if the chain has
        no scheduler."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    height: int
    hash: bytes
    offset: int
    is_frozen: bool
    pending: tuple[bytes, ...]


class DevControl(Control):
    """Control of a chain that this process produces; snapshots are kept in memory."""

    def __init__(self, store: ChainStore, chain: SchedulerOwner, clock: ShiftedClock) -> None:
        self._store, self._chain, self._clock = store, chain, clock
        self._lock = threading.RLock()
        self._snapshots: dict[int, _Snapshot] = {}
        self._last_snapshot = 0

    def _block_scheduler(self) -> BlockScheduler:
        # Acquire the lease first: without it, changing the schedule would have no effect.
        block_scheduler = self._chain.block_scheduler()
        try:
            block_scheduler.producer.acquire_lease()
        except LeaseLost as error:
            cure = "only that process can control the chain: run one worker"
            raise LeaseLost(error.text, cure) from None
        return block_scheduler

    def _producer(self) -> Producer:
        return self._block_scheduler().producer

    def mine(self, count: int = 1, time: int | None = None, step: int | None = None) -> int:
        if count > MAX_MINED:
            raise ValueNotAllowed(
                f"blocks: expected at most {MAX_MINED} per call, got {count}; call this several"
                " times"
            )
        with self._lock:
            if time is not None:
                self.set_next_time(time)
            if not count:
                return self._store.reads.latest_height()
            if step:
                self._resigning_producer(_OTHER_TIME)
                now = max(self._clock.now(), self._last_time() * SECOND)
                self._clock.check(now + step * (count - 1) * SECOND)
            height = self._producer().produce_many(count, step)
            if step:
                self._clock.set(self._last_time() * SECOND)
            return height

    def continue_time(self, genesis_time: int) -> None:
        """Make the clock go on from the latest block, or without blocks from the genesis."""
        self._clock.begin(max(self._last_time() * SECOND, genesis_time))

    def _last_time(self) -> int:
        latest = self._store.reads.latest_height()
        return self._store.reads.block_meta(latest).header.time // SECOND if latest else 0

    def snapshot(self) -> int:
        with self._lock:
            frozen = self._producer().is_frozen
            if len(self._snapshots) >= _MAX_SNAPSHOTS:
                raise Busy(
                    f"{_MAX_SNAPSHOTS} snapshots exist, which is the maximum: revert to one,"
                    " which deletes it and all later ones"
                )
            self._last_snapshot += 1
            height = self._store.reads.latest_height()
            self._snapshots[self._last_snapshot] = _Snapshot(
                height, self._hash(height), self._clock.offset, frozen, self._pending()
            )
            return self._last_snapshot

    def _pending(self) -> tuple[bytes, ...]:
        return self._store.mempool.pending(_ALL).txs

    def _hash(self, height: int) -> bytes:
        """Return the hash of a block; empty if the store does not have the block."""
        is_stored = (
            self._store.reads.base_height() <= height <= self._store.reads.latest_height()
        )
        return self._store.reads.hash_at(height) if is_stored and height else b""

    def _resigning_producer(self, action: str) -> Producer:
        """Return the producer; raise ``KeyProtected`` if its keys must not sign a height
        twice, which ``action`` needs."""
        producer = self._producer()
        producer.check_development(action)
        return producer

    def revert(self, number: int) -> bool:
        with self._lock:
            producer = self._resigning_producer("a chain that goes back")
            snapshot = self._snapshots.get(number)
            # Compare the hash, as another process may have replaced the block meanwhile.
            if snapshot is None or self._hash(snapshot.height) != snapshot.hash:
                return False
            is_frozen = producer.is_frozen
            # Freeze the mempool until the snapshot is restored, so that no block includes
            # transactions meanwhile.
            self.freeze(True)
            try:
                producer.rewind(snapshot.height)
                self._clock.offset = snapshot.offset
                self._forget_failures()
                self._restore(snapshot.pending)
                is_frozen = snapshot.is_frozen
            finally:
                self.freeze(is_frozen)
            self._snapshots = {k: v for k, v in self._snapshots.items() if k < number}
            return True

    def reset(self) -> None:
        with self._lock:
            self._resigning_producer("a chain that begins again").rewind(0)
            self._clock.offset = 0
            self._forget_failures()
            self.freeze(False)
            self._snapshots.clear()

    def rollback(self, depth: int) -> None:
        with self._lock:
            height = self._store.reads.latest_height() - depth
            height = 0 if height < self._store.reads.initial_height() else height
            self._resigning_producer("a chain that goes back").rewind(height)
            self._forget_failures()
            self._snapshots = {k: v for k, v in self._snapshots.items() if v.height <= height}

    @contextmanager
    def manual_mining(self) -> Iterator[None]:
        with self._lock:
            block_scheduler = self._block_scheduler()
            schedule = block_scheduler.schedule
            block_scheduler.reschedule(replace(schedule, manual=True))
            try:
                yield
            finally:
                block_scheduler.reschedule(schedule)

    def _restore(self, pending: tuple[bytes, ...]) -> None:
        """Make these transactions the only pending ones."""
        self._store.drop_pending(self._pending())
        for tx in pending:
            # Skip a transaction that is no longer valid, for example if one on which it
            # depends is in a block already.
            with suppress(TxRejected):
                self._store.mempool.submit_local(tx, replaces=True)

    def _forget_failures(self) -> None:
        if self._store.abci is not None:
            self._store.abci.fail_next_tx(None)

    def shift(self, seconds: int) -> int:
        with self._lock:
            self._resigning_producer(_OTHER_TIME)
            # As in hardhat, increase the time from the last block's time, which is ahead of
            # the clock after many blocks in quick succession.
            behind = self._last_time() * SECOND - self._clock.now()
            self._clock.shift(max(0, behind) + seconds * SECOND)
            return self._clock.offset // SECOND

    def set_time(self, time: int) -> int:
        with self._lock:
            self._resigning_producer(_OTHER_TIME)
            self._clock.set(time * SECOND)
            return self._clock.offset // SECOND

    def set_next_time(self, time: int) -> None:
        with self._lock:
            last = self._last_time()
            if time <= last:
                raise ValueNotAllowed(
                    f"timestamp {time} is lower than or equal to the previous block's, {last}"
                )
            producer = self._resigning_producer(_OTHER_TIME)
            self._clock.set(time * SECOND)
            producer.next_time = time * SECOND

    def set_step(self, seconds: int | None) -> bool:
        producer = self._chain.block_scheduler().producer
        had_one = producer.step is not None
        if seconds is not None:
            producer.check_development(_OTHER_TIME)
        producer.step = seconds
        return had_one

    def set_interval(self, seconds: float | None) -> None:
        self._set(manual=not seconds, empty_blocks=True, interval_s=seconds or AT_ONCE_S)

    def interval(self) -> float | None:
        schedule = self._chain.block_scheduler().schedule
        is_timed = schedule.empty_blocks and not schedule.manual
        return schedule.interval_s if is_timed else None

    def set_automine(self, on: bool) -> None:
        self._set(manual=not on, empty_blocks=False, interval_s=AT_ONCE_S)

    def _set(self, *, manual: bool, empty_blocks: bool, interval_s: float) -> None:
        block_scheduler = self._block_scheduler()
        schedule = replace(
            block_scheduler.schedule,
            manual=manual,
            empty_blocks=empty_blocks,
            interval_s=interval_s,
        )
        block_scheduler.reschedule(schedule)

    def automines(self) -> bool:
        # Acquire no lock: this is called for each sent transaction, and must not wait for a
        # block that is being produced.
        return self._chain.block_scheduler().makes_blocks_at_once

    def include(self, tx: bytes) -> None:
        with self._lock:
            producer = self._producer()
            check = self._store.mempool.submit_local(tx, replaces=False)
            if check.code:
                raise TxRejected(check.log)
            try:
                producer.produce()
            except Exception:
                # Drop the transaction, which was reported as failed, so that no later block
                # includes it.
                self._store.drop_pending((tx,))
                raise

    def drop(self, txs: tuple[bytes, ...]) -> None:
        self._store.drop_pending(txs)

    def freeze(self, on: bool) -> None:
        block_scheduler = self._block_scheduler()
        block_scheduler.producer.is_frozen = on
        block_scheduler.reschedule(block_scheduler.schedule)

    def fail_next_tx(self, result: ExecTxResult, *, in_check: bool = False) -> None:
        self._producer()
        if self._store.abci is not None:
            self._store.abci.fail_next_tx(result, in_check=in_check)
