"""Write queue of a process: writes that arrive together share one transaction.

Mempool transactions that are queued, but not stored yet, count for the mempool's limits.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any, Generic, TypeVar

from ...concurrency import NativeThread, Pending
from ...domain.responses import PendingCount
from ...protocol.comet.hashes import tx_hash
from ..base.capabilities import MempoolLimits
from .connection import Connection

T = TypeVar("T")


class Job(Generic[T]):
    """A queued write, and its result or error."""

    def __init__(self, work: Callable[[Connection], T]) -> None:
        self._work = work
        self._value: list[T] = []
        self.error: BaseException | None = None
        self.is_done = False
        """True when the write is on disk or has failed."""
        self.transaction: Pending[None] | None = None
        """Database transaction that the job's caller waits for."""

    def run(self, connection: Connection) -> None:
        """Run the write in a savepoint, so that its failure does not undo other jobs."""
        connection.execute("SAVEPOINT job")
        try:
            self._value = [self._work(connection)]
        except BaseException as error:
            self.error = error
            # A full disk has rolled back the whole transaction, including the savepoint.
            if connection.in_transaction:
                connection.execute("ROLLBACK TO job")
        if connection.in_transaction:
            connection.execute("RELEASE job")

    def run_without_savepoint(self, connection: Connection) -> None:
        """Run the write without a savepoint: if it raises, the whole transaction is rolled
        back."""
        self._value = [self._work(connection)]

    def result(self) -> T:
        """Return the result of the write; raise its error."""
        if self.error is not None:
            raise self.error
        return self._value[0]


class _WriteTransaction:
    """A database transaction of a writer; new jobs join it until it has begun."""

    def __init__(self, thread: NativeThread, work: Callable[[], None]) -> None:
        self._work = work
        self.has_begun = False
        self.pending = thread.begin(self._run)

    def _run(self) -> None:
        # Set the flag first: jobs that are queued after this line need another transaction.
        self.has_begun = True
        self._work()


class Writer(ABC):
    """The one thread and connection that write for this process.

    Writes that arrive together share one transaction, and so one flush to disk.
    """

    def __init__(self, name: str) -> None:
        self._thread = NativeThread(name)
        self._waiting: deque[Job[Any]] = deque()
        self._lock = threading.Lock()
        self._next: _WriteTransaction | None = None

    def run(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in the next transaction; return its result once it is on disk."""
        return self.begin(work).result()

    def begin(self, work: Callable[[Connection], T]) -> Pending[T]:
        """Queue ``work`` for the next transaction.

        The transaction begins when a caller waits for one of its jobs or another transaction,
        and includes all writes queued until then.
        """
        job = Job(work)
        self._waiting.append(job)

        def is_done(seconds: float) -> bool:
            if not job.is_done:
                # Wait for the running transaction, which may include this job, or start the
                # next one.
                job.transaction = job.transaction or self._begin_transaction()
                job.transaction.is_done(seconds)
            return job.is_done

        def result() -> T:
            if not job.is_done:
                job.transaction = job.transaction or self._begin_transaction()
                # The transaction itself raises nothing: each job stores its own error.
                job.transaction.result()
            try:
                return job.result()
            except Exception:
                with self._errors():
                    raise

        return Pending(result, is_done)

    def _begin_transaction(self) -> Pending[None]:
        """Return the transaction that includes all jobs that are queued now."""
        with self._lock:
            # Share the transaction that has not begun yet, as a transaction per job would be
            # slower.
            if self._next is None or self._next.has_begun:
                self._next = _WriteTransaction(self._thread, self._write_jobs)
            return self._next.pending

    def _write_jobs(self) -> None:
        jobs = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not jobs:
            return
        try:
            self._commit(jobs)
        except Exception as error:
            # Catch all errors, because each job must get a result or an error.
            for job in jobs:
                job.error = job.error or error
        for job in jobs:
            job.is_done = True

    @abstractmethod
    def _commit(self, jobs: list[Job[Any]]) -> None:
        """Run these jobs in one transaction."""

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Convert the engine's errors to :exc:`~flask_noderpc.errors.StoreError`."""


class UnstoredTxs:
    """Transactions that are queued for the mempool, but not stored yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hashes: Counter[bytes] = Counter()
        self._stored: dict[object, Callable[[], None]] = {}
        self._txs: dict[object, bytes] = {}
        self._size = 0

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._hashes

    def may_cause_refusal(self, tx: bytes, limits: MempoolLimits) -> bool:
        """Return true if these transactions alone may make the mempool refuse ``tx``."""
        is_full = len(self._stored) >= limits.max_txs or self._size >= limits.max_bytes
        return is_full or (bool(self._hashes) and tx_hash(tx) in self._hashes)

    @property
    def count(self) -> PendingCount:
        """Number of these transactions, and their total bytes."""
        return PendingCount(len(self._stored), self._size)

    def add(self, tx: bytes, stored: Callable[[], None]) -> Callable[[], None]:
        """Count a transaction until the returned function is called; ``stored`` is a function
        that waits until the transaction is stored or refused."""
        digest, size, key = tx_hash(tx), len(tx), object()

        def forget() -> None:
            with self._lock:
                del self._stored[key], self._txs[key]
                self._size -= size
                self._hashes[digest] -= 1
                if not self._hashes[digest]:
                    del self._hashes[digest]

        with self._lock:
            self._stored[key], self._txs[key] = stored, tx
            self._size += size
            self._hashes[digest] += 1
        return forget

    def txs(self) -> tuple[bytes, ...]:
        """Return these transactions, oldest first."""
        with self._lock:
            return tuple(self._txs.values())

    def wait(self) -> None:
        """Wait until the store has accepted or refused all transactions queued now."""
        for stored in tuple(self._stored.values()):
            # Ignore errors here: they are raised in the sender's call.
            with suppress(Exception):
                stored()
