"""Pool of processes that run jobs; a process whose job takes too long is killed."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import TypeVar

from ..errors import ExecutorDied, ExecutorsBusy
from ..fairness import FairLimit, LimitReached
from .process import Answer, Executor, Job, refuse_questions

T = TypeVar("T")

# Share of its time that a job may spend in the queue, so that it has time left when it starts:
# replacing a killed process takes a while.
_WAIT_SHARE = 0.8


def module_command(module: str, *args: str) -> tuple[str, ...]:
    """Return the command that runs a module as an executor, without the socket's descriptor."""
    # Pass Python's safe-path mode on, so that the child imports the same modules.
    path = ("-P",) if sys.flags.safe_path else ()
    return (sys.executable, *path, "-m", module, *args)


class Executors:
    """Pool of up to ``count`` processes, which are started in the background when jobs are
    queued.

    ``command`` starts a process; the file descriptor of a socket is appended as the last
    argument. A job runs in the first process that becomes free, even if another one is being
    started for it. ``answer`` is called with the questions of running jobs, in the thread that
    waits for the job. The queue has at most ``queue_size`` jobs, shared fairly among clients,
    which are served in turn. Works with threads and gevent.
    """

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        queue_size: int,
        answer: Answer = refuse_questions,
    ) -> None:
        self._command, self._answer = tuple(command), answer
        self._count, self._queue_size = count, queue_size
        self._lock = threading.Lock()
        self._process = 0
        self._pool = WorkerPool(0)

    def start(self) -> None:
        """Start the first process without waiting for it."""
        with self._lock:
            self._use_own_pool()
            if not self._pool.has_started() and not self._pool.starting:
                self._start_one(self._pool)

    def is_ready(self) -> bool:
        """Return true if a process has started."""
        with self._lock:
            self._use_own_pool()
            return self._pool.has_started()

    def run(self, job: Job[T], seconds: float, client: str = "") -> T:
        """Run a job and return its result, or raise its exception.

        Raise :exc:`~flask_noderpc.errors.ExecutorsBusy` if the queue is full or the job waits
        too long, :exc:`~flask_noderpc.errors.ExecutionTimedOut` after ``seconds``, and
        :exc:`~flask_noderpc.errors.ExecutorDied`. The seconds include the time in the queue,
        but not the start of the first process.
        """
        ticket = self._enter(client)
        try:
            executor = self._executor_for(ticket, seconds * _WAIT_SHARE)
            return executor.run(job, ticket.counts_from() + seconds)
        finally:
            self._leave(ticket)

    def _executor_for(self, ticket: Ticket, seconds: float) -> Executor:
        with self._lock:
            self._serve_next(ticket.pool)
        while not ticket.assigned.is_set():
            left = ticket.seconds_left(seconds)
            if left <= 0:
                raise ExecutorsBusy(self._count)
            ticket.assigned.wait(left)
        if ticket.evicted:
            raise ExecutorsBusy(self._count)
        if ticket.executor is None:
            raise ExecutorDied
        return ticket.executor

    def _use_own_pool(self) -> None:
        """Replace the pool after a fork, because its processes are the parent's."""
        if self._process != os.getpid():
            self._process, self._pool = os.getpid(), WorkerPool(self._count)

    def _enter(self, client: str) -> Ticket:
        with self._lock:
            self._use_own_pool()
            pool = self._pool
            ticket = Ticket(pool, client)
            # Allow more jobs for idle and starting processes, and those still to be started,
            # as they will take them at once.
            started = len(pool.idle) + pool.starting + pool.missing
            pool.queue.limit = self._queue_size + started
            try:
                evicted = pool.queue.acquire(ticket, client)
            except LimitReached:
                raise ExecutorsBusy(self._count) from None
            if evicted is not None:
                evicted.evicted = True
                evicted.assigned.set()
            return ticket

    def _serve_next(self, pool: WorkerPool) -> None:
        pool.assign_idle()
        while pool.missing and pool.starting < len(pool.queue):
            self._start_one(pool)

    def _start_one(self, pool: WorkerPool) -> None:
        # The caller holds the lock, which the new thread acquires after the process has
        # started.
        threading.Thread(target=self._have_started, args=(pool,), daemon=True).start()
        pool.missing -= 1
        pool.starting += 1

    def _have_started(self, pool: WorkerPool) -> None:
        try:
            executor = Executor(self._command, self._answer)
        except ExecutorDied:
            executor = None
        with self._lock:
            pool.starting -= 1
            if executor is None:
                pool.missing += 1
                pool.fail()
            elif pool is not self._pool:
                # The pool was closed meanwhile.
                executor.end()
            else:
                pool.add(executor)
                self._serve_next(pool)

    def _leave(self, ticket: Ticket) -> None:
        pool, executor = ticket.pool, ticket.executor
        with self._lock:
            pool.queue.release(ticket)
            if executor is None:
                return
            pool.working.remove(ticket)
            if pool is not self._pool:
                # The pool was closed meanwhile.
                executor.end()
                return
            if executor.alive:
                pool.idle.append(executor)
            else:
                pool.missing += 1
            self._serve_next(pool)

    def close(self) -> None:
        """End idle processes now, and working ones when their jobs are done."""
        with self._lock:
            if self._process != os.getpid():
                return
            pool, self._pool, self._process = self._pool, WorkerPool(0), 0
            for executor in pool.idle:
                executor.end()
            pool.fail_all()


