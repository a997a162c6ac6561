"""Holding a store alone, for what must not happen beside a node."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from ...errors import StoreError
from .connection import Connection, Store, sqlite_errors


@contextmanager
def held_alone(store: Store) -> Iterator[Connection]:
    """Yield a connection beside which nobody else has the store open; raise
    :exc:`StoreError` if another process has."""
    if not store.file.is_file():
        raise StoreError("no store is here", store.shown)
    with closing(sqlite3.connect(store.file, timeout=0, isolation_level=None)) as at:
        try:
            # SQLite: only the last connection can end the WAL mode.
            at.execute("PRAGMA locking_mode = EXCLUSIVE")
            (mode,) = at.execute("PRAGMA journal_mode = DELETE").fetchone()
            at.execute("BEGIN EXCLUSIVE")
            at.execute("COMMIT")
        except sqlite3.OperationalError as error:
            with suppress(sqlite3.Error):
                at.rollback()
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                with sqlite_errors(store.shown):
                    raise
            mode = "wal"
        except sqlite3.Error:
            with sqlite_errors(store.shown):
                raise
        if mode == "wal":
            raise StoreError("another process has the store open: stop it first", store.shown)
        at.execute("PRAGMA auto_vacuum = INCREMENTAL")
        yield at
