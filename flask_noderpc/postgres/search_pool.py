"""Run searches in the database, three at a time in each process, with a time limit.

The limit of rows is checked by the searches themselves.
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
# Extra seconds to wait for a search: the database itself cancels it at its time limit, unless
# it hangs.
_LATER_S = 5.0


class Read(Protocol):
    """A function that reads in one snapshot, like :meth:`ProcessHandles.read`."""

    def __call__(self, work: Callable[[Connection], T], height: int = HIGHEST) -> T:
        """Run ``work`` in one snapshot and return its result."""


class SearchPool:
    """Runs searches on the read connections, with ``read``; some connections stay free for
    other reads."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._turns = FairQueue(range(_SEARCHES))

    def run(
        self, work: Callable[[Connection], T], limits: SearchLimits, height: int = HIGHEST
    ) -> T:
        """Run ``work`` in one snapshot and return its result; raise :exc:`SearchTooCostly`."""
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
    # Set both for the transaction only, so that they work behind PgBouncer. JIT is off because
    # compiling a statement over many partitions would take seconds.
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
