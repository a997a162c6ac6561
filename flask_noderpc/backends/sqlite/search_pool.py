"""Native threads that search, each with a connection of its own.

A search looks at many rows, and SQLite never yields: on a gevent hub nobody else would get
a turn. There are few such threads, so that many searches take turns among themselves and
leave the processor to the rest; whoever waits too long for a turn is refused.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from ...concurrency import NativeThread
from ...domain.search import SearchLimits
from ...errors import SearchTooCostly
from .connection import Store, sqlite_errors
from .search import bounded

T = TypeVar("T")
Connection = sqlite3.Connection

_THREADS = 2


class SearchPool:
    """The searching threads of one process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turns = _Turns([_Searcher(store, number) for number in range(_THREADS)])
        self._held: list[_Searcher] = []
        self._closed = False

    def run(self, work: Callable[[Connection], T], effort: SearchLimits) -> T:
        """What ``work`` finds in one snapshot; raise :exc:`SearchTooCostly`."""
        deadline = time.monotonic() + effort.seconds
        searcher = self._turns.take(effort.seconds)
        if searcher is None:
            raise SearchTooCostly.by_time(effort.seconds)
        try:
            with sqlite_errors(self._store.shown):
                return searcher.run(work, effort, deadline)
        finally:
            if self._closed:
                searcher.close()
            self._turns.give(searcher)

    def hold(self, patience_s: float) -> bool:
        """Let no search begin, and close everything; whether all under way have ended."""
        deadline = time.monotonic() + patience_s
        for _ in range(_THREADS):
            searcher = self._turns.take(max(0.0, deadline - time.monotonic()))
            if searcher is None:
                return False
            searcher.disconnect()
            self._held.append(searcher)
        return True

    def resume(self) -> None:
        """Let searches begin again."""
        while self._held:
            self._turns.give(self._held.pop())

    def close(self) -> None:
        """Close what is idle now, and what is in use when it is done."""
        self._closed = True
        for searcher in self._turns.idle():
            searcher.close()


class _Turns:
    """Hands the searchers on in the order in which they were asked for.

    A queue would let whoever has just had one take it again before those who wait.
    """

    def __init__(self, searchers: list[_Searcher]) -> None:
        # The last one used comes first: an idle node has but one of them open.
        self._idle = searchers
        self._waiting: deque[Ticket] = deque()
        self._lock = threading.Lock()

    def take(self, timeout: float) -> _Searcher | None:
        """A searcher; ``None`` when there is none in time."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            turn = Ticket()
            self._waiting.append(turn)
        if not turn.has_come.wait(timeout):
            with self._lock:
                # It may have come in this very moment.
                if turn.searcher is None:
                    self._waiting.remove(turn)
        return turn.searcher

    def give(self, searcher: _Searcher) -> None:
        """Hand it to whoever has waited longest."""
        with self._lock:
            if self._waiting:
                turn = self._waiting.popleft()
                turn.searcher = searcher
                turn.has_come.set()
            else:
                self._idle.append(searcher)

    def idle(self) -> tuple[_Searcher, ...]:
        """Those that nobody uses."""
        with self._lock:
            return tuple(self._idle)


class Ticket:
    """One who waits, and what it is given."""

    def __init__(self) -> None:
        self.has_come = threading.Event()
        self.searcher: _Searcher | None = None


class _Searcher:
    def __init__(self, store: Store, number: int) -> None:
        self._store = store
        self._thread = NativeThread(f"noderpc-search-{number}")
        self._connection: Connection | None = None

    def run(self, work: Callable[[Connection], T], effort: SearchLimits, deadline: float) -> T:
        return self._thread.run(lambda: self._search(work, effort, deadline))

    def _search(
        self, work: Callable[[Connection], T], effort: SearchLimits, deadline: float
    ) -> T:
        if self._connection is None:
            self._connection = self._store.open_reader()
        at = self._connection
        at.execute("BEGIN")
        try:
            with bounded(at, effort, deadline):
                return work(at)
        finally:
            at.rollback()

    def disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        # Not on the thread: at the interpreter's end none can be started.
        self.disconnect()
        self._thread.stop()
