"""Copies of a store: a backup while the store is in use, and a compact copy that replaces
it."""

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

# Number of instructions of SQLite's virtual machine between two calls of a progress handler.
_STEPS = 10_000


@contextmanager
def exclusive_connection(store: SQLiteFile) -> Iterator[Connection]:
    """Yield a connection that locks out other processes; raise :exc:`StoreError` if one of
    them has the store open."""
    if not store.file.is_file():
        raise StoreError(
            "the file does not exist; name the file of a chain", store.display_name
        )
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
            raise StoreError("the file is empty; name the file of a chain")
        at.execute("PRAGMA locking_mode = EXCLUSIVE")
        # This fails if another connection exists: only the last one can leave WAL mode.
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
    """Create an empty file with the owner and mode of ``file``, so that the same users can
    read it."""
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
    """Return the size in bytes of a compact copy; raise :exc:`StoreError` if the disk has too
    little space."""
    (pages,) = at.execute("PRAGMA page_count").fetchone()
    (unused,) = at.execute("PRAGMA freelist_count").fetchone()
    (size,) = at.execute("PRAGMA page_size").fetchone()
    needed = (pages - unused) * size
    free = shutil.disk_usage(store.real_file.parent).free
    if free < needed:
        raise StoreError(
            f"expected {needed >> 20} MB of free disk space for the copy, got {free >> 20} MB:"
            " free some space",
            store.display_name,
        )
    return int(needed)


def _check(path: str) -> None:
    with closing(sqlite3.connect(path)) as at:
        (found,) = at.execute("PRAGMA quick_check").fetchone()
    if found != "ok":
        raise StoreError(
            f"the copy is damaged ({found}), and the store is unchanged: check the disk", path
        )


def flush(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Number of pages of 4 KB that are copied per step.
_COPIED_PAGES = 4_096


def copy(
    store: SQLiteFile, target: Path, progress: Callable[[int, int], None] | None = None
) -> None:
    """Copy a snapshot of the store to a new file; raise
    :exc:`~flask_noderpc.errors.StoreError` if the copy fails.

    ``progress`` is called with the number of remaining pages and the number of all pages.
    """

    def report(status: int, remaining: int, total: int) -> None:
        # Waiting would not help: no other process should use the copy, and the snapshot is
        # open.
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreError(
                "another program has locked the copy; stop it and start again", str(target)
            )
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
                # Leave WAL mode, so that the copy is a single file that read-only media can
                # hold.
                target_file.execute("PRAGMA journal_mode = DELETE").fetchone()
                wal.set_random_version(target_file)
            draft.rename(target)
            flush(target.parent)
        finally:
            draft.unlink(missing_ok=True)


def _snapshot_reader(store: SQLiteFile) -> Reader:
    """Return a reader that holds one snapshot, without which SQLite would restart the copy at
    each write."""
    with sqlite_errors(store.display_name):
        reader = store.open_reader()
        try:
            reader.execute("BEGIN")
            reader.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except BaseException:
            reader.close()
            raise
        return reader
