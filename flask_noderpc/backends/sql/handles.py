"""Handles of an open store, one set in each process.

No connection may cross a fork: two processes would use it at once. So a fork waits until
nothing is read or written, and everything is closed before it; parent and child open again what
they need.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from ...domain.search import HIGHEST, SearchLimits
from ...errors import StoreError
from ..base.location import Location
from ..base.reads import ChainVersion
from . import ledger
from .connection import Connection
from .mempool import Incoming
from .writer import Writer

T = TypeVar("T")


class OpenFiles(Protocol):
    """The files of one backend."""

    def suspend(self) -> None:
        """Close everything, and let nothing begin."""

    def resume(self) -> None:
        """Resume reads and writes."""


_one_at_a_time = threading.Lock()
_watched: WeakSet[OpenFiles] = WeakSet()
_suspended: list[OpenFiles] = []
# Of this process: os.getpid() is a system call, and each read asks.
_process_id = os.getpid()


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
    global _process_id  # noqa: PLW0603  # one number, set at each fork
    _process_id = os.getpid()
    # They belong to the parent; the child opens its own. They are not resumed either: a thread
    # of the parent may have held one of their locks at the fork, which nobody releases here.
    _watched.clear()
    _suspended.clear()
    _one_at_a_time.release()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)


class Readers(Protocol):
    """Connections that only read."""

    def one(self, sql: str, *args: object) -> Any:
        """Return the first row, or ``None``."""

    def snapshot(self) -> AbstractContextManager[Connection]:
        """A connection on which every query sees the same snapshot."""

    def version(self) -> ChainVersion | None:
        """Return the current version of the chain."""

    def shared_read_view(self) -> AbstractContextManager[ChainVersion | None]:
        """Let every query of this thread use one snapshot; yield the chain's version in it."""


class SearchPool(Protocol):
    """Runs searches, a few at a time."""

    def run(
        self, work: Callable[[Connection], T], limits: SearchLimits, height: int = HIGHEST
    ) -> T:
        """Return the result of ``work`` in one snapshot, which need not have more than the
        blocks up to a height; raise :exc:`~flask_noderpc.errors.SearchTooCostly`."""


class Changes(Protocol):
    """Wakes the threads that wait for the store to change."""

    def notify(self) -> None:
        """Wake waiting threads after a write of this process."""

    def wait_until(self, holds: Callable[[], bool], timeout: float) -> bool:
        """Wait until a condition holds, ``timeout`` seconds at most; return true if it does."""


class ProcessHandles(ABC):
    """The open connections of one process; none may cross a fork."""

    readers: Readers
    writer: Writer
    mempool_writer: Writer
    """Writes what needs no lock on the chain."""
    search_pool: SearchPool
    changes: Changes

    def __init__(self) -> None:
        self.process = _process_id
        self.incoming = Incoming()
        self.ledger = ledger.Ledger()
        self.quiet = True
        """True if nothing was open at the last fork."""
        watch(self)

    def read(self, work: Callable[[Connection], T], height: int = HIGHEST) -> T:
        """Return the result of ``work`` in one snapshot, which need not have more than the
        blocks up to a height; it may be called again."""
        with self.readers.snapshot() as at:
            return work(at)

    def latest_height(self) -> int:
        """Return the height of the newest block; 0 while there is none."""
        row = self.readers.one("SELECT max(height) FROM blocks")
        return row[0] or 0

    def read_view(self) -> AbstractContextManager[ChainVersion | None]:
        """Let every query of this thread use one snapshot; yield the chain's version in it."""
        return self.readers.shared_read_view()

    @abstractmethod
    def open(self) -> None:
        """Open the store now, and create its tables if they are missing."""

    @abstractmethod
    def suspend(self) -> None:
        """Close everything, and let nothing begin: the process is about to fork."""

    @abstractmethod
    def resume(self) -> None:
        """Resume reads and writes, which open what they need."""

    @abstractmethod
    def close(self) -> None:
        """Close everything."""


class StoreHandles:
    """Opens a store at the first use in each process: call it for the handles."""

    def __init__(self, location: Location, new: Callable[[], ProcessHandles]) -> None:
        self.location, self._new = location, new
        self._opening = threading.Lock()
        self._files: ProcessHandles | None = None

    def is_open(self) -> bool:
        """Return true if a process has opened the store, and has not closed it."""
        return self._files is not None

    def __call__(self) -> ProcessHandles:
        files = self._files
        if files is not None and files.process == _process_id:
            return files
        with self._opening:
            if self._files is None or self._files.process != _process_id:
                if files is not None and not files.quiet:
                    raise StoreError(
                        "this process was forked while the store was being read; fork before"
                        " the first call, or between calls",
                        self.location.shown,
                    )
                files = self._new()
                try:
                    files.open()
                except BaseException:
                    # A store that can't be opened is tried at each call: leave no thread.
                    files.close()
                    raise
                self._files = files
            return self._files

    def close(self) -> None:
        """Close what this process has opened."""
        files, self._files = self._files, None
        if files is not None and files.process == _process_id:
            files.close()
