"""Handles of an open SQLite store.

SQLite keeps the POSIX locks of its process in memory, and the last connection to close
removes the WAL. A child that inherits this memory would write without locks into a WAL that
is gone, and lose it.
"""

from __future__ import annotations

from ..sql.handles import ProcessHandles
from .change_watcher import ChangeWatcher
from .connection import Readers, Store
from .search_pool import SearchPool
from .writer import Writer

# How long a fork waits for reads under way.
_FORK_PATIENCE_S = 5.0


class SQLiteHandles(ProcessHandles):
    """The open files of one process."""

    def __init__(self, store: Store, poll_s: float) -> None:
        self.readers: Readers = Readers(store)
        self.writer: Writer = Writer(store)
        # SQLite has one writer at a time.
        self.mempool_writer = self.writer
        self.search_pool: SearchPool = SearchPool(store, self.readers)
        self.changes: ChangeWatcher = ChangeWatcher(store, poll_s)
        super().__init__()

    def open(self) -> None:
        # The writer recovers the log of a process that was killed, so that readers, which
        # never wait, find the store ready.
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
