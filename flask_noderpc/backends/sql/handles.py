"""Handles of an open store, one set per process.

Two processes must not share a connection. A fork therefore waits until reads and writes have
ended, and closes all connections; parent and child open new ones when they need them.

A write of this process immediately wakes the threads that wait for a change. To notice writes
of other processes, one of the waiting threads polls the store a few times a second for all of
them.
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

from ...domain.search import HIGHEST, SearchLimits
from ...errors import StoreError
from ..base.location import Location
from ..base.reads import ChainVersion
from . import ledger
from .connection import Connection, Engine
from .writer import UnstoredTxs, Writer

T = TypeVar("T")


class FairQueue(Generic[T]):
    """First-come, first-served queue for a fixed set of items.

    With ``queue.Queue`` or a semaphore, a thread that has just released an item could take it
    again before threads that have waited longer.
    """

    def __init__(self, items: Iterable[T]) -> None:
        # Reuse the connection that was released last, so that an idle node has only one open.
        self._idle = list(items)
        self._waiting: deque[_Ticket[T]] = deque()
        self._lock = threading.Lock()

    def acquire(self, timeout: float) -> T | None:
        """Return an idle item; ``None`` after the timeout."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            ticket = _Ticket[T]()
            self._waiting.append(ticket)
        try:
            ticket.ready.wait(timeout)
        except BaseException:
            # The wait was interrupted, for example the greenlet was killed: pass an item that
            # was assigned meanwhile to the next waiting thread.
            item = self._leave(ticket)
            if item is not None:
                self.release(item)
            raise
        return self._leave(ticket)

    def _leave(self, ticket: _Ticket[T]) -> T | None:
        with self._lock:
            # An item may have been assigned just after the timeout.
            if ticket.item is None:
                self._waiting.remove(ticket)
        return ticket.item

    def release(self, item: T) -> None:
        """Assign an item to the thread that has waited longest."""
        with self._lock:
            if self._waiting:
                ticket = self._waiting.popleft()
                ticket.item = item
                ticket.ready.set()
            else:
                self._idle.append(item)

    def idle(self) -> tuple[T, ...]:
        """Return the items that no thread uses."""
        with self._lock:
            return tuple(self._idle)


class _Ticket(Generic[T]):
    """A waiting thread, and the item assigned to it."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.item: T | None = None


def version_sql(engine: Engine) -> str:
    """Return the SELECT of the row for :func:`version_from_row`."""
    return (
        "SELECT (SELECT max(number) FROM rewinds), (SELECT revision FROM chain),"
        f" (SELECT hash FROM {engine.heights} ORDER BY height LIMIT 1),"
        f" (SELECT hash FROM {engine.heights} ORDER BY height DESC LIMIT 1)"
    )


def read_version(at: Connection) -> ChainVersion | None:
    """Return the chain's version."""
    return version_from_row(at.execute(version_sql(at.engine)).fetchone())


def version_from_row(row: Sequence[Any]) -> ChainVersion | None:
    """Build the chain's version from a row of :func:`version_sql`; ``None`` without a
    block."""
    *history, head = row
    # Two chains without a block can't be distinguished.
    return ChainVersion(tuple(history), head) if head else None


class Reader(Connection, Protocol):
    """A read-only connection."""

    def version(self) -> ChainVersion | None:
        """Return the chain's version."""

    def begin(self) -> None:
        """Begin a snapshot."""

    def rollback(self) -> None:
        """End the transaction, if one is open."""

    def close(self) -> None:
        """Close the connection."""


R = TypeVar("R", bound=Reader)


