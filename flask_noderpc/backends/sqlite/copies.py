"""Copies of a store: a backup while it is in use, and a copy without free pages."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ...errors import StoreError
from ..sql import lease as leases
from . import schema, wal
from .connection import Reader, SQLiteFile, make_private, sqlite_errors
from .engine import Connection

# Number of SQLite virtual machine instructions between two calls of a progress handler.
_STEPS = 10_000


@contextmanager
def exclusive_connection(store: SQLiteFile) -> Iterator[Connection]:
    """Yield a connection while no other process has the store open; raise :exc:`StoreError` if
    another process has."""
    if not store.file.is_file():
        raise StoreError("no store is here; name the file of a chain", store.display_name)
    wal.check(store.real_file)
    with (
        sqlite_errors(store.display_name),
        closing(
            sqlite3.connect(store.file, timeout=0, isolation_level=None, factory=Connection)
        ) as at,
    ):
        if not _lock(at):
            raise StoreError("another process has the store open: stop it first")
        at.execute("PRAGMA auto_vacuum = INCREMENTAL")
        yield at


def _lock(at: Connection) -> bool:
    """Lock a store until the connection closes; return false if another process has it open."""
    try:
        schema.refuse_foreign(at)
        if schema.is_empty(at):
            raise StoreError("the file is empty, no store is here; name the file of a chain")
        at.execute("PRAGMA locking_mode = EXCLUSIVE")
        # Only the last open connection can leave WAL mode.
        (mode,) = at.execute("PRAGMA journal_mode = DELETE").fetchone()
        at.execute("BEGIN EXCLUSIVE")
        at.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            return False
        raise
    return bool(mode != "wal")


def compact(
    store: SQLiteFile, progress: Callable[[int, int], None] | None = None
) -> tuple[int, int]:
    """Replace the store's file by a copy without free pages; return the sizes before and after
    in bytes. Raise :exc:`StoreError` if another process has the store open."""
    file = store.real_file
    target = file.with_name(f"{file.name}.compact")
    with exclusive_connection(store) as at:
        before = file.stat().st_size
        # Remove the partial copy of an interrupted compaction.
        target.unlink(missing_ok=True)
        needed = _check_space(store, at)

        def report() -> None:
            if progress is not None:
                progress(min(needed, target.stat().st_size), needed)

        at.set_progress_handler(report, _STEPS)
        try:
            with sqlite_errors(str(target)):
                _create_like(file, target)
                at.execute("VACUUM INTO ?", (str(target),))
                _check(str(target))
                flush(target)
            target.rename(file)
            flush(file.parent)
        finally:
            target.unlink(missing_ok=True)
    return before, file.stat().st_size


def _create_like(file: Path, target: Path) -> None:
    """Create an empty file with the same owner and mode, so that the same users can read the
    copy."""
    make_private(target)
    found = file.stat()
    try:
        os.chown(target, found.st_uid, found.st_gid)
    except PermissionError:
        raise StoreError(
            "the store belongs to another user: compact it as that user", str(file)
        ) from None
    target.chmod(stat.S_IMODE(found.st_mode))


def _check_space(store: SQLiteFile, at: Connection) -> int:
    """Return the size of the copy in bytes; raise :exc:`StoreError` if the disk has too little
    space."""
    (pages,) = at.execute("PRAGMA page_count").fetchone()
    (unused,) = at.execute("PRAGMA freelist_count").fetchone()
    (size,) = at.execute("PRAGMA page_size").fetchone()
    needed = (pages - unused) * size
    free = shutil.disk_usage(store.real_file.parent).free
    if free < needed:
        raise StoreError(
            f"the copy takes {needed >> 20} MB, and the disk has {free >> 20}: free some space",
            store.display_name,
        )
    return int(needed)


def _check(path: str) -> None:
    with closing(sqlite3.connect(path)) as at:
        (found,) = at.execute("PRAGMA quick_check").fetchone()
    if found != "ok":
        raise StoreError(f"the copy is damaged ({found}), the store is unchanged", path)


def flush(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Pages that are copied per step, 4 KB each.
_COPIED_PAGES = 4_096


def copy(
    store: SQLiteFile, target: Path, progress: Callable[[int, int], None] | None = None
) -> None:
    """Copy a snapshot of the store; raise :exc:`~flask_noderpc.errors.StoreError`.

    ``progress`` is called with the number of remaining pages and the total number.
    """

    def report(status: int, remaining: int, total: int) -> None:
        # No other process uses the copy, and the snapshot is already open, so the lock will not
        # go away.
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreError("the copy can't continue, the file is locked", str(target))
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
                # Leave WAL mode, so that the copy is one file and readable on read-only media.
                target_file.execute("PRAGMA journal_mode = DELETE").fetchone()
                wal.set_random_version(target_file)
            draft.rename(target)
            flush(target.parent)
        finally:
            draft.unlink(missing_ok=True)


def _snapshot_reader(store: SQLiteFile) -> Reader:
    """Return a reader that holds one snapshot: otherwise SQLite would restart the copy at each
    write."""
    with sqlite_errors(store.display_name):
        reader = store.open_reader()
        try:
            reader.execute("BEGIN")
            reader.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except BaseException:
            reader.close()
            raise
        return reader
