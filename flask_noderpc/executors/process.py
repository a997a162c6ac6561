"""Executor process: the parent's handle of it, and the loop that runs jobs in the child.

A job is a picklable callable. It is called with an object that the child passed to
:func:`serve`. While a job runs, the child may :func:`ask` its parent.
"""

from __future__ import annotations

import copyreg
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
from contextlib import suppress
from dataclasses import fields
from functools import cache
from io import BytesIO
from typing import Any, NoReturn, TypeVar

from ..errors import ExecutionTimedOut, ExecutorDied

log = logging.getLogger("flask_noderpc.executors")

T = TypeVar("T")
Job = Callable[[Any], T]
Answer = Callable[[Any], object]
"""Function of the parent that answers a question of a running job; both are picklable."""


def refuse_questions(question: object) -> NoReturn:
    """Raise an error for any question: the answer of a parent that expects none."""
    raise RuntimeError(f"an executor process asked {question!r}, which it must not")


_SIZE = struct.Struct(">Q")
_CHUNK = 1 << 16

# Start timeout in seconds, long enough for a busy machine: otherwise processes might be killed
# and started again and again before any is ready.
_START_S = 120.0

ANSWERS_S = 300.0
"""Maximum seconds that the answers to a job add to its deadline."""

# Stack of the thread that runs jobs. Some systems give threads much less.
_STACK_BYTES = 8 << 20


_Begun = tuple[subprocess.Popen[bytes], socket.socket]
_early: dict[tuple[str, ...], _Begun | None] = {}


def start_early(command: tuple[str, ...]) -> None:
    """Start a process, which the first :class:`Executor` with the same command uses."""
    # A failure is reported when the process is needed.
    with suppress(OSError):
        _early[command] = _begun(command)


class Executor:
    """Handle of an executor process, with the socket to it."""

    def __init__(self, command: Sequence[str], answer: Answer = refuse_questions) -> None:
        """Start the process; raise :exc:`~flask_noderpc.errors.ExecutorDied`."""
        self._answer = answer
        try:
            early = _early.pop(tuple(command), None)
            self._process, self._socket = early or _begun(command)
        except OSError as error:
            # The machine has no memory or no file descriptors left.
            log.warning(
                "an executor process can't be started; check memory and ulimit: %s", error
            )
            raise ExecutorDied from None
        self.alive = True
        try:
            _receive(self._socket, deadline=time.monotonic() + _START_S)
        except (OSError, EOFError):
            self.end()
            raise ExecutorDied from None

    def run(self, job: Job[T], deadline: float) -> T:
        """Run a job and return its result; raise its exception, or the exception of an answer.

        The time for answers does not count, up to :data:`ANSWERS_S`: the deadline is later by
        as much.
        """
        try:
            done, value, failure = self._exchange(job, deadline)
        except TimeoutError:
            self.end()
            raise ExecutionTimedOut from None
        except BaseException as error:
            # End the process after any error, even if the calling greenlet was killed: the
            # next job must not read this job's result.
            self.end()
            if not isinstance(error, OSError | EOFError):
                raise
            # A job that can't stop by itself sets a timer, which ends its process.
            if self._process.returncode == -signal.SIGALRM:
                raise ExecutionTimedOut("pass a longer timeout with the call") from None
            raise ExecutorDied from None
        if failure is not None:
            raise failure
        if done:
            result: T = value
            return result
        raise value

    def _exchange(self, job: Job[T], deadline: float) -> tuple[bool, Any, Exception | None]:
        """Send a job and answer its questions; return whether it succeeded, its result or
        exception, and the exception of an answer."""
        failure: Exception | None = None
        seconds_left = ANSWERS_S
        _wait_until(self._socket, deadline)
        _send(self._socket, job)
        while True:
            done, value = _receive(self._socket, deadline)
            if done is not None:
                return done, value, failure
            began, answer = time.monotonic(), None
            try:
                answer = self._answer(value)
            except Exception as error:
                failure = error
            seconds = min(time.monotonic() - began, seconds_left)
            seconds_left -= seconds
            deadline += seconds
            if failure is None and time.monotonic() > deadline:
                raise TimeoutError
            _wait_until(self._socket, deadline)
            _send(self._socket, (failure is None, answer))

    def lives(self) -> bool:
        """Return true if the process is alive; an idle process may have been killed."""
        if self._process.poll() is not None:
            self.end()
        return self.alive

    def end(self) -> None:
        """Kill the process."""
        self.alive = False
        self._socket.close()
        self._process.kill()
        self._process.wait()


def _begun(command: Sequence[str]) -> _Begun:
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
    body = pickled(value)
    to.sendall(_SIZE.pack(len(body)) + body)


def pickled(value: object) -> bytes:
    """Pickle a value. Frozen dataclasses with slots take a third of the usual time."""
    file = BytesIO()
    pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _REDUCERS
    pickler.dump(value)
    return file.getvalue()


