"""Runs jobs in processes of their own: a call that takes too long is ended with its process."""

from __future__ import annotations

import os
import pickle
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import ExecutionTimedOut, ExecutorDied, ExecutorsBusy
from ..shares import who_gives_way
from .base import Job

T = TypeVar("T")

_SIZE = struct.Struct(">Q")
_CHUNK = 1 << 20

# What begins has some of its time left: a process that is killed is a while in coming back.
_WAIT_SHARE = 0.8

# What an interpreter needs to start on a busy machine, beside the job itself.
_START_S = 30.0


class Executors:
    """At most ``count`` processes, each begun when it is needed first.

    ``command`` starts one; a socket's number is added to it. What waits for a free one is
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

    def run(self, job: Job[T], seconds: float, client: str = "") -> T:
        """The job's result; what it raises is raised here.

        Raise :exc:`~flask_noderpc.errors.ExecutorsBusy` when too many wait, or for too long,
        :exc:`~flask_noderpc.errors.ExecutionTimedOut` after ``seconds``, the wait for a
        process included, and :exc:`~flask_noderpc.errors.ExecutorDied`.
        """
        deadline = time.monotonic() + seconds
        turn = self._enter(client)
        try:
            if not turn.told.wait(seconds * _WAIT_SHARE) or turn.gave_way:
                raise ExecutorsBusy(self._count)
            if turn.executor is None or not turn.executor.lives():
                turn.executor = _Executor(self._command)
            return turn.executor.run(job, deadline)
        finally:
            self._leave(turn)

    def _enter(self, client: str) -> _Turn:
        with self._lock:
            if self._process != os.getpid():
                # After a fork the processes are the parent's.
                self._process, self._crew = os.getpid(), _Crew(self._count)
            crew = self._crew
            # Whose address nobody knows are many.
            if client and self._per_client is not None:
                crew.check(client, self._per_client)
            turn = _Turn(crew, client)
            if not crew.idle and len(crew.line) >= self._queue_size:
                self._make_room(crew, client)
            crew.line.append(turn)
            crew.call_next()
            return turn

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
        crew = turn.crew
        with self._lock:
            if turn in crew.line:
                crew.line.remove(turn)
            elif not turn.gave_way:
                crew.working.remove(turn)
                executor = turn.executor
                if executor is not None and crew is not self._crew:
                    # It was closed meanwhile.
                    executor.end()
                # One that has ended makes room for another.
                crew.idle.append(executor if executor is not None and executor.alive else None)
                crew.call_next()

    def close(self) -> None:
        """End the processes: those that work, when they have done."""
        with self._lock:
            if self._process != os.getpid():
                return
            crew, self._crew, self._process = self._crew, _Crew(0), 0
            for executor in crew.idle:
                if executor is not None:
                    executor.end()
            crew.idle = [None] * len(crew.idle)


class _Turn:
    """A job that waits for a process, or has one."""

    def __init__(self, crew: _Crew, client: str) -> None:
        self.crew, self.client = crew, client
        self.told = threading.Event()
        self.executor: _Executor | None = None
        self.gave_way = False


class _Crew:
    """The executors of one process of the server, and who works and waits there."""

    def __init__(self, count: int) -> None:
        # The one that worked last is the warmest.
        self.idle: list[_Executor | None] = [None] * count
        self.line: list[_Turn] = []
        self.working: list[_Turn] = []
        self._served: list[str] = []

    def check(self, client: str, most: int) -> None:
        """Raise :exc:`~flask_noderpc.errors.ExecutorsBusy` for one more than ``most``."""
        if sum(turn.client == client for turn in (*self.line, *self.working)) >= most:
            raise ExecutorsBusy.of_client(most)

    def call_next(self) -> None:
        """Give who is idle to whoever's client was not served for the longest."""
        while self.idle and self.line:
            turn = min(self.line, key=self._last_served)
            self.line.remove(turn)
            # Who has nothing more in line is forgotten.
            present = {each.client for each in self.line} - {turn.client}
            self._served = [name for name in self._served if name in present] + [turn.client]
            turn.executor = self.idle.pop()
            self.working.append(turn)
            turn.told.set()

    def _last_served(self, turn: _Turn) -> int:
        return self._served.index(turn.client) if turn.client in self._served else -1


class _Executor:
    """One process, and the socket to it."""

    def __init__(self, command: Sequence[str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=environment,
            )
        self._socket = ours
        self.alive = True
        self._serves = False

    def run(self, job: Job[T], deadline: float) -> T:
        """The job's result."""
        try:
            # The first job need not be quick enough to start an interpreter as well.
            deadline += self._starting()
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            send(self._socket, job)
            done, value = _receive(self._socket, deadline)
        except TimeoutError:
            self.end()
            raise ExecutionTimedOut from None
        except BaseException as error:
            # Whoever waits may be ended too: the answer must not go to the next.
            self.end()
            if isinstance(error, OSError | EOFError):
                raise ExecutorDied from None
            raise
        if done:
            result: T = value
            return result
        raise value

    def lives(self) -> bool:
        """Whether the process is still there; one may be killed while it has nothing to do."""
        if self._process.poll() is not None:
            self.end()
        return self.alive

    def _starting(self) -> float:
        """The seconds that it takes until it serves; none where it does."""
        began = time.monotonic()
        if not self._serves:
            _receive(self._socket, began + _START_S)
            self._serves = True
        return time.monotonic() - began

    def end(self) -> None:
        """Kill the process."""
        self.alive = False
        self._socket.close()
        self._process.kill()
        self._process.wait()


def send(to: socket.socket, value: Any) -> None:
    """Send one value."""
    body = pickle.dumps(value)
    to.sendall(_SIZE.pack(len(body)) + body)


def _receive(sender: socket.socket, deadline: float) -> Any:
    def left() -> float:
        return max(0.001, deadline - time.monotonic())

    return receive(sender, left)


def receive(sender: socket.socket, left: Callable[[], float | None]) -> Any:
    """The next value; raise :exc:`EOFError` at the end and :exc:`TimeoutError`."""
    (size,) = _SIZE.unpack(_exactly(sender, _SIZE.size, left))
    return pickle.loads(_exactly(sender, size, left))


def _exactly(sender: socket.socket, size: int, left: Callable[[], float | None]) -> bytes:
    parts = []
    while size:
        sender.settimeout(left())
        part = sender.recv(min(size, _CHUNK))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
