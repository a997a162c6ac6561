"""Read connections of a process."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Generic, Protocol, TypeVar

from ..base.reads import ChainVersion
from .connection import Connection, Engine


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
        with self._errors():
            view = self._read_view()
            if view is not None:
                return view.execute(sql, args).fetchone()
            connection = self._take()
            try:
                return connection.execute(sql, args).fetchone()
            finally:
                self._give_back(connection)

    @contextmanager
    def snapshot(self) -> Iterator[R]:
        """Yield a connection on which every query sees the same snapshot."""
        with self._errors():
            view = self._read_view()
            if view is not None:
                yield view
                return
            connection = self._begun()
            try:
                yield connection
            finally:
                self._end(connection)

    @contextmanager
    def shared_read_view(self) -> Iterator[ChainVersion | None]:
        """Let every query of this thread use one snapshot; yield the chain's version in it."""
        around = self._read_view()
        # A batch begins with it: to nest the contexts takes longer than to read.
        with self._errors():
            connection = around or self._begun()
            try:
                self._local.read_view = connection
                yield connection.version()
            finally:
                self._local.read_view = around
                if around is None:
                    self._end(connection)

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

    def suspend(self, patience_s: float) -> bool:
        """Block new reads and close the connections; return true if all reads have ended."""
        with self._gate:
            self._suspended = True
            quiet = self._gate.wait_for(lambda: self._busy == 0, patience_s)
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
