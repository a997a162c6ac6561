"""Copy of a store to a new file while others read and write it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from ...errors import StoreError
from ..sql import lease as leases
from . import wal
from .compact import flush
from .connection import Reader, Store, make_private, sqlite_errors
from .engine import Connection

# How much is copied in one step, of 4 KB each.
_COPIED_PAGES = 4_096


def copy(
    store: Store, target: Path, progress: Callable[[int, int], None] | None = None
) -> None:
    """Copy a snapshot of the store; raise :exc:`~flask_noderpc.errors.StoreError`.

    ``progress`` is called with the number of remaining pages, and of all.
    """

    def report(status: int, remaining: int, total: int) -> None:
        # Nobody else has the copy, and the snapshot is open.
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreError("the copy can't go on, the file is locked", str(target))
        if progress is not None:
            progress(remaining, total)

    draft = target.with_name(target.name + ".part")
    with sqlite_errors(str(target)):
        draft.unlink(missing_ok=True)
        make_private(draft)
        try:
            with (
                closing(sqlite3.connect(draft, factory=Connection)) as target_file,
                closing(_snapshot_reader(store)) as source,
            ):
                source.backup(target_file, pages=_COPIED_PAGES, progress=report)
                leases.free(target_file)
                target_file.commit()
                # One file, that can be read where nothing may be written.
                target_file.execute("PRAGMA journal_mode = DELETE").fetchone()
                wal.begin(target_file)
            draft.rename(target)
            flush(target.parent)
        finally:
            draft.unlink(missing_ok=True)


def _snapshot_reader(store: Store) -> Reader:
    """Return a reader of one snapshot: with another a copy begins anew at each write."""
    with sqlite_errors(store.shown):
        reader = store.open_reader()
        try:
            reader.execute("BEGIN")
            reader.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except BaseException:
            reader.close()
            raise
        return reader
