"""Searches in the database, a few at a time in each process, with a time limit.

Their statements limit the rows that they look at."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from psycopg import errors

from ..backends.sql.connection import Connection
from ..backends.sql.handles import Turns
from ..domain.search import HIGHEST, SearchLimits
from ..errors import SearchTooCostly
from .errors import is_recovery_conflict
from .green import allowing

T = TypeVar("T")

_SEARCHES = 3
# The database ends a statement earlier, unless it hangs.
_LATER_S = 5.0


class Read(Protocol):
    """Reads in one snapshot, as :meth:`ProcessHandles.read` does."""

    def __call__(self, work: Callable[[Connection], T], height: int = HIGHEST) -> T:
        """Return the result of ``work``."""


class SearchPool:
    """Runs searches by ``read``, on the connections of reads, of which it leaves some to
    them."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._turns = Turns(range(_SEARCHES))

    def run(
        self, work: Callable[[Connection], T], limits: SearchLimits, height: int = HIGHEST
    ) -> T:
        """Return the result of ``work`` in one snapshot; raise :exc:`SearchTooCostly`."""
        deadline = time.monotonic() + limits.seconds
        turn = self._turns.acquire(limits.seconds)
        if turn is None:
            raise SearchTooCostly.by_time(limits.seconds)
        try:
            with allowing(limits.seconds + _LATER_S):
                return self._read(lambda at: _bounded(at, work, limits, deadline), height)
        finally:
            self._turns.release(turn)


def _bounded(
    at: Connection, work: Callable[[Connection], T], limits: SearchLimits, deadline: float
) -> T:
    remaining_ms = max(1, int((deadline - time.monotonic()) * 1000))
    # To the end of the transaction, so that it holds behind PgBouncer. Compiling a statement
    # of many partitions takes seconds.
    at.execute(
        f"SELECT set_config('statement_timeout', '{remaining_ms}', true),"
        " set_config('jit', 'off', true)"
    )
    try:
        found = work(at)
    except errors.QueryCanceled as error:
        if is_recovery_conflict(error):
            raise
        raise SearchTooCostly.by_time(limits.seconds) from None
    if time.monotonic() > deadline:
        raise SearchTooCostly.by_time(limits.seconds)
    return found
