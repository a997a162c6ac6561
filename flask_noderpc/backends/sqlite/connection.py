"""Connections to a SQLite file, and the pool of read connections."""

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

# Size of the cache of the connection for writes.
_WRITE_CACHE_KB = 16_000
# Seconds for which a write waits for another program's write to end. Only the writer's own
# thread waits.
_WRITE_PATIENCE_S = 5.0

# Seconds for which a new read connection waits while other processes open or close the file.
# The calling thread waits.
_OPEN_PATIENCE_S = 0.2


# Error codes whose cause (another program, or the disk) may go away: callers may retry.
_TRANSIENT_CODES = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
)


class sqlite_errors(AbstractContextManager[None]):  # noqa: N801  # it reads as a function
    """Context manager that converts SQLite's errors to :exc:`StoreError` with advice and the
    file's name."""

    # This is a class, because a generator function would take three times as long, and every
    # read enters it.
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
        kind = StoreUnavailable if _code(error) & 0xFF in _TRANSIENT_CODES else StoreError
        raise kind(_cause(error), path) from error
    if isinstance(error, UnicodeDecodeError):
        # SQLite's message quotes the name of a table, which is corrupt if Python can't decode
        # it.
        raise StoreError("the file is corrupt, restore a backup", path) from error
    if isinstance(error, DamagedRow):
        raise StoreError(str(error), path) from None
    if isinstance(error, StoreError):
        raise type(error)(error.reason, error.path or path) from error.__cause__
    if isinstance(error, OverflowError):
        # The integer does not fit SQLite's 64 bits.
        raise StoreError(
            "expected integers of at most 64 bits to store or to look up, got a larger one",
            path,
        ) from None
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


def _set_wal_mode(connection: Connection) -> None:
    """Set the journal mode to WAL, even while other processes open a new file."""
    deadline = time.monotonic() + _WRITE_PATIENCE_S
    while True:
        try:
            # Fetch the row to finish the statement, which would otherwise block a commit.
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
        # If two processes create a file's first WAL at the same time, one gets SQLITE_BUSY at
        # once. Wait with this statement until the other has finished, then try again.
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
    """Index blocks that were stored while a feature or its packages were missing.

    Each transaction indexes a few blocks, so other processes can write in between.
    """
    hits.announce(connection)
    while hits.has_unindexed(connection):
        with _transaction(connection):
            # Another process may have indexed the remaining blocks meanwhile.
            hits.index_some(connection)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) or 0


def _cause(error: sqlite3.Error) -> str:
    code = _code(error)
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        # For example, `noderpc compact` replaced the file after it was opened.
        return "the file was replaced after it was opened: try again"
    advice = {
        sqlite3.SQLITE_BUSY: "another program holds the write lock: wait until it has ended",
        sqlite3.SQLITE_FULL: f"{FULL}: make space",
        sqlite3.SQLITE_READONLY: "the file is read-only: check its owner and mode",
        sqlite3.SQLITE_CORRUPT: "the file is corrupt, restore a backup",
        sqlite3.SQLITE_NOTADB: "the file is not a SQLite database, restore a backup",
        sqlite3.SQLITE_CANTOPEN: "the file can't be opened: check that its folder is writable",
        sqlite3.SQLITE_IOERR: "the disk reports an error: check the disk",
    }.get(code & 0xFF)
    return f"{advice} ({error})" if advice else str(error)


def make_private(file: Path) -> None:
    """Create the file with mode 0600 if it is missing; SQLite creates the WAL and shm files
    with the same mode."""
    # Ignore errors here, as SQLite raises a clearer error for the same file.
    with suppress(OSError):
        if file.exists():
            return
        # Reuse a draft that a killed process has left.
        draft = file.with_name(f"{file.name}.new")
        os.close(os.open(draft, os.O_CREAT | os.O_WRONLY, 0o600))
        # Create the file by linking: closing a descriptor of the file itself would release this
        # process's locks on it.
        try:
            os.link(draft, file)
        finally:
            draft.unlink(missing_ok=True)


