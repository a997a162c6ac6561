"""Connections and threads of a backend in one process, closed around a fork.

SQLite keeps books of the locks that its process holds, and a log that the last one to
close a file removes. A child that inherits the books would write beside everyone else,
into a log that is gone, and lose it. So a fork waits until nothing is read or written,
and everything is closed before it; parent and child open again what they need.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet

from . import ledger
from .change_watcher import ChangeWatcher
from .connection import Readers, Store
from .mempool import Incoming
from .search_pool import SearchPool
from .writer import Writer


class OpenFiles(Protocol):
    """The files of one backend."""

    def suspend(self) -> None:
        """Close everything, and let nothing begin."""

    def resume(self) -> None:
        """Resume reads and writes."""


_one_at_a_time = threading.Lock()
_watched: WeakSet[OpenFiles] = WeakSet()
_suspended: list[OpenFiles] = []


def watch(files: OpenFiles) -> None:
    """Close these files before each fork of the process."""
    with _one_at_a_time:
        _watched.add(files)


def _before() -> None:
    _one_at_a_time.acquire()
    _suspended.extend(_watched)
    for files in _suspended:
        files.suspend()


def _after() -> None:
    while _suspended:
        _suspended.pop().resume()
    _one_at_a_time.release()


def _in_child() -> None:
    # They belong to the parent; the child opens its own. They are not resumed either: a thread
    # of the parent may have held one of their locks at the fork, which nobody releases here.
    _watched.clear()
    _suspended.clear()
    _one_at_a_time.release()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)


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
        watch(self)

    def suspend(self) -> None:
        """Close everything, and let nothing begin: the process is about to fork."""
        self.writer.between_writes.__enter__()
        self.writer.disconnect()
        self.changes.suspend()
        searched = self.search_pool.suspend(_FORK_PATIENCE_S)
        self.quiet = self.readers.suspend(_FORK_PATIENCE_S) and searched

    def resume(self) -> None:
        """Resume reads and writes, which open what they need."""
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
