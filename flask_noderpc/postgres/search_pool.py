"""Searches in the database: a few at a time in each process, with a time limit.

Their statements limit the number of rows that they read.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from psycopg import errors

from ..backends.sql.connection import Connection
from ..backends.sql.handles import FairQueue
from ..domain.search import HIGHEST, SearchLimits
from ..errors import SearchTooCostly
from .errors import is_recovery_conflict
from .green import allow_time

T = TypeVar("T")

_SEARCHES = 3
# The database itself ends a statement earlier, unless it hangs.
_LATER_S = 5.0


class Read(Protocol):
    """A function that reads in one snapshot, like :meth:`ProcessHandles.read`."""

    def __call__(self, work: Callable[[Connection], T], height: int = HIGHEST) -> T:
        """Return the result of ``work``."""


class SearchPool:
    """Runs searches by ``read`` on the read connections, some of which stay free for reads."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._turns = FairQueue(range(_SEARCHES))

    def run(
        self, work: Callable[[Connection], T], limits: SearchLimits, height: int = HIGHEST
    ) -> T:
        """Return the result of ``work`` in one snapshot; raise :exc:`SearchTooCostly`."""
        deadline = time.monotonic() + limits.seconds
        turn = self._turns.acquire(limits.seconds)
        if turn is None:
            raise SearchTooCostly.by_time(limits.seconds)
        try:
            with allow_time(limits.seconds + _LATER_S):
                return self._read(
                    lambda at: _run_with_deadline(at, work, limits, deadline), height
                )
        finally:
            self._turns.release(turn)


def _run_with_deadline(
    at: Connection, work: Callable[[Connection], T], limits: SearchLimits, deadline: float
) -> T:
    remaining_ms = max(1, int((deadline - time.monotonic()) * 1000))
    # Settings last until the end of the transaction, so that they work behind PgBouncer. JIT
    # compilation of a statement over many partitions would take seconds.
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