class Ticket:
    """A job that is queued or running."""

    def __init__(self, pool: WorkerPool, client: str) -> None:
        self.pool, self.client = pool, client
        self.assigned = threading.Event()
        self.executor: Executor | None = None
        self.evicted = False
        self._entered = time.monotonic()

    def counts_from(self) -> float:
        """Return the time from which the job's seconds count: its arrival, or when the first
        process became ready."""
        return max(self._entered, self.pool.started_at)

    def seconds_left(self, seconds: float) -> float:
        """Return how many of ``seconds`` are left to wait; all of them while the first process
        starts."""
        if not self.pool.has_started():
            return seconds
        return self.counts_from() + seconds - time.monotonic()


class WorkerPool:
    """Executor processes of one server process, with the running and queued jobs."""

    def __init__(self, count: int) -> None:
        # Use it as a stack: the executor that worked last has the warmest caches.
        self.idle: list[Executor] = []
        self.queue = FairLimit[Ticket](0, evicts_newest=True)
        self.working: list[Ticket] = []
        self.missing, self.starting = count, 0
        self.started_at = 0.0
        self._served: list[str] = []

    def has_started(self) -> bool:
        """Return true if a process has started."""
        return bool(self.idle or self.working)

    def add(self, executor: Executor) -> None:
        """Add an idle executor."""
        if not self.has_started():
            self.started_at = time.monotonic()
        self.idle.append(executor)

    def fail(self) -> None:
        """Fail the queued jobs after a process could not start, unless other processes run or
        start."""
        if not self.has_started() and not self.starting:
            self.fail_all()

    def fail_all(self) -> None:
        """Make all queued jobs fail, by waking them without an executor."""
        for ticket in tuple(self.queue):
            ticket.assigned.set()
            self.queue.release(ticket)

    def assign_idle(self) -> None:
        """Assign idle executors to queued jobs, first to the client whose last job is longest
        ago."""
        while self.queue and (executor := self._free()):
            ticket = min(self.queue, key=self._last_served)
            self.queue.release(ticket)
            # Drop clients that have no queued job left.
            present = {each.client for each in self.queue} - {ticket.client}
            self._served = [name for name in self._served if name in present] + [ticket.client]
            ticket.executor = executor
            self.working.append(ticket)
            ticket.assigned.set()

    def _free(self) -> Executor | None:
        """Return an idle executor that is alive, or ``None``."""
        while self.idle:
            executor = self.idle.pop()
            if executor.lives():
                return executor
            self.missing += 1
        return None

    def _last_served(self, ticket: Ticket) -> int:
        return self._served.index(ticket.client) if ticket.client in self._served else -1