class _Reducers(dict[type, Callable[[Any], Any]]):
    """Functions that reduce an object to what pickle writes, by class.

    The methods that the standard library generates look up the fields of each object.
    """

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        if not _is_standard(kind):
            return copyreg.dispatch_table[kind]
        names = tuple(field.name for field in fields(kind))

        def reduce(value: object) -> tuple[Callable[..., object], tuple[object, ...]]:
            return _rebuilt, (kind, [getattr(value, name) for name in names])

        self[kind] = reduce
        return reduce


_REDUCERS = _Reducers()


def _is_standard(kind: Any) -> bool:
    """Return true for a frozen dataclass with a slot for each field, which is made and pickled
    by the methods that the standard library generates."""
    generated = vars(kind).get("__getstate__"), vars(kind).get("__setstate__")
    return (
        all(getattr(each, "__module__", "") == "dataclasses" for each in generated)
        and kind.__new__ is object.__new__
        and kind.__reduce__ is object.__reduce__
        and kind.__reduce_ex__ is object.__reduce_ex__
        and all(hasattr(getattr(kind, field.name), "__set__") for field in fields(kind))
    )


def _rebuilt(kind: Any, values: Sequence[object]) -> object:
    """Return an object of a dataclass with these values of its fields."""
    made = object.__new__(kind)
    for put, value in zip(_setters(kind), values, strict=True):
        put(made, value)
    return made


@cache
def _setters(kind: Any) -> tuple[Callable[[object, object], None], ...]:
    # A class of slots has a descriptor for each field, whose setter a frozen class allows.
    return tuple(getattr(kind, field.name).__set__ for field in fields(kind))


def _receive(sender: socket.socket, deadline: float | None = None) -> Any:
    """Receive a value; raise :exc:`EOFError` at the end of the stream, or :exc:`TimeoutError`.

    The data received ends with the value, because each side only sends its next value after
    the other's response.
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


class _NoAnswer(Exception):
    """The parent failed to answer; it raises the reason when the job has ended."""


_parent: socket.socket


def ask(question: object) -> Any:
    """Return the parent's answer to a question of the running job."""
    _send(_parent, (None, question))
    has_answer, answer = _receive(_parent)
    if not has_answer:
        raise _NoAnswer
    return answer


def serve(given: object, descriptor: int) -> None:
    """Run the jobs that arrive on a socket, passing ``given`` to each; exit when the parent
    closes the socket."""
    # Ignore Ctrl-C, which a terminal sends to all processes: the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _collect_seldom()
    global _parent  # noqa: PLW0603  # a process has one parent
    with socket.socket(fileno=descriptor) as parent:
        _parent = parent
        # Set blocking mode, because with gevent the parent creates non-blocking sockets.
        parent.setblocking(True)
        threading.stack_size(_STACK_BYTES)
        threading.Thread(target=_work, args=(given, parent), daemon=True).start()
        # Wait until the parent closes the socket, and exit even in the middle of a job, whose
        # result would have no receiver.
        end = select.poll()
        end.register(parent, 0)
        end.poll()
        os._exit(0)


def _collect_seldom() -> None:
    """Exclude loaded objects from garbage collection, and collect other objects less often.

    Open call frames stay alive, and scanning them again and again would take a third of the
    time of deeply nested calls. Freezing the 80,000 objects of loaded modules keeps full
    collections frequent: CPython delays them until new objects are a quarter of those that
    survived.
    """
    gc.collect()
    gc.freeze()
    gc.collect()
    gc.set_threshold(10_000, 20, 20)


def _work(given: object, parent: socket.socket) -> None:
    try:
        # Tell the parent that this process is ready for jobs.
        _send(parent, None)
        while True:
            _answer(parent, _outcome(given, _receive(parent)))
    except (EOFError, OSError):
        os._exit(0)
    except BaseException:
        # The job can't be unpickled: exit, because the process can't run jobs without this
        # thread.
        traceback.print_exc()
        os._exit(1)


def _outcome(given: object, job: Job[object]) -> tuple[bool, object]:
    try:
        return True, job(given)
    except BaseException as error:
        # Catch BaseException, which a panic in Rust code (PyO3) raises.
        return False, _sendable(error)


def _answer(parent: socket.socket, outcome: tuple[bool, object]) -> None:
    try:
        _send(parent, outcome)
    except OSError:
        raise
    except Exception as error:
        _send(parent, (False, RuntimeError(f"the job's result can't be pickled: {error!r}")))


def _sendable(error: BaseException) -> Exception:
    """Return the error, or a RuntimeError with its text if the error can't be pickled, or is
    not an Exception and would end the parent's thread."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"the job's error can't be pickled: {error!r}")
    return error if isinstance(error, Exception) else RuntimeError(repr(error))
