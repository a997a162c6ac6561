"""Connections to the store, and the pool of read connections."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar
from urllib.parse import urlencode

from ...errors import FULL, InvalidSetting, StoreError, StoreUnavailable
from ..base.location import FileLocation
from ..base.reads import ChainVersion
from ..sql import handles, hits
from ..sql.handles import read_version
from ..sql.packed.blocks import DamagedRow
from . import schema, wal
from .engine import Connection

C = TypeVar("C", bound=Connection)

# How long a write waits for another program's write to end. It waits on the writer's
# own thread, so nothing else stands still meanwhile.
_WRITE_PATIENCE_S = 5.0

# How long a new reader waits for others to open or close the file; it waits where it is.
_OPEN_PATIENCE_S = 0.2


# What other programs and the disk do to the store: it may end.
_PASSING = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
)


class sqlite_errors(AbstractContextManager[None]):  # noqa: N801  # it reads as a function
    """Turn SQLite's errors into :exc:`StoreError` sentences that say what to do; all name the
    file."""

    # A class, as each read enters it: a generator takes three times as long.
    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            _raise_as_store_error(error, self._path)


def _raise_as_store_error(error: BaseException, path: str) -> None:
    if isinstance(error, sqlite3.Error):
        kind = StoreUnavailable if _code(error) & 0xFF in _PASSING else StoreError
        raise kind(_cause(error), path) from error
    if isinstance(error, UnicodeDecodeError):
        # Of a table's name, in SQLite's own words for what is wrong with it.
        raise StoreError("the file is corrupt, restore a backup", path) from error
    if isinstance(error, DamagedRow):
        raise StoreError(str(error), path) from None
    if isinstance(error, StoreError):
        raise type(error)(error.reason, error.path or path) from error.__cause__
    if isinstance(error, OverflowError):
        # An integer beyond SQLite's 64 bits.
        raise StoreError("a number is too large for the store", path) from None
    if isinstance(error, OSError):
        raise StoreError(str(error.strerror), str(error.filename or path)) from error


@contextmanager
def _transaction(connection: Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _write_ahead(connection: Connection) -> None:
    """Set the journal mode to WAL, also while other processes open a new file."""
    deadline = time.monotonic() + _WRITE_PATIENCE_S
    while True:
        try:
            # Read to its end: a statement that may write must be over before a commit.
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
        # SQLite: of two who make a file's first log at once, one is refused without a wait.
        # This waits until nobody else is at the file.
        connection.execute("BEGIN EXCLUSIVE")
        connection.rollback()


def _prepare_tables(connection: Connection) -> None:
    schema.announce(connection)
    has_more = True
    while has_more:
        with _transaction(connection):
            has_more = schema.prepare(connection)
    if hits.new_indexes(connection):
        with _transaction(connection):
            hits.make_tables(connection)


def _index_stored(connection: Connection) -> None:
    """Index blocks that were stored without a feature or its packages.

    A slice at a time: other processes go on writing meanwhile.
    """
    hits.announce(connection)
    while hits.has_unindexed(connection):
        with _transaction(connection):
            # Another process may have done them since.
            hits.index_some(connection)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) or 0


def _cause(error: sqlite3.Error) -> str:
    code = _code(error)
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        # Such as by `noderpc compact`, between the opening and the first write.
        return "the file was replaced just now: try again"
    advice = {
        sqlite3.SQLITE_BUSY: "another program holds the write lock",
        sqlite3.SQLITE_FULL: f"{FULL}: make space",
        sqlite3.SQLITE_READONLY: "the database is read-only",
        sqlite3.SQLITE_CORRUPT: "the file is corrupt, restore a backup",
        sqlite3.SQLITE_NOTADB: "the file is not a SQLite database, restore a backup",
        sqlite3.SQLITE_CANTOPEN: "the file can't be opened: is its folder there, writable?",
        sqlite3.SQLITE_IOERR: "the disk reports an error",
    }.get(code & 0xFF)
    return f"{advice} ({error})" if advice else str(error)


def make_private(file: Path) -> None:
    """Make a file that its owner alone reads, where there is none; SQLite's files beside it
    get the same mode."""
    # SQLite says better what is wrong with the file.
    with suppress(OSError):
        if file.exists():
            return
        # One that a killed process left is used again.
        draft = file.with_name(f"{file.name}.new")
        os.close(os.open(draft, os.O_CREAT | os.O_WRONLY, 0o600))
        # By a link: to close the file itself would free the locks that this process has on it.
        try:
            os.link(draft, file)
        finally:
            draft.unlink(missing_ok=True)


def _inode(file: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; ``None`` if it is missing."""
    found = wal.status(file)
    return None if found is None else (found.st_dev, found.st_ino)


class Reader(Connection):
    """A connection that remembers what the chain was when it last looked."""

    seen: tuple[int, ChainVersion | None] = (-1, None)
    """With SQLite's number for the content of the file, as this connection sees it."""

    def begin(self) -> None:
        """Begin a snapshot."""
        self.execute("BEGIN")

    def version(self) -> ChainVersion | None:
        """Return the chain's version; read again only after a write."""
        (number,) = self.execute("PRAGMA data_version").fetchone()
        if number != self.seen[0]:
            self.seen = number, read_version(self)
        return self.seen[1]


