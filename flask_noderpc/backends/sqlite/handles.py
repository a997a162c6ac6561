"""Handles of an open SQLite store.

Connections are closed before a fork: SQLite keeps track of its process's POSIX locks in
memory, and the last connection to close removes the WAL. A child process that inherits this
memory would write to a deleted WAL without locks, and lose the data.

One thread with one connection writes for a process. It also keeps the WAL small: SQLite
checkpoints every few megabytes and then restarts the WAL, but not while a reader uses it.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from contextlib import AbstractContextManager, suppress
from typing import Any

from ...concurrency import native_lock
from ...errors import StoreError
from ..sql import handles
from ..sql.handles import ProcessHandles
from ..sql.writer import Job
from ..sql.writer import Writer as GroupedWriter
from . import wal
from .connection import Readers, SQLiteFile, sqlite_errors
from .engine import Connection
from .search_pool import SearchPool

log = logging.getLogger("flask_noderpc.store")

# Milliseconds for which a checkpoint (and the write before it) may wait for readers, more for
# a larger WAL, and the maximum. Checkpoints may take at most 1/20 of the time.
_PATIENCE_MS, _MAX_PATIENCE_MS = 100, 1_000
_SHARE = 20


class Checkpoints:
    """Truncates the WAL when it has become large."""

    def __init__(self, store: SQLiteFile) -> None:
        self._store = store
        self._not_before = 0.0
        self._warned = False

    def after_write(self, connection: sqlite3.Connection) -> None:
        """Truncate the WAL if it is large; a failure does not affect the write."""
        size, limit = self._store.log_bytes(), self._store.max_log_bytes
        if size <= limit:
            self._warned = False
            return
        if time.monotonic() >= self._not_before:
            patience = min(_PATIENCE_MS * size // limit, _MAX_PATIENCE_MS)
            if not _empty_log(connection, patience):
                # Log only larger sizes, as overlapping readers let the WAL grow a little.
                if size > 2 * limit:
                    self._log_failure()
                self._not_before = time.monotonic() + _SHARE * patience / 1000

    def _log_failure(self) -> None:
        if self._warned:
            return
        self._warned = True
        log.warning(
            "%s-wal has %s MB and grows, because a backup, a verification or another program"
            " has read the store for long; it is emptied when that transaction ends",
            self._store.file,
            self._store.log_bytes() >> 20,
        )


def _empty_log(connection: sqlite3.Connection, patience_ms: int) -> bool:
    (usual,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {patience_ms}").fetchone()
    try:
        (busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        log.warning("WAL checkpoint failed, and is tried again after the next write: %s", error)
        return True
    finally:
        connection.execute(f"PRAGMA busy_timeout = {usual}").fetchone()
    return not busy


class Writer(GroupedWriter):
    """Writer of a SQLite file, with the connection that creates the file and its tables."""

    def __init__(self, store: SQLiteFile) -> None:
        super().__init__("noderpc-writer")
        self._store = store
        self._connection: Connection | None = None
        self._file: tuple[int, int] | None = None
        self._checkpoints = Checkpoints(store)
        self.between_writes = native_lock()

    def open(self) -> None:
        """Open the store now instead of at the first write."""
        self._thread.run(self._open_between)

    def _open_between(self) -> None:
        with self.between_writes:
            self._open()

    def _open(self) -> Connection:
        if self._connection is None:
            with sqlite_errors(self._store.display_name):
                self._connection = self._store.open_writer()
                self._file = self._store.identity()
        elif self._file != self._store.identity():
            # Stop here: SQLite would continue to write to the old file, which has no name any
            # more.
            raise StoreError(
                "the file was removed or replaced while in use: restart all processes",
                self._store.display_name,
            )
        self._store.check_log()
        return self._connection

    def _errors(self) -> AbstractContextManager[None]:
        return sqlite_errors(self._store.display_name)

    def _commit(self, jobs: list[Job[Any]]) -> None:
        with self.between_writes:
            connection = self._open()
            self._transact(connection, jobs)
            self._checkpoints.after_write(connection)

    def _transact(self, connection: Connection, jobs: list[Job[Any]]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        changes = connection.total_changes
        try:
            for job in jobs:
                job.run(connection)
                if not connection.in_transaction:
                    raise job.error or sqlite3.OperationalError("the transaction was lost")
            if connection.total_changes != changes and not all(job.error for job in jobs):
                wal.increment_version(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def disconnect(self) -> None:
        """Close the file between two writes; the next write opens it again."""
        connection, self._connection = self._connection, None
        self._store.forget_log()
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Finish the queued writes and close the file."""
        if self._waiting:
            self._thread.run(self._write_jobs)
        connection, self._connection = self._connection, None
        # Forget the WAL first: the last connection to close removes it, and a read in progress
        # may still open another connection, which checks it.
        self._store.forget_log()
        if connection is not None:
            self._thread.run(connection.close)
        self._thread.stop()


class ChangeWatcher(handles.ChangeWatcher):
    """Watcher that wakes threads when the file changes."""

    def __init__(self, store: SQLiteFile, poll_s: float) -> None:
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
                with sqlite_errors(self._store.display_name):
                    raise
            before, self._version = self._version, version
            return version != before

    def _data_version(self) -> int:
        if self._connection is None:
            self._connection = self._store.open_reader()
            # Data versions of another connection are not comparable.
            self._version = -1
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def suspend(self) -> None:
        """Close the file, and stop polling it until :meth:`resume`."""
        self._polling.acquire()
        self._close()

    def resume(self) -> None:
        """Resume polling."""
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


# Seconds for which a fork waits for reads in progress.
_FORK_PATIENCE_S = 5.0


class SQLiteHandles(ProcessHandles):
    """The open connections of one process to the file."""

    def __init__(self, store: SQLiteFile, poll_s: float) -> None:
        self.readers: Readers = Readers(store)
        self.writer: Writer = Writer(store)
        # SQLite allows one writer at a time, so the mempool uses the same thread.
        self.mempool_writer = self.writer
        self.search_pool: SearchPool = SearchPool(store, self.readers)
        self.changes: ChangeWatcher = ChangeWatcher(store, poll_s)
        super().__init__()

    def open(self) -> None:
        # Open the writer first, which recovers the WAL of a killed process: readers could not
        # wait for the lock that this takes.
        self.writer.open()

    def suspend(self) -> None:
        self.writer.between_writes.__enter__()
        self.writer.disconnect()
        self.changes.suspend()
        searched = self.search_pool.suspend(_FORK_PATIENCE_S)
        self.quiet = self.readers.suspend(_FORK_PATIENCE_S) and searched

    def resume(self) -> None:
        self.readers.resume()
        self.search_pool.resume()
        self.changes.resume()
        self.writer.between_writes.__exit__(None, None, None)

    def close(self) -> None:
        self.readers.close()
        self.search_pool.close()
        self.changes.close()
        self.writer.close()
