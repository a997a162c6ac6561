"""Searches in the database, a few at a time in each process, with a time limit.

Their statements limit the rows that they look at."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from psycopg import errors

from ...domain.search import SearchLimits
from ...errors import SearchTooCostly
from ..sql.connection import Connection
from ..sql.turns import Turns
from .readers import Readers

T = TypeVar("T")

_SEARCHES = 3


class SearchPool:
    """Runs searches on the connections of reads, of which it leaves some to them."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._turns = Turns(range(_SEARCHES))

    def run(self, work: Callable[[Connection], T], limits: SearchLimits) -> T:
        """Return the result of ``work`` in one snapshot; raise :exc:`SearchTooCostly`."""
        deadline = time.monotonic() + limits.seconds
        turn = self._turns.acquire(limits.seconds)
        if turn is None:
            raise SearchTooCostly.by_time(limits.seconds)
        try:
            with self._readers.snapshot() as at:
                return _bounded(at, work, limits, deadline)
        finally:
            self._turns.release(turn)


def _bounded(
    at: Connection, work: Callable[[Connection], T], limits: SearchLimits, deadline: float
) -> T:
    remaining_ms = max(1, int((deadline - time.monotonic()) * 1000))
    # To the end of the transaction, so that it holds behind PgBouncer.
    at.execute(f"SET LOCAL statement_timeout = {remaining_ms}")
    try:
        found = work(at)
    except errors.QueryCanceled:
        raise SearchTooCostly.by_time(limits.seconds) from None
    if time.monotonic() > deadline:
        raise SearchTooCostly.by_time(limits.seconds)
    return found
