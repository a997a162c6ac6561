"""Writes of a process: those that arrive together share one transaction."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from ...concurrency import NativeThread, Pending
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
            with self._errors():
                return job.result()

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
