"""Rewriting a store without its free pages, while no process has it open."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing

from ...errors import StoreError
from .connection import Connection, Store, make_private, sqlite_errors
from .exclusive import held_alone


def compact(store: Store) -> tuple[int, int]:
    """Replace the store's file by a copy without free pages; return the sizes before and after
    in bytes. Raise :exc:`StoreError` if another process has it open."""
    # The file itself, where a link names it.
    file = store.file.resolve()
    target = file.with_name(f"{file.name}.compact")
    with held_alone(store) as at:
        before = file.stat().st_size
        _check_space(store, at)
        target.unlink(missing_ok=True)
        make_private(target)
        try:
            with sqlite_errors(str(target)):
                at.execute("VACUUM INTO ?", (str(target),))
                _check(str(target))
                _flush(str(target))
            target.rename(file)
            _flush(str(file.parent))
        finally:
            target.unlink(missing_ok=True)
    return before, file.stat().st_size


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