class Store(FileLocation):
    """Opens connections to one file, and makes its folder and tables when needed."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_pages: int | None = None,
        max_log_bytes: int = 64 << 20,
    ) -> None:
        super().__init__(path)
        self.max_log_bytes = max_log_bytes
        if self.path in ("", ":memory:"):
            raise InvalidSetting("the store must be a file, which processes share")
        self._max_pages = max_pages
        self._log = self._find_log()
        self._log_in_use: tuple[int, int] | None = None

    @property
    def real_file(self) -> Path:
        """The file itself, where a link names it; the link may change."""
        return Path(os.path.realpath(self.file))

    def _find_log(self) -> Path:
        # SQLite: beside the file itself, as it was when it was opened.
        file = self.real_file
        return file.with_name(f"{file.name}-wal")

    def identity(self) -> tuple[int, int] | None:
        """Return device and inode of the file; ``None`` if it is missing."""
        return _inode(self.file)

    def log_bytes(self) -> int:
        """Return the size of the WAL file in bytes."""
        try:
            return self._log.stat().st_size
        except FileNotFoundError:
            return 0

    def check_log(self) -> None:
        """Raise :exc:`StoreError` if the WAL that this process writes to was removed."""
        expected = self._log_in_use
        if expected in (None, _inode(self._log)):
            return
        # Unless another thread has closed the store meanwhile, which forgets it first.
        if self._log_in_use == expected != _inode(self._log):
            raise StoreError(
                f"{self._log.name} was removed or replaced while in use: stop all processes of"
                " the store, of which the last writes what is missing into the file",
                self.shown,
            )

    def forget_log(self) -> None:
        """Expect any WAL, as this process closes the store."""
        self._log_in_use = None

    def open_reader(self) -> Reader:
        """A connection that can't write, and never waits once it is open."""
        # SQLite would make a WAL beside the one that is removed.
        self.check_log()
        # A reader that made a missing file would serve it as an empty chain.
        connection = self._connect(Reader, _OPEN_PATIENCE_S, mode="rw")
        try:
            connection.execute("PRAGMA query_only = ON")
            # The last connection to go tidies up the log, and shuts out those that come in.
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            connection.execute("PRAGMA busy_timeout = 0")
        except BaseException:
            connection.close()
            raise
        return connection

    def migrate(self) -> Generator[int, None, None]:
        """Migrate a store of an earlier version in many short transactions; yield the number of
        blocks of version 0.1 that are left, before the first and after each."""
        wal.check(self.real_file)
        connection = self._connect(Connection, _WRITE_PATIENCE_S, mode="rw")
        with sqlite_errors(self.shown), closing(connection):
            schema.refuse_foreign(connection)
            self._configure(connection)
            with _transaction(connection):
                remaining = schema.begin_migration(connection)
                if remaining is not None:
                    wal.count(connection)
            while remaining is not None:
                yield remaining
                with _transaction(connection):
                    remaining = schema.migrate_some(connection)
                    wal.count(connection)
            _prepare_tables(connection)
            yield 0

    def open_writer(self) -> Connection:
        """Return a write connection to a store with all tables."""
        if not self.read_only:
            self.real_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_private(self.real_file)
        if self.options.get("immutable") != "1":
            wal.check(self.real_file)
        connection = self._connect(Connection, _WRITE_PATIENCE_S, mode="rwc")
        try:
            self._prepare(connection)
            self._log = self._find_log()
            self._log_in_use = _inode(self._log)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: Connection) -> None:
        schema.refuse_foreign(connection)
        if self.read_only:
            if schema.is_empty(connection):
                raise StoreError("no chain here, and none can be written", self.shown)
            schema.check(connection)
            return
        self._configure(connection)
        _prepare_tables(connection)
        _index_stored(connection)

    def _configure(self, connection: Connection) -> None:
        # Of a new file: pages are given back after pruning. SQLite ignores it for others.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        if schema.is_empty(connection):
            with _transaction(connection):
                wal.begin(connection)
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        # Once it was larger, the log becomes so small again as soon as it begins anew.
        connection.execute(f"PRAGMA journal_size_limit = {self.max_log_bytes}").fetchone()
        if self._max_pages:
            connection.execute(f"PRAGMA max_page_count = {int(self._max_pages)}").fetchone()

    def _connect(self, kind: type[C], timeout: float, mode: str) -> C:
        options = urlencode({"mode": mode, **self.options})
        return sqlite3.connect(
            f"{self.file.as_uri()}?{options}",
            timeout=timeout,
            factory=kind,
            isolation_level=None,
            # A connection moves between threads and is used by one at a time.
            check_same_thread=False,
            uri=True,
            cached_statements=256,
        )


class Readers(handles.Readers[Reader]):
    """Read connections to the file."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def _connect(self) -> Reader:
        return self._store.open_reader()

    def _errors(self) -> AbstractContextManager[None]:
        return sqlite_errors(self._store.shown)

    def version(self) -> ChainVersion | None:
        """Return the current version of the chain."""
        # Every call asks: it takes no longer than to count those who read, or to be ready
        # for an error.
        try:
            with self._gate:
                if self._idle and not self._suspended:
                    connection = self._idle.pop()
                    try:
                        return connection.version()
                    finally:
                        self._idle.append(connection)
            connection = self._take()
            try:
                return connection.version()
            finally:
                self._give_back(connection)
        except Exception:
            with sqlite_errors(self._store.shown):
                raise
