"""A connection whose waits for answers end, and take little time under gevent."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.waiting import Ready, Wait

from ..concurrency import wait_until_readable

T = TypeVar("T")

# The first statement of each read takes a millisecond, so a database that does not answer it in
# time hangs. The statements after it may take longer; those that read whole tables say so.
_FIRST_S, _OTHERS_S = 5.0, 60.0
_allowed_s: ContextVar[float] = ContextVar("noderpc_allowed_s", default=0.0)


@contextmanager
def allowing(seconds: float) -> Iterator[None]:
    """Let a statement of this context take so long, if that is longer than usual."""
    token = _allowed_s.set(seconds)
    try:
        yield
    finally:
        _allowed_s.reset(token)


class NoAnswer(psycopg.OperationalError):
    """The database accepts what is sent to it, and answers nothing."""


class GreenConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection for threads and greenlets, which is closed if the database does not answer.

    psycopg would wait for an answer without a limit: the kernel of a host whose database hangs
    still acknowledges what it receives. Under gevent its wait takes longer than most answers
    do.
    """

    _is_checked = False

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Wait only a few seconds for the answer to a statement that takes no time."""
        self._is_checked = True
        try:
            yield
        finally:
            self._is_checked = False

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        """Run what psycopg does on the connection to its end, and return its result; raise
        :exc:`NoAnswer`."""
        seconds = _FIRST_S if self._is_checked else max(_OTHERS_S, _allowed_s.get())
        try:
            if args or kwargs:
                return super().wait(gen, *args, **kwargs)
            wanted = next(gen)
            while True:
                wanted = gen.send(_ready(self.pgconn.socket, wanted, seconds))
        except NoAnswer:
            self.close()
            raise
        except OSError as error:
            raise psycopg.OperationalError("the connection was closed") from error
        except StopIteration as ended:
            result: T = ended.value
            return result


def _ready(descriptor: int, wanted: Wait, seconds: float) -> Ready | int:
    """Wait until a socket is ready; raise :exc:`NoAnswer` if that takes too long."""
    if wanted == Wait.R:
        if not wait_until_readable(descriptor, seconds):
            raise _no_answer(seconds)
        return Ready.R
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT | (select.POLLIN if wanted & Wait.R else 0))
    found = poller.poll(1000 * seconds)
    if not found:
        raise _no_answer(seconds)
    # An error of the socket is met by reading.
    event = found[0][1]
    is_readable = event & ~select.POLLOUT
    return (Ready.R if is_readable else 0) | (Ready.W if event & select.POLLOUT else 0)


def _no_answer(seconds: float) -> NoAnswer:
    return NoAnswer(f"no answer within {seconds:g} s")
