"""Connections and threads of a backend in one process, closed around a fork."""

from __future__ import annotations

import os

from . import forks, ledger
from .change_watcher import ChangeWatcher
from .connection import Readers, Store
from .incoming import Incoming
from .search_pool import SearchPool
from .writer import Writer

# How long a fork waits for reads under way.
_FORK_PATIENCE_S = 5.0


class ProcessHandles:
    """The open files of one process; no SQLite handle may cross a fork."""

    def __init__(self, store: Store, poll_s: float) -> None:
        self.process = os.getpid()
        self.readers = Readers(store)
        self.writer = Writer(store)
        self.incoming = Incoming()
        self.ledger = ledger.Ledger()
        self.search_pool = SearchPool(store)
        self.changes = ChangeWatcher(store, poll_s)
        self.quiet = True
        """True if nothing was open at the last fork."""
        forks.watch(self)

    def suspend(self) -> None:
        """Close everything, and let nothing begin: the process is about to fork."""
        self.writer.between_writes.__enter__()
        self.writer.disconnect()
        self.changes.suspend()
        searched = self.search_pool.suspend(_FORK_PATIENCE_S)
        self.quiet = self.readers.suspend(_FORK_PATIENCE_S) and searched

    def resume(self) -> None:
        """Let reads and writes begin again; they open what they need."""
        self.readers.resume()
        self.search_pool.resume()
        self.changes.resume()
        self.writer.between_writes.__exit__(None, None, None)

    def close(self) -> None:
        """Close everything."""
        self.readers.close()
        self.search_pool.close()
        self.changes.close()
        self.writer.close()
