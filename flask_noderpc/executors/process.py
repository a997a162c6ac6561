"""An executor process: the parent's handle, and the loop that runs jobs in the child.

A job is a callable that can be pickled; it gets what the process was started with.
"""

from __future__ import annotations

import gc
import os
import pickle
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import ExecutionTimedOut, ExecutorDied

T = TypeVar("T")
Job = Callable[[Any], T]

_SIZE = struct.Struct(">Q")
_CHUNK = 1 << 20

# What an interpreter needs to start on a busy machine: to kill one that is nearly there and
# start another would never end.
_START_S = 120.0


class Executor:
    """One process that has started, and the socket to it."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it; raise :exc:`~flask_noderpc.errors.ExecutorDied`."""
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
        try:
            _receive(ours, time.monotonic() + _START_S)
        except (OSError, EOFError):
            self.end()
            raise ExecutorDied from None

    def run(self, job: Job[T], deadline: float) -> T:
        """The job's result."""
        try:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            send(self._socket, job)
            done, value = _receive(self._socket, deadline)
        except TimeoutError:
            self.end()
            raise ExecutionTimedOut from None
        except BaseException as error:
            # The caller may be ended too: the answer must not go to the next.
            self.end()
            if isinstance(error, OSError | EOFError):
                raise ExecutorDied from None
            raise
        if done:
            result: T = value
            return result
        raise value

    def lives(self) -> bool:
        """True if the process is alive; one may be killed while it has nothing to do."""
        if self._process.poll() is not None:
            self.end()
        return self.alive

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


# A thousand calls inside one another, each of a dozen Python frames.
_STACK_BYTES = 512 << 20


def serve(given: object, descriptor: int) -> None:
    """Run the jobs that come over a socket with what is given; ends the process with the other
    side."""
    # A terminal's Ctrl-C is for the parent, which ends us in its own time.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _freeze_loaded()
    jobs: queue.SimpleQueue[Job[object]] = queue.SimpleQueue()
    with socket.socket(fileno=descriptor) as parent:
        threading.stack_size(_STACK_BYTES)
        threading.Thread(target=_work, args=(given, jobs, parent), daemon=True).start()
        try:
            # Its job waits for this.
            send(parent, None)
            while True:
                jobs.put(receive(parent, lambda: None))
        except (EOFError, OSError):
            # Also in the middle of a job: nobody waits for it any more.
            os._exit(0)


def _freeze_loaded() -> None:
    """Leave what is loaded out of garbage collection.

    py-evm's states are cycles. CPython's gc: a full collection waits until a quarter as many
    objects are pending as the last one found alive: 80,000, all of them of modules.
    """
    gc.collect()
    gc.freeze()
    gc.collect()


def _work(given: object, jobs: queue.SimpleQueue[Job[object]], parent: socket.socket) -> None:
    while True:
        job = jobs.get()
        try:
            outcome = True, job(given)
        except BaseException as error:
            # PyO3: a panic of Rust code is no Exception. Without this thread the process would
            # do no job any more.
            outcome = False, _sendable(error)
        try:
            send(parent, outcome)
        except OSError:
            os._exit(0)
        except Exception as error:
            send(parent, (False, RuntimeError(f"the answer can't be sent: {error!r}")))


def _sendable(error: BaseException) -> Exception:
    """The error, or one with its text where it can't be pickled and read again, for which the
    parent would take this process for broken; and where it would end the parent's thread."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"the error can't be sent: {error!r}")
    return error if isinstance(error, Exception) else RuntimeError(repr(error))
