"""Runs jobs in processes of their own: a call that takes too long is ended with its process."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from ..errors import ExecutorDied, ExecutorsBusy
from ..shares import who_gives_way
from .base import Job
from .process import Executor

T = TypeVar("T")

# What begins has some of its time left: a process that is killed is a while in coming back.
_WAIT_SHARE = 0.8


class Executors:
    """At most ``count`` processes, started in the background when jobs wait for one.

    ``command`` starts one; a socket's number is added to it. A job runs in the process that is
    free first, so it never waits for another one's start. What waits for a free one is
    bounded by ``queue_size`` and shared out among clients, who are served by turns; each has
    at most ``per_client`` jobs, if that is given. Works the same under threads and gevent.
    """

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        queue_size: int,
        per_client: int | None = None,
    ) -> None:
        self._command = tuple(command)
        self._count, self._queue_size, self._per_client = count, queue_size, per_client
        self._lock = threading.Lock()
        self._process = 0
        self._crew = _Crew(0)

    def start(self) -> None:
        """Start the first process, and wait for nothing."""
        with self._lock:
            self._use_own_crew()
            if not self._crew.serves() and not self._crew.starting:
                self._start_one(self._crew)

    def run(self, job: Job[T], seconds: float, client: str = "") -> T:
        """The job's result; what it raises is raised here.

        Raise :exc:`~flask_noderpc.errors.ExecutorsBusy` when too many wait, or for too long,
        :exc:`~flask_noderpc.errors.ExecutionTimedOut` after ``seconds``, the wait for a
        process included, and :exc:`~flask_noderpc.errors.ExecutorDied`. While the first
        process starts no job's time goes by.
        """
        turn = self._enter(client)
        try:
            executor = self._executor_for(turn, seconds * _WAIT_SHARE)
            return executor.run(job, turn.began() + seconds)
        finally:
            self._leave(turn)

    def _executor_for(self, turn: _Turn, seconds: float) -> Executor:
        with self._lock:
            self._call_next(turn.crew)
        while not turn.told.is_set():
            left = turn.left(seconds)
            if left <= 0:
                raise ExecutorsBusy(self._count)
            turn.told.wait(left)
        if turn.gave_way:
            raise ExecutorsBusy(self._count)
        if turn.executor is None:
            raise ExecutorDied
        return turn.executor

    def _use_own_crew(self) -> None:
        """After a fork the processes are the parent's."""
        if self._process != os.getpid():
            self._process, self._crew = os.getpid(), _Crew(self._count)

    def _enter(self, client: str) -> _Turn:
        with self._lock:
            self._use_own_crew()
            crew = self._crew
            # Whose address nobody knows are many.
            if client and self._per_client is not None:
                crew.check(client, self._per_client)
            turn = _Turn(crew, client)
            # Each that starts, or may, has a job to come.
            room = self._queue_size + len(crew.idle) + crew.starting + crew.missing
            if len(crew.line) >= room:
                self._make_room(crew, client)
            crew.line.append(turn)
            return turn

    def _call_next(self, crew: _Crew) -> None:
        crew.call_next()
        while crew.missing and crew.starting < len(crew.line):
            self._start_one(crew)

    def _start_one(self, crew: _Crew) -> None:
        # It comes to the lock when whoever has it is done.
        threading.Thread(target=self._have_started, args=(crew,), daemon=True).start()
        crew.missing -= 1
        crew.starting += 1

    def _have_started(self, crew: _Crew) -> None:
        try:
            executor = Executor(self._command)
        except ExecutorDied:
            executor = None
        with self._lock:
            crew.starting -= 1
            if executor is None:
                crew.missing += 1
                crew.fail()
            elif crew is not self._crew:
                # It was closed meanwhile.
                executor.end()
            else:
                crew.add(executor)
                self._call_next(crew)

    def _make_room(self, crew: _Crew, newcomer: str) -> None:
        """Have the last in line of the client with the most give way."""
        waiting = Counter(turn.client for turn in crew.line)
        owner = who_gives_way(waiting, newcomer) if waiting else None
        if owner is None:
            raise ExecutorsBusy(self._count)
        last = next(turn for turn in reversed(crew.line) if turn.client == owner)
        crew.line.remove(last)
        last.gave_way = True
        last.told.set()

    def _leave(self, turn: _Turn) -> None:
        crew, executor = turn.crew, turn.executor
        with self._lock:
            if turn in crew.line:
                crew.line.remove(turn)
            if executor is None:
                return
            crew.working.remove(turn)
            if crew is not self._crew:
                # It was closed meanwhile.
                executor.end()
                return
            if executor.alive:
                crew.idle.append(executor)
            else:
                crew.missing += 1
            self._call_next(crew)

    def close(self) -> None:
        """End the processes: those that work, when they have done."""
        with self._lock:
            if self._process != os.getpid():
                return
            crew, self._crew, self._process = self._crew, _Crew(0), 0
            for executor in crew.idle:
                executor.end()
            crew.dismiss()


class _Turn:
    """A job that waits for a process, or has one."""

    def __init__(self, crew: _Crew, client: str) -> None:
        self.crew, self.client = crew, client
        self.told = threading.Event()
        self.executor: Executor | None = None
        self.gave_way = False
        self._entered = time.monotonic()

    def began(self) -> float:
        """The time from which its seconds count: not before there was a process."""
        return max(self._entered, self.crew.serves_since)

    def left(self, seconds: float) -> float:
        """How many of these it may still wait: all of them while the first process starts."""
        if not self.crew.serves():
            return seconds
        return self.began() + seconds - time.monotonic()


class _Crew:
    """The executors of one process of the server, and who works and waits there."""

    def __init__(self, count: int) -> None:
        # The one that worked last is the warmest.
        self.idle: list[Executor] = []
        self.line: list[_Turn] = []
        self.working: list[_Turn] = []
        self.missing, self.starting = count, 0
        self.serves_since = 0.0
        self._served: list[str] = []

    def serves(self) -> bool:
        """Return true if a process has started."""
        return bool(self.idle or self.working)

    def add(self, executor: Executor) -> None:
        """Have one more that has nothing to do."""
        if not self.serves():
            self.serves_since = time.monotonic()
        self.idle.append(executor)

    def fail(self) -> None:
        """Tell who waits that no process starts, unless there are others."""
        if not self.serves() and not self.starting:
            self.dismiss()

    def dismiss(self) -> None:
        """Tell who waits that nobody comes."""
        for turn in self.line:
            turn.told.set()
        self.line.clear()

    def check(self, client: str, most: int) -> None:
        """Raise :exc:`~flask_noderpc.errors.ExecutorsBusy` for one more than ``most``."""
        if sum(turn.client == client for turn in (*self.line, *self.working)) >= most:
            raise ExecutorsBusy.of_client(most)

    def call_next(self) -> None:
        """Give who is idle to whoever's client was not served for the longest."""
        while self.line and (executor := self._free()):
            turn = min(self.line, key=self._last_served)
            self.line.remove(turn)
            # Who has nothing more in line is forgotten.
            present = {each.client for each in self.line} - {turn.client}
            self._served = [name for name in self._served if name in present] + [turn.client]
            turn.executor = executor
            self.working.append(turn)
            turn.told.set()

    def _free(self) -> Executor | None:
        """One that has nothing to do; each may have been killed meanwhile."""
        while self.idle:
            executor = self.idle.pop()
            if executor.lives():
                return executor
            self.missing += 1
        return None

    def _last_served(self, turn: _Turn) -> int:
        return self._served.index(turn.client) if turn.client in self._served else -1