def _inode(file: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file; ``None`` if it is missing."""
    found = wal.status(file)
    return None if found is None else (found.st_dev, found.st_ino)


class Reader(Connection):
    """A read connection that caches the chain's version."""

    seen: tuple[int, ChainVersion | None] = (-1, None)
    """SQLite's data version when the chain's version was read, and the chain's version."""

    def begin(self) -> None:
        """Begin a snapshot."""
        self.execute("BEGIN")

    def version(self) -> ChainVersion | None:
        """Return the chain's version; read it again only if another connection has written."""
        (number,) = self.execute("PRAGMA data_version").fetchone()
        if number != self.seen[0]:
            self.seen = number, read_version(self)
        return self.seen[1]


class SQLiteFile(FileLocation):
    """A SQLite file: opens connections to it, and creates its folder and tables if needed."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_pages: int | None = None,
        max_log_bytes: int = 64 << 20,
    ) -> None:
        super().__init__(path)
        self.max_log_bytes = max_log_bytes
        if self.path in ("", ":memory:"):
            raise InvalidSetting(
                "NODERPC_DATABASE: expected a file name, got a database in memory, which"
                " processes can't share; name a file"
            )
        self._max_pages = max_pages
        self._log = self._find_log()
        self._log_in_use: tuple[int, int] | None = None

    @property
    def real_file(self) -> Path:
        """The file that the path names now, with symbolic links resolved."""
        return Path(os.path.realpath(self.file))

    def _find_log(self) -> Path:
        # SQLite puts the WAL beside the real file, not beside a symbolic link.
        file = self.real_file
        return file.with_name(f"{file.name}-wal")

    def identity(self) -> tuple[int, int] | None:
        """Return the device and inode of the file; ``None`` if it is missing."""
        return _inode(self.file)

    def log_bytes(self) -> int:
        """Return the size of the WAL file in bytes."""
        try:
            return self._log.stat().st_size
        except FileNotFoundError:
            return 0

    def check_log(self) -> None:
        """Raise :exc:`StoreError` if the WAL that this process writes to was removed or
        replaced."""
        expected = self._log_in_use
        if expected in (None, _inode(self._log)):
            return
        # Compare again, because a thread that closes the store meanwhile clears
        # ``_log_in_use`` first.
        if self._log_in_use == expected != _inode(self._log):
            raise StoreError(
                f"{self._log.name} was removed or replaced while in use: stop all processes of"
                " the store; the last one to stop writes the missing changes into the file",
                self.display_name,
            )

    def forget_log(self) -> None:
        """Stop checking the WAL, because this process closes the store."""
        self._log_in_use = None

    def open_reader(self) -> Reader:
        """Return a new connection that can't write, and that never waits for locks after this
        call."""
        # Check this first, because SQLite would create a new WAL in place of a removed one.
        self.check_log()
        # Use mode ``rw``, which does not create a missing file: it would be served as an empty
        # chain.
        connection = self._connect(Reader, _OPEN_PATIENCE_S, mode="rw")
        try:
            connection.execute("PRAGMA query_only = ON")
            # Read once with the timeout: new connections are locked out while the last
            # connection of another process closes and cleans up the WAL.
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            connection.execute("PRAGMA busy_timeout = 0")
        except BaseException:
            connection.close()
            raise
        return connection

    def migrate(self) -> Generator[int, None, None]:
        """Migrate a store of an earlier version in many short transactions; before the first
        and after each one, yield the number of blocks that are still in version 0.1's
        tables."""
        wal.check(self.real_file)
        connection = self._connect(Connection, _WRITE_PATIENCE_S, mode="rw")
        with sqlite_errors(self.display_name), closing(connection):
            schema.refuse_foreign(connection)
            self._configure(connection)
            with _transaction(connection):
                remaining = schema.begin_migration(connection)
                if remaining is not None:
                    wal.increment_version(connection)
            while remaining is not None:
                yield remaining
                with _transaction(connection):
                    remaining = schema.migrate_some(connection)
                    wal.increment_version(connection)
            _prepare_tables(connection)
            yield 0

    def open_writer(self) -> Connection:
        """Return a write connection; first create the file, and create or migrate its tables
        if needed."""
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
                raise StoreError(
                    "expected a store with a chain, as it is opened read-only; check its name",
                    self.display_name,
                )
            schema.check(connection)
            return
        self._configure(connection)
        _prepare_tables(connection)
        _index_stored(connection)

    def _configure(self, connection: Connection) -> None:
        # Allow returning pages to the file system after pruning; this only has an effect on
        # new files.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        if schema.is_empty(connection):
            with _transaction(connection):
                wal.set_random_version(connection)
        _set_wal_mode(connection)
        connection.execute("PRAGMA synchronous = FULL")
        # Up to 3,000 pages change in a step of pruning. A smaller cache would write them more
        # than once.
        connection.execute(f"PRAGMA cache_size = -{_WRITE_CACHE_KB}").fetchone()
        # SQLite truncates a larger WAL to this size when it restarts the WAL.
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
            # Allow use by several threads: only one at a time uses a connection.
            check_same_thread=False,
            uri=True,
            cached_statements=256,
        )


class Readers(handles.Readers[Reader]):
    """Pool of read connections to a SQLite file."""

    def __init__(self, store: SQLiteFile) -> None:
        super().__init__()
        self._store = store

    def _connect(self) -> Reader:
        return self._store.open_reader()

    def _errors(self) -> AbstractContextManager[None]:
        return sqlite_errors(self._store.display_name)

    def version(self) -> ChainVersion | None:
        """Return the current version of the chain."""
        # Convert errors only if one is raised, as every request calls this.
        try:
            connection = self._take()
            try:
                return connection.version()
            finally:
                self._give_back(connection)
        except Exception:
            with sqlite_errors(self._store.display_name):
                raise
