"""An executor process: the parent's handle, and the loop that runs jobs in the child.

A job is a callable that can be pickled; it gets what the process was started with.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import ExecutionTimedOut, ExecutorDied

log = logging.getLogger("flask_noderpc.executors")

T = TypeVar("T")
Job = Callable[[Any], T]

_SIZE = struct.Struct(">Q")
_CHUNK = 1 << 16

# What an interpreter needs to start on a busy machine: to kill one that is nearly there and
# start another would never end.
_START_S = 120.0


class Executor:
    """One process that has started, and the socket to it."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it; raise :exc:`~flask_noderpc.errors.ExecutorDied`."""
        try:
            self._process, self._socket = _begun(command)
        except OSError as error:
            # Of a machine that has no memory left, or no file descriptors.
            log.warning("no executor can start: %s", error)
            raise ExecutorDied from None
        self.alive = True
        try:
            _receive(self._socket, deadline=time.monotonic() + _START_S)
        except (OSError, EOFError):
            self.end()
            raise ExecutorDied from None

    def run(self, job: Job[T], deadline: float) -> T:
        """The job's result."""
        try:
            _wait_until(self._socket, deadline)
            _send(self._socket, job)
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


def _begun(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with theirs:
        try:
            process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=environment,
            )
        except OSError:
            ours.close()
            raise
    return process, ours


def _send(to: socket.socket, value: Any) -> None:
    body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    to.sendall(_SIZE.pack(len(body)) + body)


def _receive(sender: socket.socket, deadline: float | None = None) -> Any:
    """The next value; raise :exc:`EOFError` at the end and :exc:`TimeoutError`.

    Nothing follows it: a side sends the next when it has the other's answer.
    """
    parts = [_received(sender, deadline)]
    while len(parts[0]) < _SIZE.size:
        parts[0] += _received(sender, deadline)
    (size,) = _SIZE.unpack_from(parts[0])
    left = _SIZE.size + size - len(parts[0])
    while left:
        parts.append(_received(sender, deadline))
        left -= len(parts[-1])
    return pickle.loads(memoryview(b"".join(parts))[_SIZE.size :])


def _received(sender: socket.socket, deadline: float | None) -> bytes:
    if deadline is not None:
        _wait_until(sender, deadline)
    part = sender.recv(_CHUNK)
    if not part:
        raise EOFError
    return part


def _wait_until(peer: socket.socket, deadline: float) -> None:
    peer.settimeout(max(0.001, deadline - time.monotonic()))


# A thousand calls inside one another, each of a dozen Python frames.
_STACK_BYTES = 512 << 20


def serve(given: object, descriptor: int) -> None:
    """Run the jobs that come over a socket with what is given; ends the process with the other
    side."""
    # A terminal's Ctrl-C is for the parent, which ends us in its own time.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _collect_seldom()
    with socket.socket(fileno=descriptor) as parent:
        # gevent's sockets are made otherwise.
        parent.setblocking(True)
        threading.stack_size(_STACK_BYTES)
        threading.Thread(target=_work, args=(given, parent), daemon=True).start()
        # Also in the middle of a job: nobody waits for it any more.
        end = select.poll()
        end.register(parent, 0)
        end.poll()
        os._exit(0)


def _collect_seldom() -> None:
    """Leave what is loaded out of garbage collection, and collect the rest less often.

    py-evm's states are cycles. CPython's gc: a full collection waits until a quarter as many
    objects are pending as the last one found alive: 80,000, all of them of modules. The calls
    of a transaction are alive until it ends: to look at them each time takes a third of a
    block that is full of calls.
    """
    gc.collect()
    gc.freeze()
    gc.collect()
    gc.set_threshold(10_000, 20, 20)


def _work(given: object, parent: socket.socket) -> None:
    try:
        # Its first job waits for this.
        _send(parent, None)
        while True:
            _answer(parent, _outcome(given, _receive(parent)))
    except (EOFError, OSError):
        os._exit(0)
    except BaseException:
        # A job that can't be read. Without this thread the process would do no job any more.
        traceback.print_exc()
        os._exit(1)


def _outcome(given: object, job: Job[object]) -> tuple[bool, object]:
    try:
        return True, job(given)
    except BaseException as error:
        # PyO3: a panic of Rust code is no Exception.
        return False, _sendable(error)


def _answer(parent: socket.socket, outcome: tuple[bool, object]) -> None:
    try:
        _send(parent, outcome)
    except OSError:
        raise
    except Exception as error:
        _send(parent, (False, RuntimeError(f"the answer can't be sent: {error!r}")))


def _sendable(error: BaseException) -> Exception:
    """The error, or one with its text where it can't be pickled and read again, for which the
    parent would take this process for broken; and where it would end the parent's thread."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"the error can't be sent: {error!r}")
    return error if isinstance(error, Exception) else RuntimeError(repr(error))
