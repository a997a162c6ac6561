"""Handles of an open SQLite store, one set in each process.

SQLite keeps the POSIX locks of its process in memory, and the last connection to close
removes the WAL. A child that inherits this memory would write without locks into a WAL that
is gone, and lose it. So a fork waits until nothing is read or written, and everything is
closed before it; parent and child open again what they need.
"""

from __future__ import annotations

import os
import shutil
import threading
from typing import Protocol
from weakref import WeakSet

from ...domain.genesis import Genesis
from ...errors import StoreError
from ..base.store import ChainStore, Location
from ..sql import ledger
from ..sql.chain import Beginning
from ..sql.mempool import Incoming
from .change_watcher import ChangeWatcher
from .connection import Readers, Store
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


# The transaction of a block needs some pages at least.
_MIN_FREE_BYTES = 1 << 16


class OpenedStore(ChainStore):
    """Opens the file at the first use in each process; no handle crosses a fork."""

    def __init__(self, store: Store, poll_s: float) -> None:
        self._store = store
        self._poll_s = poll_s
        self._opening = threading.Lock()
        self._files: ProcessHandles | None = None
        self._genesis: Genesis | None = None
        self._beginning: Beginning | None = None

    @property
    def path(self) -> str:
        """The file's name or URI, as given."""
        return self._store.path

    @property
    def location(self) -> Location:
        return self._store

    @property
    def read_only(self) -> bool:
        return self._store.read_only

    def has_free_space(self) -> bool:
        return shutil.disk_usage(self._store.real_file.parent).free >= _MIN_FREE_BYTES

    def _open(self) -> ProcessHandles:
        files = self._files
        if files is not None and files.process == os.getpid():
            return files
        with self._opening:
            if self._files is None or self._files.process != os.getpid():
                if files is not None and not files.quiet:
                    raise StoreError(
                        "this process was forked while the store was being read; fork before"
                        " the first call, or between calls",
                        self._store.shown,
                    )
                files = ProcessHandles(self._store, self._poll_s)
                # The writer recovers the log of a process that was killed, so that
                # readers, which never wait, find the store ready.
                try:
                    files.writer.open()
                except BaseException:
                    # A store that can't be opened is tried at each call: leave no thread.
                    files.close()
                    raise
                self._files = files
            return self._files

    def close(self) -> None:
        self._genesis = self._beginning = None
        if self.abci is not None:
            self.abci.close()
        files, self._files = self._files, None
        if files is not None and files.process == os.getpid():
            files.close()
