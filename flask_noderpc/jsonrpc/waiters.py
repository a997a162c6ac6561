"""Limits on calls that wait for blocks or scan them, shared fairly among clients; and the
submissions of ``broadcast_tx_async``, which responds before the store has the transaction."""

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
    """A call that waits for a block."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.evicted = ""
        """Reason for the call's eviction; empty while it may wait."""

    def wait_for_block(self, backend: ChainBackend, after: int, seconds: float) -> int:
        """Wait like :meth:`wait_for_height`; also raise if the disk has no space for a
        block."""
        return self.wait_for_height(backend.reads, after, seconds, backend.check_disk_space)

    def wait_for_height(
        self,
        reads: ChainReads,
        after: int,
        seconds: float,
        check: Callable[[], None] = lambda: None,
    ) -> int:
        """Wait for a height above ``after`` and return the latest height.

        Raise :exc:`~flask_noderpc.errors.Busy` when evicted, and the errors of ``check``,
        which is called while no new height arrives.
        """
        deadline = time.monotonic() + seconds
        while not self.evicted:
            remaining = deadline - time.monotonic()
            height = reads.wait_for_height(after, max(0.0, min(remaining, _POLL_S)))
            if height > after or remaining <= _POLL_S:
                return height
            check()
        raise Busy(self.evicted)


class WaiterLimit:
    """Limit on the calls that wait at the same time, shared fairly among clients.

    ``setting`` names the limit in errors. A waiting call occupies a thread of the server,
    which the context ``reserve`` counts.
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
        """Lower the limit to at most ``limit``."""
        self._limit.limit = min(self._limit.limit, limit)

    @contextmanager
    def acquire(self, client: str = "") -> Iterator[Waiter]:
        """Register a waiter; raise :exc:`~flask_noderpc.errors.Busy` if the limit is reached.

        If another client has more waiters than this one would have, that client's oldest
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
                    f"{reached.count} calls are already waiting; raise {self._setting}"
                ) from None
            if evicted is not None:
                evicted.evicted = self._eviction(evicted.client)
            waiter.evicted = _GOING_AWAY if self._closed else ""
            return waiter

    def _eviction(self, client: str) -> str:
        count = self._limit.owned(client) + 1
        return (
            f"{self._limit.limit} calls are already waiting, {count} of this client, so this"
            " call was dropped; its transaction may still get into a block; raise"
            f" {self._setting}"
        )

    def close(self) -> None:
        """Evict all waiters, and refuse new ones."""
        with self._lock:
            self._closed = True
            for waiter in self._limit:
                waiter.evicted = _GOING_AWAY


_GOING_AWAY = "the server is shutting down"


# Seconds between two checks whether a waiter was evicted.
_POLL_S = 0.25


class ScanLimit:
    """Limit on concurrent calls that scan many blocks: two run at a time, and others wait at
    most ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._free = threading.BoundedSemaphore(2)

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Wait for one of the two slots; raise :exc:`~flask_noderpc.errors.SearchTooCostly`
        after the time."""
        if not self._free.acquire(timeout=self._seconds):
            raise SearchTooCostly.by_time(self._seconds)
        try:
            yield
        finally:
            self._free.release()


log = logging.getLogger("flask_noderpc.mempool")

# Maximum number of queued submissions; further callers wait until the store has handled some.
_MAX_QUEUED = 500
# Maximum bytes of a queued transaction, which limits the bytes of the queue; the caller of a
# larger one waits for the store.
_MAX_BYTES = 1 << 14
# Seconds without work after which the thread ends.
_IDLE_S = 1.0
# Seconds during which transactions are collected for one batch.
_GATHER_S = 0.01
_LOG_EVERY_S = 10.0


class AsyncTxs:
    """Background thread that waits for the store after ``broadcast_tx_async`` has responded.

    Refused transactions are logged, at most every ten seconds, and reported by the signal
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
        """Queue a submission, whose result the thread awaits; ``size`` is the transaction's
        size in bytes."""
        if size > _MAX_BYTES:
            self._finish(submission)
            return
        with self._lock:
            if self._process != os.getpid():
                # Reset the queue after a fork, as its submissions belong to the parent.
                self._begin()
        # Don't hold the lock here: the thread that drains a full queue needs it.
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
        # Decide under the lock: if the thread ends, the next add() starts a new one.
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
                "%d transactions were refused after broadcast_tx_async had responded, the last"
                " one with: %s",
                self._refused,
                self._last_error,
            )
            self._refused = 0
