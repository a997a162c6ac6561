"""Writes of a process: those that arrive together share one transaction.

The transactions among them are known to the mempool until they are stored.
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
    """A write on its way: what to do, and how it went."""

    def __init__(self, work: Callable[[Connection], T]) -> None:
        self._work = work
        self._value: list[T] = []
        self.error: BaseException | None = None
        self.is_done = False
        """True when it is on disk, or never will be."""
        self.transaction: Pending[None] | None = None
        """The one that its owner waits for."""

    def do(self, connection: Connection) -> None:
        """Work inside a savepoint, so that one failure does not undo its neighbours."""
        connection.execute("SAVEPOINT job")
        try:
            self._value = [self._work(connection)]
        except BaseException as error:
            self.error = error
            # A full disk rolls the whole transaction back, savepoint and all.
            if connection.in_transaction:
                connection.execute("ROLLBACK TO job")
        if connection.in_transaction:
            connection.execute("RELEASE job")

    def do_alone(self, connection: Connection) -> None:
        """Work without a savepoint: where it raises, the transaction is rolled back."""
        self._value = [self._work(connection)]

    def result(self) -> T:
        """Return the result of the work; raise what it raised."""
        if self.error is not None:
            raise self.error
        return self._value[0]


class _Drain:
    """One transaction of a writer: ``pending``, until it has begun."""

    def __init__(self, thread: NativeThread, work: Callable[[], None]) -> None:
        self._work = work
        self.has_begun = False
        self.pending = thread.begin(self._run)

    def _run(self) -> None:
        # First: a job that comes behind this line needs another transaction.
        self.has_begun = True
        self._work()


class Writer(ABC):
    """The one thread and connection that write for this process.

    Writes that arrive together share one transaction, and so one wait for the disk.
    """

    def __init__(self, name: str) -> None:
        self._thread = NativeThread(name)
        self._waiting: deque[Job[Any]] = deque()
        self._lock = threading.Lock()
        self._next: _Drain | None = None

    def run(self, work: Callable[[Connection], T]) -> T:
        """Return the result of ``work``, once it is on disk."""
        return self.begin(work).result()

    def begin(self, work: Callable[[Connection], T]) -> Pending[T]:
        """Have work done with what is written next.

        The transaction begins when somebody waits for it or for another, so that it has all
        writes that have come until then.
        """
        job = Job(work)
        self._waiting.append(job)

        def is_done(seconds: float) -> bool:
            if not job.is_done:
                # Behind what is being written, which it may be part of.
                job.transaction = job.transaction or self._begin_drain()
                job.transaction.is_done(seconds)
            return job.is_done

        def result() -> T:
            if not job.is_done:
                job.transaction = job.transaction or self._begin_drain()
                # It raises nothing: errors are those of its jobs.
                job.transaction.result()
            try:
                return job.result()
            except Exception:
                with self._errors():
                    raise

        return Pending(result, is_done)

    def _begin_drain(self) -> Pending[None]:
        """Return the transaction that has all jobs that wait now."""
        with self._lock:
            # To queue one for each job would take longer than the job.
            if self._next is None or self._next.has_begun:
                self._next = _Drain(self._thread, self._drain)
            return self._next.pending

    def _drain(self) -> None:
        jobs = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not jobs:
            return
        try:
            self._commit(jobs)
        except Exception as error:
            # Any error: each of these jobs must get an answer.
            for job in jobs:
                job.error = job.error or error
        for job in jobs:
            job.is_done = True

    @abstractmethod
    def _commit(self, jobs: list[Job[Any]]) -> None:
        """Do these jobs in one transaction."""

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Turn the engine's errors into :exc:`~flask_noderpc.errors.StoreError`."""


class Incoming:
    """Transactions on their way into the mempool, counted beside those that wait there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hashes: Counter[bytes] = Counter()
        self._stored: dict[object, Callable[[], None]] = {}
        self._txs: dict[object, bytes] = {}
        self._size = 0

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._hashes

    def may_exceed(self, tx: bytes, limits: MempoolLimits) -> bool:
        """Return true if these alone might be why a transaction is refused."""
        is_full = len(self._stored) >= limits.max_txs or self._size >= limits.max_bytes
        return is_full or (bool(self._hashes) and tx_hash(tx) in self._hashes)

    @property
    def count(self) -> PendingCount:
        """Number of these transactions, and their bytes."""
        return PendingCount(len(self._stored), self._size)

    def add(self, tx: bytes, stored: Callable[[], None]) -> Callable[[], None]:
        """Count one until what is returned is called; ``stored`` waits for the store."""
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
        """Return these transactions, the oldest first."""
        with self._lock:
            return tuple(self._txs.values())

    def wait(self) -> None:
        """Wait until the store has accepted or refused those queued now."""
        for stored in tuple(self._stored.values()):
            # The sender gets the error.
            with suppress(Exception):
                stored()