class Readers(ABC, Generic[R]):
    """Pool of read connections; a query or snapshot takes a connection and then returns it."""

    def __init__(self) -> None:
        self._idle: deque[R] = deque()
        self._closed = False
        # No lock guards these, as each read uses them: a read adds itself before it looks
        # whether reads are suspended, and the GIL makes each change of a list or dict atomic.
        self._busy: list[int] = []
        """Threads that hold a connection, once for each connection."""
        self._views: dict[int, R] = {}
        """Snapshots that all queries of a thread use, by thread."""
        self._suspended = False
        self._changed = threading.Condition()

    @abstractmethod
    def _connect(self) -> R:
        """Open another connection."""

    @abstractmethod
    def version(self) -> ChainVersion | None:
        """Return the current version of the chain."""

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Convert the engine's errors to :exc:`~flask_noderpc.errors.StoreError`."""

    def _take(self) -> R:
        thread = threading.get_ident()
        self._busy.append(thread)
        try:
            if self._suspended:
                self._await_resumption(thread)
            with suppress(IndexError):
                return self._idle.pop()
            return self._connect()
        except BaseException:
            self._leave()
            raise

    def _await_resumption(self, thread: int) -> None:
        with self._changed:
            self._busy.remove(thread)
            self._changed.notify_all()
            try:
                # Do not block a thread that already holds a connection: it could never return
                # that one.
                while self._suspended and thread not in self._busy:
                    self._changed.wait()
            finally:
                self._busy.append(thread)

    def one(self, sql: str, *args: object) -> Any:
        """Return the first row, or ``None``."""
        # Convert errors only if one is raised: entering the context manager would slow down
        # each read.
        try:
            view = self._read_view()
            if view is not None:
                return view.execute(sql, args).fetchone()
            connection = self._take()
            try:
                return connection.execute(sql, args).fetchone()
            finally:
                self._give_back(connection)
        except Exception:
            with self._errors():
                raise

    def run(self, work: Callable[[R], T]) -> T:
        """Run ``work`` in one snapshot and return its result."""
        try:
            view = self._read_view()
            if view is not None:
                return work(view)
            connection = self._begin_snapshot()
            try:
                return work(connection)
            finally:
                self._end(connection)
        except Exception:
            with self._errors():
                raise

    @contextmanager
    def snapshot(self) -> Iterator[R]:
        """Yield a connection on which all queries see the same snapshot."""
        try:
            view = self._read_view()
            if view is not None:
                yield view
                return
            connection = self._begin_snapshot()
            try:
                yield connection
            finally:
                self._end(connection)
        except Exception:
            with self._errors():
                raise

    @contextmanager
    def shared_read_view(self) -> Iterator[ChainVersion | None]:
        """Let all queries of this thread use one snapshot; yield its chain version."""
        around = self._read_view()
        try:
            connection = around or self._begin_snapshot()
            try:
                with self.using(connection):
                    yield connection.version()
            finally:
                if around is None:
                    self._end(connection)
        except Exception:
            with self._errors():
                raise

    @contextmanager
    def using(self, view: R) -> Iterator[None]:
        """Let all queries of this thread use a snapshot."""
        thread = threading.get_ident()
        around = self._views.get(thread)
        self._views[thread] = view
        try:
            yield
        finally:
            if around is None:
                del self._views[thread]
            else:
                self._views[thread] = around

    def _begin_snapshot(self) -> R:
        """Return a connection on which a snapshot has begun."""
        connection = self._take()
        try:
            connection.begin()
        except BaseException:
            self._end(connection)
            raise
        return connection

    def _end(self, connection: R) -> None:
        # Roll back instead of committing: nothing was written, and a commit can fail on a
        # corrupt file.
        try:
            connection.rollback()
        finally:
            self._give_back(connection)

    def _read_view(self) -> R | None:
        return self._views.get(threading.get_ident()) if self._views else None

    def _give_back(self, connection: R) -> None:
        self._idle.append(connection)
        if self._closed:
            self.close()
        self._leave()

    def _leave(self) -> None:
        self._busy.remove(threading.get_ident())
        if self._suspended:
            with self._changed:
                self._changed.notify_all()

    def suspend(self, timeout_s: float) -> bool:
        """Block new reads and close the connections; return true if all reads have ended."""
        with self._changed:
            self._suspended = True
            quiet = self._changed.wait_for(lambda: not self._busy, timeout_s)
        self._close_idle()
        return quiet

    def resume(self) -> None:
        """Resume reads."""
        with self._changed:
            self._suspended = False
            self._changed.notify_all()

    def close(self) -> None:
        """Close idle connections now, and connections in use when they are given back."""
        self._closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()


