"""Handles of an open store, one set in each process.

No connection may cross a fork: two processes would use it at once. So a fork waits until
nothing is read or written, and everything is closed before it; parent and child open again what
they need.

Writes of this process wake the threads that wait for a change at once. For writes of others,
one of these threads polls the store a few times a second, for all of them.
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
from .writer import Incoming, Writer

T = TypeVar("T")


class Turns(Generic[T]):
    """Queue of users for what is idle, first come, first served.

    ``queue.Queue`` and semaphores would let the last user take a thing again before those that
    wait.
    """

    def __init__(self, things: Iterable[T]) -> None:
        # The last one used comes first: an idle node has but one of them open.
        self._idle = list(things)
        self._waiting: deque[_Ticket[T]] = deque()
        self._lock = threading.Lock()

    def acquire(self, timeout: float) -> T | None:
        """Return what is idle; ``None`` after the timeout."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            ticket = _Ticket[T]()
            self._waiting.append(ticket)
        try:
            ticket.ready.wait(timeout)
        except BaseException:
            # Such as the end of a greenlet: what it got meanwhile is for the next one.
            thing = self._leave(ticket)
            if thing is not None:
                self.release(thing)
            raise
        return self._leave(ticket)

    def _leave(self, ticket: _Ticket[T]) -> T | None:
        with self._lock:
            # It may have become ready just after the timeout.
            if ticket.thing is None:
                self._waiting.remove(ticket)
        return ticket.thing

    def release(self, thing: T) -> None:
        """Give it to whoever has waited longest."""
        with self._lock:
            if self._waiting:
                ticket = self._waiting.popleft()
                ticket.thing = thing
                ticket.ready.set()
            else:
                self._idle.append(thing)

    def idle(self) -> tuple[T, ...]:
        """Return what nobody uses."""
        with self._lock:
            return tuple(self._idle)


class _Ticket(Generic[T]):
    """A waiting user, and what it gets."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.thing: T | None = None


def version_sql(engine: Engine) -> str:
    """Return the SELECT of the version of the chain."""
    return (
        "SELECT (SELECT max(number) FROM rewinds), (SELECT revision FROM chain),"
        f" (SELECT hash FROM {engine.heights} ORDER BY height LIMIT 1),"
        f" (SELECT hash FROM {engine.heights} ORDER BY height DESC LIMIT 1)"
    )


def read_version(at: Connection) -> ChainVersion | None:
    """Return the version of the chain."""
    return version_of(at.execute(version_sql(at.engine)).fetchone())


def version_of(row: Sequence[Any]) -> ChainVersion | None:
    """Return the version in a row."""
    *history, head = row
    # Two chains without a block can't be distinguished.
    return ChainVersion(tuple(history), head) if head else None


class Reader(Connection, Protocol):
    """A connection that only reads."""

    def version(self) -> ChainVersion | None:
        """Return the chain's version."""

    def begin(self) -> None:
        """Begin a snapshot."""

    def rollback(self) -> None:
        """End the transaction, if there is one."""

    def close(self) -> None:
        """Close the connection."""


R = TypeVar("R", bound=Reader)


class Readers(ABC, Generic[R]):
    """Read connections, taken for one query or one snapshot and given back."""

    def __init__(self) -> None:
        self._idle: deque[R] = deque()
        self._closed = False
        self._gate = threading.Condition(threading.Lock())
        self._busy = 0
        self._suspended = False
        self._local = threading.local()

    @abstractmethod
    def _connect(self) -> R:
        """Open another connection."""

    @abstractmethod
    def version(self) -> ChainVersion | None:
        """Return the current version of the chain."""

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Turn the engine's errors into :exc:`~flask_noderpc.errors.StoreError`."""

    def _take(self) -> R:
        nested = getattr(self._local, "depth", 0)
        with self._gate:
            # A thread that holds a connection needs the next one before it gives that back.
            while self._suspended and not nested:
                self._gate.wait()
            self._busy += 1
        self._local.depth = nested + 1
        try:
            with suppress(IndexError):
                return self._idle.pop()
            return self._connect()
        except BaseException:
            self._leave()
            raise

    def one(self, sql: str, *args: object) -> Any:
        """The first row, or ``None``."""
        # The errors are entered when there is one: each read would take longer.
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

    @contextmanager
    def snapshot(self) -> Iterator[R]:
        """Yield a connection on which every query sees the same snapshot."""
        try:
            view = self._read_view()
            if view is not None:
                yield view
                return
            connection = self._begun()
            try:
                yield connection
            finally:
                self._end(connection)
        except Exception:
            with self._errors():
                raise

    @contextmanager
    def shared_read_view(self) -> Iterator[ChainVersion | None]:
        """Let every query of this thread use one snapshot; yield the chain's version in it."""
        around = self._read_view()
        try:
            connection = around or self._begun()
            try:
                self._local.read_view = connection
                yield connection.version()
            finally:
                self._local.read_view = around
                if around is None:
                    self._end(connection)
        except Exception:
            with self._errors():
                raise

    def _begun(self) -> R:
        """Return a connection with a snapshot."""
        connection = self._take()
        try:
            connection.begin()
        except BaseException:
            self._end(connection)
            raise
        return connection

    def _end(self, connection: R) -> None:
        # Nothing was written, and a commit can fail on a corrupt file.
        try:
            connection.rollback()
        finally:
            self._give_back(connection)

    def _read_view(self) -> R | None:
        found: R | None = getattr(self._local, "read_view", None)
        return found

    def _give_back(self, connection: R) -> None:
        self._idle.append(connection)
        if self._closed:
            self.close()
        self._leave()

    def _leave(self) -> None:
        self._local.depth -= 1
        with self._gate:
            self._busy -= 1
            if self._suspended:
                self._gate.notify_all()

    def suspend(self, timeout_s: float) -> bool:
        """Block new reads and close the connections; return true if all reads have ended."""
        with self._gate:
            self._suspended = True
            quiet = self._gate.wait_for(lambda: self._busy == 0, timeout_s)
        self._close_idle()
        return quiet

    def resume(self) -> None:
        """Resume reads."""
        with self._gate:
            self._suspended = False
            self._gate.notify_all()

    def close(self) -> None:
        """Close what is idle now, and what is in use when it is given back."""
        self._closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()


class ChangeWatcher(ABC):
    """Wakes the threads that wait for the store to change."""

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

    @abstractmethod
    def _is_new(self) -> bool:
        """Return true if the store has changed since the last call."""


_one_at_a_time = threading.Lock()
_watched: WeakSet[ProcessHandles] = WeakSet()
_suspended: list[ProcessHandles] = []
# Of this process: os.getpid() is a system call, and each read asks.
_process_id = os.getpid()


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


class SearchPool(Protocol):
    """Runs searches, a few at a time."""

    def run(
        self, work: Callable[[Connection], T], limits: SearchLimits, height: int = HIGHEST
    ) -> T:
        """Return the result of ``work`` in one snapshot, which need not have more than the
        blocks up to a height; raise :exc:`~flask_noderpc.errors.SearchTooCostly`."""


class ProcessHandles(ABC):
    """The open connections of one process; none may cross a fork."""

    readers: Readers[Any]
    writer: Writer
    mempool_writer: Writer
    """Writes what needs no lock on the chain."""
    search_pool: SearchPool
    changes: ChangeWatcher

    def __init__(self) -> None:
        self.process = _process_id
        self.incoming = Incoming()
        self.ledger = ledger.Ledger()
        self.quiet = True
        """True if nothing was open at the last fork."""
        # Closed before each fork of the process.
        with _one_at_a_time:
            _watched.add(self)

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
