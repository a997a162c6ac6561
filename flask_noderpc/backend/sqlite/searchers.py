"""Native threads that search, each with a connection of its own.

A search looks at many rows, and SQLite never yields: on a gevent hub nobody else would get
a turn. There are few such threads, so that many searches take turns among themselves and
leave the processor to the rest; whoever waits too long for a turn is refused.
"""

from __future__ import annotations

import queue
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from ...concurrency import NativeThread
from ...domain.search import Effort
from ...errors import SearchTooCostly
from .connection import Store, translated
from .search import bounded

T = TypeVar("T")
Connection = sqlite3.Connection

_THREADS = 2


class Searchers:
    """The searching threads of one process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # The last one used comes first: an idle node has but one of them open.
        self._free: queue.LifoQueue[_Searcher] = queue.LifoQueue()
        self._held: list[_Searcher] = []
        self._closed = False
        for number in range(_THREADS):
            self._free.put(_Searcher(store, number))

    def run(self, work: Callable[[Connection], T], effort: Effort) -> T:
        """What ``work`` finds in one snapshot; raise :exc:`SearchTooCostly`."""
        deadline = time.monotonic() + effort.seconds
        try:
            searcher = self._free.get(timeout=effort.seconds)
        except queue.Empty:
            raise SearchTooCostly.by_time(effort.seconds) from None
        try:
            with translated(self._store.path):
                return searcher.run(work, effort, deadline)
        finally:
            if self._closed:
                searcher.close()
            self._free.put(searcher)

    def hold(self, patience_s: float) -> bool:
        """Let no search begin, and close everything; whether all under way have ended."""
        deadline = time.monotonic() + patience_s
        with suppress(queue.Empty):
            for _ in range(_THREADS):
                self._held.append(self._free.get(timeout=max(0.0, deadline - time.monotonic())))
        for searcher in self._held:
            searcher.let_go()
        return len(self._held) == _THREADS

    def go_on(self) -> None:
        """Let searches begin again."""
        while self._held:
            self._free.put(self._held.pop())

    def close(self) -> None:
        """Close what is idle now, and what is in use when it is done."""
        self._closed = True
        with suppress(queue.Empty):
            while True:
                self._free.get_nowait().close()


class _Searcher:
    def __init__(self, store: Store, number: int) -> None:
        self._store = store
        self._thread = NativeThread(f"noderpc-search-{number}")
        self._connection: Connection | None = None

    def run(self, work: Callable[[Connection], T], effort: Effort, deadline: float) -> T:
        return self._thread.run(lambda: self._search(work, effort, deadline))

    def _search(self, work: Callable[[Connection], T], effort: Effort, deadline: float) -> T:
        if self._connection is None:
            self._connection = self._store.open_reader()
        at = self._connection
        at.execute("BEGIN")
        try:
            with bounded(at, effort, deadline):
                return work(at)
        finally:
            at.rollback()

    def let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        self._thread.run(self.let_go)
        self._thread.stop()
