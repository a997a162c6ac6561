"""Run searches within limits of rows and time: short ones at once, others on native threads.

SQLite never yields to other greenlets of a gevent hub, so a search that reads many rows runs
on a native thread with its own connection. There are only two such threads: further searches
queue for them, which leaves the CPU to other requests, and are refused if they wait too long.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from ...concurrency import NativeThread
from ...domain.search import HIGHEST, SearchLimits
from ...errors import SearchTooCostly
from ..sql.handles import FairQueue
from .connection import Readers, SQLiteFile, sqlite_errors
from .engine import Connection

# Approximate number of instructions of SQLite's virtual machine per row, and number of
# instructions between two calls of the progress handler.
_STEPS_A_ROW = 12
_STEPS_A_LOOK = 20_000


@contextmanager
def limit_search(
    at: sqlite3.Connection, limits: SearchLimits, deadline: float
) -> Iterator[None]:
    """Raise :exc:`SearchTooCostly` if the statements in this context read more rows than
    allowed, or run after the deadline."""
    allowed = limits.rows * _STEPS_A_ROW
    interval = min(allowed, _STEPS_A_LOOK)
    steps = 0

    def is_too_much() -> bool:
        nonlocal steps
        steps += interval
        return steps > allowed or time.monotonic() > deadline

    at.set_progress_handler(is_too_much, interval)
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        if steps > allowed:
            raise SearchTooCostly.by_rows(limits.rows) from None
    finally:
        at.set_progress_handler(None, 0)
    if time.monotonic() > deadline:
        raise SearchTooCostly.by_time(limits.seconds)


T = TypeVar("T")
_THREADS = 2
# A search of up to this many rows takes less time than switching to another thread.
_FEW_ROWS = 200


class SearchPool:
    """Pool of threads that runs the searches of one process."""

    def __init__(self, store: SQLiteFile, readers: Readers) -> None:
        self._store, self._readers = store, readers
        self._queue = FairQueue([_SearchThread(store, number) for number in range(_THREADS)])
        self._suspended: list[_SearchThread] = []
        self._closed = False

    def run(
        self, work: Callable[[Connection], T], limits: SearchLimits, height: int = HIGHEST
    ) -> T:
        """Run ``work`` in one snapshot and return its result; raise :exc:`SearchTooCostly`.

        ``work`` may be called twice.
        """
        deadline = time.monotonic() + limits.seconds
        few = replace(limits, rows=min(limits.rows, _FEW_ROWS))
        with (
            self._readers.snapshot() as at,
            suppress(SearchTooCostly),
            limit_search(at, few, deadline),
        ):
            return work(at)
        return self._run_in_thread(work, limits, deadline)

    def _run_in_thread(
        self, work: Callable[[Connection], T], limits: SearchLimits, deadline: float
    ) -> T:
        thread = self._queue.acquire(limits.seconds)
        if thread is None:
            raise SearchTooCostly.by_time(limits.seconds)
        try:
            with sqlite_errors(self._store.display_name):
                return thread.run(work, limits, deadline)
        finally:
            if self._closed:
                thread.close()
            self._queue.release(thread)

    def suspend(self, timeout_s: float) -> bool:
        """Block new searches and close the connections; return true if all searches have
        ended."""
        deadline = time.monotonic() + timeout_s
        for _ in range(_THREADS):
            thread = self._queue.acquire(max(0.0, deadline - time.monotonic()))
            if thread is None:
                return False
            thread.disconnect()
            self._suspended.append(thread)
        return True

    def resume(self) -> None:
        """Resume searches."""
        while self._suspended:
            self._queue.release(self._suspended.pop())

    def close(self) -> None:
        """Close idle connections now, and connections in use when their search ends."""
        self._closed = True
        for thread in self._queue.idle():
            thread.close()


class _SearchThread:
    def __init__(self, store: SQLiteFile, number: int) -> None:
        self._store = store
        self._thread = NativeThread(f"noderpc-search-{number}")
        self._connection: Connection | None = None

    def run(self, work: Callable[[Connection], T], limits: SearchLimits, deadline: float) -> T:
        return self._thread.run(lambda: self._search(work, limits, deadline))

    def _search(
        self, work: Callable[[Connection], T], limits: SearchLimits, deadline: float
    ) -> T:
        if self._connection is None:
            self._connection = self._store.open_reader()
        at = self._connection
        at.execute("BEGIN")
        try:
            with limit_search(at, limits, deadline):
                return work(at)
        finally:
            at.rollback()

    def disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        # Disconnect here and not in the thread, which may not have been started: no thread can
        # be started while the interpreter shuts down.
        self.disconnect()
        self._thread.stop()
