"""Rewriting a store without its free pages, while no process has it open."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from ...errors import StoreError
from .connection import Connection, Store, make_private, sqlite_errors


def compact(store: Store) -> tuple[int, int]:
    """Replace the store's file by a copy without free pages; return the sizes before and after
    in bytes. Raise :exc:`StoreError` if another process has it open."""
    target = store.file.with_name(f"{store.file.name}.compact")
    with _held(store) as at:
        before = store.file.stat().st_size
        _check_space(store, at)
        target.unlink(missing_ok=True)
        make_private(target)
        try:
            with sqlite_errors(str(target)):
                at.execute("VACUUM INTO ?", (str(target),))
                _check(str(target))
                _flush(str(target))
            target.rename(store.file)
            _flush(str(store.folder))
        finally:
            target.unlink(missing_ok=True)
    return before, store.file.stat().st_size


@contextmanager
def _held(store: Store) -> Iterator[Connection]:
    """Yield a connection beside which nobody else can have the store open."""
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


def _check_space(store: Store, at: Connection) -> None:
    (pages,) = at.execute("PRAGMA page_count").fetchone()
    (unused,) = at.execute("PRAGMA freelist_count").fetchone()
    (size,) = at.execute("PRAGMA page_size").fetchone()
    needed = (pages - unused) * size
    free = shutil.disk_usage(store.folder).free
    if free < needed:
        raise StoreError(
            f"the copy takes {needed >> 20} MB, and the disk has {free >> 20}", store.shown
        )


def _check(path: str) -> None:
    with closing(sqlite3.connect(path)) as at:
        (found,) = at.execute("PRAGMA quick_check").fetchone()
    if found != "ok":
        raise StoreError(f"the copy is damaged ({found}), the store is unchanged", path)


def _flush(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
