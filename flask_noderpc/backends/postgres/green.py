"""A connection whose waits for answers take little time under gevent."""

from __future__ import annotations

import select
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.waiting import Ready, Wait

from ...concurrency import is_patched, wait_until_readable

T = TypeVar("T")


class GreenConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection for greenlets.

    psycopg waits by gevent's ``poll``, which takes longer than most answers do.
    """

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        """Run what psycopg does on the connection to its end, and return its result."""
        if args or kwargs or not is_patched():
            return super().wait(gen, *args, **kwargs)
        try:
            wanted = next(gen)
            while True:
                wanted = gen.send(_ready(self.pgconn.socket, wanted))
        except OSError as error:
            raise psycopg.OperationalError("the connection was closed") from error
        except StopIteration as ended:
            result: T = ended.value
            return result


def _ready(descriptor: int, wanted: Wait) -> Ready | int:
    """Wait until a socket is ready."""
    if wanted == Wait.R:
        wait_until_readable(descriptor)
        return Ready.R
    readable, writable, _ = select.select(
        [descriptor] if wanted & Wait.R else [], [descriptor], []
    )
    return (Ready.R if readable else Ready.NONE) | (Ready.W if writable else Ready.NONE)
