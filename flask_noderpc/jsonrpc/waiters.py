"""Calls that wait for the store, with limits that are divided fairly among clients, and
transactions of ``broadcast_tx_async``, which returns before the store has them."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from ..backends.base.backend import ChainBackend
from ..backends.base.reads import ChainReads
from ..concurrency import Pending
from ..domain.abci import ExecTxResult
from ..errors import Busy, SearchTooCostly
from ..fairness import FairLimit, LimitReached
from ..signals import async_tx_refused, emit, wait_began, wait_ended


class Waiter:
    """A waiting call."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.evicted = ""
        """Reason of its eviction; empty while it may wait."""

    def wait_for_block(self, backend: ChainBackend, after: int, seconds: float) -> int:
        """Wait for a transaction like :meth:`wait_for_height`; raise also if the disk has no
        space for the block."""
        return self.wait_for_height(backend.reads, after, seconds, backend.check_disk_space)

    def wait_for_height(
        self,
        reads: ChainReads,
        after: int,
        seconds: float,
        check: Callable[[], None] = lambda: None,
    ) -> int:
        """Wait like the method of ``reads``; raise :exc:`~flask_noderpc.errors.Busy` when
        evicted, and the errors of ``check`` while no new height arrives."""
        deadline = time.monotonic() + seconds
        while not self.evicted:
            remaining = deadline - time.monotonic()
            height = reads.wait_for_height(after, max(0.0, min(remaining, _POLL_S)))
            if height > after or remaining <= _POLL_S:
                return height
            check()
        raise Busy(self.evicted)


class WaiterLimit:
    """Maximum number of calls that wait at the same time, divided fairly among clients.

    A waiting call occupies a thread of the server, which ``reserve`` reserves.
    """

    def __init__(
        self,
        limit: int,
        setting: str,
        sender: object = None,
        reserve: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._limit = FairLimit[Waiter](limit)
        self._sender = sender
        self._reserve = reserve
        self._closed = False
        self._setting = setting
        self._lock = threading.Lock()

    def lower(self, limit: int) -> None:
        """Lower the limit, on a server with fewer resources."""
        self._limit.limit = min(self._limit.limit, limit)

    @contextmanager
    def acquire(self, client: str = "") -> Iterator[Waiter]:
        """Register a waiter; raise :exc:`~flask_noderpc.errors.Busy` when the limit is reached.

        But if another client has more waiters than this one would have, that client's oldest
        waiter is evicted instead.
        """
        with self._reserve():
            waiter = self._acquire(client)
            emit(wait_began, self._sender)
            try:
                yield waiter
            finally:
                with self._lock:
                    self._limit.release(waiter)
                emit(wait_ended, self._sender)

    def _acquire(self, client: str) -> Waiter:
        waiter = Waiter(client)
        with self._lock:
            try:
                evicted = self._limit.acquire(waiter, client)
            except LimitReached as reached:
                raise Busy(
                    f"{reached.count} calls are already waiting; {self._setting} raises this"
                ) from None
            if evicted is not None:
                evicted.evicted = self._eviction(evicted.client)
            waiter.evicted = _GOING_AWAY if self._closed else ""
            return waiter

    def _eviction(self, client: str) -> str:
        count = self._limit.owned(client) + 1
        return (
            f"{self._limit.limit} calls are already waiting, {count} of this client, so this"
            " call was dropped; its transaction may still get into a block"
            f" ({self._setting} raises this)"
        )

    def close(self) -> None:
        """Evict all waiters, and refuse new ones."""
        with self._lock:
            self._closed = True
            for waiter in self._limit:
                waiter.evicted = _GOING_AWAY


_GOING_AWAY = "the server goes away"


# Seconds between two checks for an eviction.
_POLL_S = 0.25


class ScanLimit:
    """Limit of concurrent calls that scan many blocks: two at a time, further calls wait."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._free = threading.BoundedSemaphore(2)

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Wait for a slot; raise :exc:`~flask_noderpc.errors.SearchTooCostly`."""
        if not self._free.acquire(timeout=self._seconds):
            raise SearchTooCostly.by_time(self._seconds)
        try:
            yield
        finally:
            self._free.release()


log = logging.getLogger("flask_noderpc.mempool")

# Maximum queue size; further callers wait until the store has stored some.
_MAX_QUEUED = 500
# Maximum bytes of a queued transaction, which bounds the bytes of the queue; the caller waits
# for a larger one.
_MAX_BYTES = 1 << 14
# Seconds without work after which the thread ends.
_IDLE_S = 1.0
# Seconds during which transactions are collected for one batch.
_GATHER_S = 0.01
_LOG_EVERY_S = 10.0


class AsyncTxs:
    """Waits for the store after ``broadcast_tx_async`` has returned.

    Refused transactions are logged, at most every ten seconds, and emitted by
    :data:`~flask_noderpc.signals.async_tx_refused`.
    """

    def __init__(self, backend: ChainBackend) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._submissions: queue.Queue[Pending[ExecTxResult]] = queue.Queue(_MAX_QUEUED)
        self._is_running = False
        self._refused = 0
        self._last_error: Exception | None = None
        self._next_log = 0.0

    def add(self, submission: Pending[ExecTxResult], size: int) -> None:
        """Queue a submission to wait for its result; ``size`` is the transaction's size in
        bytes."""
        if size > _MAX_BYTES:
            self._finish(submission)
            return
        with self._lock:
            if self._process != os.getpid():
                # Transactions that were queued before a fork belong to the parent.
                self._begin()
        # Without the lock: the thread that drains a full queue needs it, too.
        self._submissions.put(submission)
        with self._lock:
            if not self._is_running:
                self._is_running = True
                threading.Thread(
                    target=self._run, name="noderpc-async-txs", daemon=True
                ).start()

    def _run(self) -> None:
        while True:
            try:
                gathered = [self._submissions.get(timeout=_IDLE_S)]
            except queue.Empty:
                self._log_refused()
                if self._may_end():
                    return
                continue
            time.sleep(_GATHER_S)
            with suppress(queue.Empty):
                while True:
                    gathered.append(self._submissions.get_nowait())
            for submission in gathered:
                self._finish(submission)

    def _finish(self, submission: Pending[ExecTxResult]) -> None:
        try:
            submission.result()
        except Exception as error:
            self._report(error)

    def _may_end(self) -> bool:
        # Decided under the lock: a caller that adds a transaction later starts a new thread.
        with self._lock:
            self._is_running = not self._submissions.empty()
            return not self._is_running

    def _report(self, error: Exception) -> None:
        self._refused, self._last_error = self._refused + 1, error
        if time.monotonic() >= self._next_log:
            self._next_log = time.monotonic() + _LOG_EVERY_S
            self._log_refused()
        emit(async_tx_refused, self._backend, error=error)

    def _log_refused(self) -> None:
        if self._refused:
            log.warning(
                "transactions were refused after broadcast_tx_async had answered: %d, the last"
                " one with: %s",
                self._refused,
                self._last_error,
            )
            self._refused = 0
