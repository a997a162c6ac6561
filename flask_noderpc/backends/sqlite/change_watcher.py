"""Polls SQLite's ``data_version``, which takes microseconds."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import suppress

from ..sql import change_watcher
from .connection import Store, sqlite_errors


class ChangeWatcher(change_watcher.ChangeWatcher):
    """Wakes the threads that wait for the store to change."""

    def __init__(self, store: Store, poll_s: float) -> None:
        super().__init__(poll_s)
        self._store = store
        self._polling = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._version = -1

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
