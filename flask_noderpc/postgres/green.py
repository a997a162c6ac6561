"""A psycopg connection with a timeout for responses, and with little overhead under gevent."""

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

# Seconds to wait for the first statement of each read, which takes a millisecond unless the
# database hangs, and for later statements. Reads of whole tables set more (`allow_time`).
_FIRST_S, _OTHERS_S = 5.0, 60.0
_allowed_s: ContextVar[float] = ContextVar("noderpc_allowed_s", default=0.0)


@contextmanager
def allow_time(seconds: float) -> Iterator[None]:
    """Allow each statement in this context this many seconds, if that is more than usual."""
    token = _allowed_s.set(seconds)
    try:
        yield
    finally:
        _allowed_s.reset(token)


class DatabaseNotResponding(psycopg.OperationalError):
    """The database did not respond in time, although its host accepts data."""


class GreenConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection for threads and greenlets that is closed if the database does not respond
    in time.

    psycopg itself would wait without a limit, because the kernel of a host whose database
    hangs still acknowledges data. Under gevent, psycopg's way of waiting takes longer than
    most responses.
    """

    _is_checked = False

    @contextmanager
    def expect_fast_response(self) -> Iterator[None]:
        """Wait at most 5 seconds for each response in this context, which only has fast
        statements."""
        self._is_checked = True
        try:
            yield
        finally:
            self._is_checked = False

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        """Run one of psycopg's generators, which waits for the socket, and return its result;
        raise :exc:`DatabaseNotResponding`."""
        seconds = _FIRST_S if self._is_checked else max(_OTHERS_S, _allowed_s.get())
        try:
            if args or kwargs:
                return super().wait(gen, *args, **kwargs)
            wanted = next(gen)
            while True:
                wanted = gen.send(_ready(self.pgconn.socket, wanted, seconds))
        except DatabaseNotResponding:
            self.close()
            raise
        except OSError as error:
            raise psycopg.OperationalError("the connection was closed") from error
        except StopIteration as ended:
            result: T = ended.value
            return result


def _ready(descriptor: int, wanted: Wait, seconds: float) -> Ready | int:
    """Wait until a socket is ready for the wanted operation; raise
    :exc:`DatabaseNotResponding` after the timeout."""
    if wanted == Wait.R:
        if not wait_until_readable(descriptor, seconds):
            raise _no_answer(seconds)
        return Ready.R
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT | (select.POLLIN if wanted & Wait.R else 0))
    found = poller.poll(1000 * seconds)
    if not found:
        raise _no_answer(seconds)
    # Report a socket error as readable: reading then raises it.
    event = found[0][1]
    is_readable = event & ~select.POLLOUT
    return (Ready.R if is_readable else 0) | (Ready.W if event & select.POLLOUT else 0)


def _no_answer(seconds: float) -> DatabaseNotResponding:
    return DatabaseNotResponding(f"no response within {seconds:g} s")
