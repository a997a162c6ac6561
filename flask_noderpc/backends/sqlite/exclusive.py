"""Holding a store alone, for what must not happen beside a node."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from ...errors import StoreError
from . import schema, wal
from .connection import Store, sqlite_errors
from .engine import Connection


@contextmanager
def held_alone(store: Store) -> Iterator[Connection]:
    """Yield a connection beside which nobody else has the store open; raise
    :exc:`StoreError` if another process has."""
    if not store.file.is_file():
        raise StoreError("no store is here; name the file of a chain", store.shown)
    wal.check(store.real_file)
    with (
        sqlite_errors(store.shown),
        closing(
            sqlite3.connect(store.file, timeout=0, isolation_level=None, factory=Connection)
        ) as at,
    ):
        if not _lock(at):
            raise StoreError("another process has the store open: stop it first")
        at.execute("PRAGMA auto_vacuum = INCREMENTAL")
        yield at


def _connect(store: Store) -> Connection:
    return sqlite3.connect(store.file, timeout=0, isolation_level=None, factory=Connection)


def _lock(at: Connection) -> bool:
    """Lock a store until the connection closes; return false if another process has it open."""
    try:
        schema.refuse_foreign(at)
        if schema.is_empty(at):
            raise StoreError("the file is empty, no store is here; name the file of a chain")
        at.execute("PRAGMA locking_mode = EXCLUSIVE")
        # SQLite: only the last connection can end the WAL mode.
        (mode,) = at.execute("PRAGMA journal_mode = DELETE").fetchone()
        at.execute("BEGIN EXCLUSIVE")
        at.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            return False
        raise
    return bool(mode != "wal")