class ChangeWatcher(ABC):
    """Watcher that wakes threads when the store changes."""

    def __init__(self, poll_s: float) -> None:
        self._poll_s = poll_s
        self._changed = threading.Condition()
        self._count = 0
        self._is_polled = False

    def notify(self) -> None:
        """Wake waiting threads after a write of this process."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait_until(self, holds: Callable[[], bool], timeout: float) -> bool:
        """Wait up to ``timeout`` seconds until a condition is true; return its last value."""
        deadline = time.monotonic() + timeout
        while True:
            # Read the count before the check, so that no change between check and wait is
            # missed.
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
                # Wake the others, so that one of them takes over polling.
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

    @abstractmethod
    def _is_new(self) -> bool:
        """Return true if the store has changed since the last call."""


_one_at_a_time = threading.Lock()
_watched: WeakSet[ProcessHandles] = WeakSet()
_suspended: list[ProcessHandles] = []
# PID of this process, cached: os.getpid() is a system call, and each read compares the PID.
_process_id = os.getpid()


def _suspend_all() -> None:
    _one_at_a_time.acquire()
    _suspended.extend(_watched)
    for files in _suspended:
        files.suspend()


def _resume_all() -> None:
    while _suspended:
        _suspended.pop().resume()
    _one_at_a_time.release()


def _discard_in_child() -> None:
    global _process_id  # noqa: PLW0603  # one number, set at each fork
    _process_id = os.getpid()
    # The handles belong to the parent; the child opens its own. Do not resume them in the
    # child: a thread of the parent may have held one of their locks at the fork, which nothing
    # in the child would release.
    _watched.clear()
    _suspended.clear()
    _one_at_a_time.release()


os.register_at_fork(
    before=_suspend_all, after_in_parent=_resume_all, after_in_child=_discard_in_child
)


class SearchPool(Protocol):
    """Pool that runs a few searches at a time."""

    def run(
        self, work: Callable[[Connection], T], limits: SearchLimits, height: int = HIGHEST
    ) -> T:
        """Run ``work`` in one snapshot and return its result; raise
        :exc:`~flask_noderpc.errors.SearchTooCostly`. A replica that has the blocks up to
        ``height`` may be used."""


class ProcessHandles(ABC):
    """The open connections of one process; none may cross a fork."""

    readers: Readers[Any]
    writer: Writer
    mempool_writer: Writer
    """Writer for changes that need no lock on the chain."""
    search_pool: SearchPool
    changes: ChangeWatcher

    def __init__(self) -> None:
        self.process = _process_id
        self.unstored_txs = UnstoredTxs()
        self.ledger = ledger.Ledger()
        self.quiet = True
        """True if no read or write was running at the last fork."""
        # Register these handles, so that they are suspended before each fork.
        with _one_at_a_time:
            _watched.add(self)

    def read(self, work: Callable[[Connection], T], height: int = HIGHEST) -> T:
        """Run ``work`` in one snapshot and return its result. A replica that has the blocks up
        to ``height`` may be used; ``work`` may be called twice."""
        return self.readers.run(work)

    def latest_height(self) -> int:
        """Return the height of the latest block; 0 if no block is stored."""
        row = self.readers.one("SELECT max(height) FROM blocks")
        return row[0] or 0

    def read_view(self) -> AbstractContextManager[ChainVersion | None]:
        """Let all queries of this thread use one snapshot; yield its chain version."""
        return self.readers.shared_read_view()

    @abstractmethod
    def open(self) -> None:
        """Open the store now, and create its tables if they are missing."""

    @abstractmethod
    def suspend(self) -> None:
        """Close all connections and block new reads and writes, because the process is about to
        fork."""

    @abstractmethod
    def resume(self) -> None:
        """Resume reads and writes, which open connections again."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""


class StoreHandles:
    """A store that each process opens at its first use; calling this object returns the
    handles."""

    def __init__(self, location: Location, new: Callable[[], ProcessHandles]) -> None:
        self.location, self._new = location, new
        self._opening = threading.Lock()
        self._files: ProcessHandles | None = None

    def is_open(self) -> bool:
        """Return true if this object has opened the store, in this process or before a fork,
        and not closed it."""
        return self._files is not None

    def __call__(self) -> ProcessHandles:
        files = self._files
        if files is not None and files.process == _process_id:
            return files
        with self._opening:
            if self._files is None or self._files.process != _process_id:
                if files is not None and not files.quiet:
                    raise StoreError(
                        "this process was forked while the store was in use; fork before the"
                        " first call, or between calls",
                        self.location.display_name,
                    )
                files = self._new()
                try:
                    files.open()
                except BaseException:
                    # The next call tries again, so end threads that were started here.
                    files.close()
                    raise
                self._files = files
            return self._files

    def close(self) -> None:
        """Close the connections of this process."""
        files, self._files = self._files, None
        if files is not None and files.process == _process_id:
            files.close()
