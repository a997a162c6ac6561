"""Check that the WAL beside a SQLite file belongs to the file.

SQLite copies any WAL that it finds into the file. To detect a foreign WAL, each transaction
increments the user version, which is in page 1: the file's user version must be one of the
versions in its WAL, or the version before the first of them. A WAL of another file, or of an
earlier or later state of this file, contains other versions.
"""

from __future__ import annotations

import secrets
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from os import stat_result
from pathlib import Path
from typing import BinaryIO

from ...errors import StoreError

# SQLite's file format, 4.1 and 4.2: the header has magic number, version, page size, sequence
# number, two salts and two checksums; a frame has page number, file size after it, salts and
# checksums.
_HEADER, _FRAME = 32, 24
_MAGIC = 0x377F0682
# Offset of the user version in page 1.
_OFFSET = 60
_RANGE = 1 << 32

# Another process may write to the file during the check, which is then repeated.
_TRIES = 10


def set_random_version(connection: sqlite3.Connection) -> None:
    """Set a random user version in a file that has no WAL."""
    if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        connection.execute(f"PRAGMA user_version = {secrets.randbits(30)}")


def increment_version(connection: sqlite3.Connection) -> None:
    """Increment the user version before a commit."""
    (number,) = connection.execute("PRAGMA user_version").fetchone()
    half = _RANGE // 2
    connection.execute(f"PRAGMA user_version = {(number + 1 + half) % _RANGE - half}")


def check(file: Path) -> None:
    """Raise :exc:`~flask_noderpc.errors.StoreError` if the WAL belongs to another file, or was
    removed while the file was in use."""
    log = file.with_name(f"{file.name}-wal")
    _check_deleted(file, log)
    for _ in range(_TRIES):
        number, before = _user_version(file), _header(log)
        if number is None or _fits(number, _user_versions(log)):
            return
        # Only if the versions don't fit, read again with checksums, which takes longer, to
        # ignore a torn page.
        fits = _fits(number, _user_versions(log, is_checked=True))
        if (number, before) == (_user_version(file), _header(log)):
            if fits:
                return
            raise StoreError(
                f"{log.name} belongs to another file, or to another state of this file: if this"
                " is a copy by `noderpc backup`, remove the WAL; otherwise put back the file to"
                " which it belongs",
                str(file),
            )


def _check_deleted(file: Path, log: Path) -> None:
    # A -shm file without a WAL means that the WAL was removed: SQLite creates the WAL before
    # the -shm file, and removes the WAL after that file.
    index = file.with_name(f"{file.name}-shm")
    for _ in range(_TRIES):
        before = _file_identity(index)
        if before is None or log.exists():
            return
        if before == _file_identity(index):
            raise StoreError(
                f"{log.name} was removed without stopping the node: stop all its processes, and"
                f" put the WAL back; or remove {index.name} to continue{_height_hint(file)}",
                str(file),
            )


def status(file: Path) -> stat_result | None:
    """Return the status of a file; ``None`` if it is missing."""
    try:
        return file.stat()
    except FileNotFoundError:
        return None


def _file_identity(file: Path) -> tuple[int, int] | None:
    found = status(file)
    return None if found is None else (found.st_ino, found.st_ctime_ns)


def _height_hint(file: Path) -> str:
    try:
        with closing(_connect_without_log(file)) as at:
            (height,) = at.execute("SELECT max(height) FROM blocks").fetchone()
    except sqlite3.Error:
        return ""
    return f" from block {height}, the latest in the file" if height else ""


def _connect_without_log(file: Path) -> sqlite3.Connection:
    # Use SQLite instead of open(): closing a file would release this process's locks on it.
    return sqlite3.connect(f"{file.as_uri()}?mode=ro&immutable=1", uri=True)


def _user_version(file: Path) -> int | None:
    try:
        with closing(_connect_without_log(file)) as at:
            number: int = at.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error:
        # Ignore the error here, as SQLite raises a clearer error when the file is opened.
        return None
    return number


def _fits(number: int, in_log: list[int]) -> bool:
    if not in_log:
        return True
    before = in_log[0] - 1
    return (number - before) % _RANGE <= (in_log[-1] - before) % _RANGE


def _header(log: Path) -> bytes:
    try:
        with log.open("rb") as file:
            return file.read(_HEADER)
    except OSError:
        return b""


def _user_versions(log: Path, is_checked: bool = False) -> list[int]:
    """Return the user versions in a WAL, in order; with ``is_checked``, stop at a wrong
    checksum."""
    try:
        with log.open("rb", buffering=0 if is_checked else -1) as file:
            return list(_read(file, is_checked))
    except OSError:
        return []


def _read(file: BinaryIO, is_checked: bool) -> Iterator[int]:
    header = file.read(_HEADER)
    if len(header) < _HEADER:
        return
    magic, _, size = struct.unpack_from(">III", header)
    if magic & ~1 != _MAGIC:
        return
    order, sums = ">" if magic & 1 else "<", struct.unpack_from(">II", header, 24)
    while len(frame := file.read(_FRAME)) == _FRAME and frame[8:16] == header[16:24]:
        (page_number,) = struct.unpack_from(">I", frame)
        if page_number != 1 and not is_checked:
            file.seek(size, 1)
            continue
        page = file.read(size)
        if is_checked:
            sums = _checksums(frame[:8] + page, order, sums)
            if struct.pack(">II", *sums) != frame[16:]:
                return
        if page_number == 1 and len(page) == size:
            yield struct.unpack_from(">i", page, _OFFSET)[0]


def _checksums(content: bytes, order: str, sums: tuple[int, ...]) -> tuple[int, int]:
    one, two = sums
    for first, second in struct.iter_unpack(f"{order}II", content):
        one = (one + first + two) % _RANGE
        two = (two + second + one) % _RANGE
    return one, two
