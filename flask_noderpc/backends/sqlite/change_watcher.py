"""Waiting for changes of the store, by this process or others.

Writes of this process notify at once. For writes of others, one of the waiting threads polls
SQLite's ``data_version``, which takes microseconds, a few times a second, for all of them.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from .connection import Store, sqlite_errors


class ChangeWatcher:
    """Wakes the threads that wait for the store to change."""

    def __init__(self, store: Store, poll_s: float) -> None:
        self._store = store
        self._poll_s = poll_s
        self._changed = threading.Condition()
        self._count = 0
        self._is_polled = False
        self._polling = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._version = -1

    def notify(self) -> None:
        """Wake waiting threads after a write of this process."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait_until(self, holds: Callable[[], bool], timeout: float) -> bool:
        """Wait until a condition holds, ``timeout`` seconds at most; return true if it does."""
        deadline = time.monotonic() + timeout
        while True:
            # Taken before the look, so that no change falls between look and wait.
            seen = self._count
            if holds():
                return True
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            self._wait(seen, remaining)

    def _wait(self, seen: int, timeout: float) -> None:
        with self._changed:
            if self._count != seen:
                return
            if self._is_polled:
                self._changed.wait(timeout)
                return
            self._is_polled = True
        try:
            self._poll(seen, timeout)
        finally:
            with self._changed:
                self._is_polled = False
                # Another waiting thread polls from now on.
                self._changed.notify_all()

    def _poll(self, seen: int, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while (remaining := deadline - time.monotonic()) > 0:
            if self._is_new():
                self.notify()
            with self._changed:
                if self._count != seen:
                    return
                self._changed.wait(min(remaining, self._poll_s))

    def _is_new(self) -> bool:
        with self._polling:
            try:
                version = self._data_version()
            except (sqlite3.Error, OSError):
                with sqlite_errors(self._store.shown):
                    raise
            before, self._version = self._version, version
            return version != before

    def _data_version(self) -> int:
        if self._connection is None:
            self._connection = self._store.open_reader()
            # Versions can only be compared on one connection.
            self._version = -1
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def suspend(self) -> None:
        """Close the file, and do not poll it until :meth:`resume`."""
        self._polling.acquire()
        self._close()

    def resume(self) -> None:
        """Poll again."""
        self._polling.release()

    def close(self) -> None:
        """Close the file; the next wait opens it again."""
        with self._polling:
            self._close()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
