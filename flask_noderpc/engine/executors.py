"""Runs jobs in processes of their own: a call that takes too long is ended with its process."""

from __future__ import annotations

import os
import pickle
import queue
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from ..errors import ExecutionTimedOut, ExecutorDied, ExecutorsBusy
from .base import Job

T = TypeVar("T")

_SIZE = struct.Struct(">Q")
_CHUNK = 1 << 20

# What an interpreter needs to start on a busy machine, beside the job itself.
_START_S = 30.0


class Executors:
    """At most ``count`` processes, each begun when it is needed first.

    ``command`` starts one; a socket's number is added to it. What waits for a free one is
    bounded by ``queue_size``. Works the same under threads and under gevent.
    """

    def __init__(self, command: Sequence[str], count: int, queue_size: int) -> None:
        self._command = tuple(command)
        self._count, self._places = count, count + queue_size
        self._lock = threading.Lock()
        self._process = 0
        self._idle: queue.LifoQueue[_Executor | None] = queue.LifoQueue()
        self._waiting = 0

    def run(self, job: Job[T], seconds: float) -> T:
        """The job's result; what it raises is raised here.

        Raise :exc:`~flask_noderpc.errors.ExecutorsBusy` when too many wait,
        :exc:`~flask_noderpc.errors.ExecutionTimedOut` after ``seconds``, the wait for a
        process included, and :exc:`~flask_noderpc.errors.ExecutorDied`.
        """
        deadline = time.monotonic() + seconds
        idle = self._enter()
        try:
            try:
                executor = idle.get(timeout=seconds)
            except queue.Empty:
                raise ExecutorsBusy(self._count) from None
            try:
                if executor is None or not executor.lives():
                    executor = _Executor(self._command)
                return executor.run(job, deadline)
            finally:
                self._give_back(idle, executor)
        finally:
            self._leave()

    def _enter(self) -> queue.LifoQueue[_Executor | None]:
        with self._lock:
            if self._process != os.getpid():
                # After a fork the processes are the parent's.
                self._process, self._waiting = os.getpid(), 0
                self._idle = queue.LifoQueue()
                for _ in range(self._count):
                    self._idle.put(None)
            if self._waiting >= self._places:
                raise ExecutorsBusy(self._count)
            self._waiting += 1
            return self._idle

    def _give_back(
        self, idle: queue.LifoQueue[_Executor | None], executor: _Executor | None
    ) -> None:
        with self._lock:
            if executor is not None and idle is not self._idle:
                # It was closed meanwhile.
                executor.end()
            # One that has ended makes room for another.
            idle.put(executor if executor is not None and executor.alive else None)

    def _leave(self) -> None:
        with self._lock:
            self._waiting -= 1

    def close(self) -> None:
        """End the processes: those that work, when they have done."""
        with self._lock:
            if self._process != os.getpid():
                return
            idle, self._process = self._idle, 0
            self._idle = queue.LifoQueue()
        with suppress(queue.Empty):
            while True:
                executor = idle.get_nowait()
                if executor is not None:
                    executor.end()


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
