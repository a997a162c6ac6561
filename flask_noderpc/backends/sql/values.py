"""Tables of key-value pairs: the application's committed state, and metadata (values that
processes share, and that are not part of the chain). Each row has a checksum of its key and
value."""

from __future__ import annotations

from ..base.application import Changes
from .connection import Connection
from .packed.blocks import checked, key_checksum

# Number of rows that get a checksum in one transaction when a store of an earlier version is
# migrated, and number of rows that a verification reads at once.
_FILLED, _CHECKED = 2_000, 1_000

GENESIS = "genesis"
"""Name of the metadata value that describes the stored chunks of a genesis document from
another node."""


def chunk_name(number: int) -> str:
    """Return the name of a genesis chunk's metadata value."""
    return f"genesis.{number}"


def read_metadata(at: Connection, name: str) -> bytes | None:
    """Return a metadata value, or ``None``."""
    row = at.execute(
        "SELECT content, checksum FROM metadata WHERE name = ?", (name,)
    ).fetchone()
    return None if row is None else checked("metadata", name.encode(), *row)


def write_metadata(at: Connection, name: str, value: bytes) -> None:
    """Write a metadata value, replacing the previous one."""
    at.execute(
        "INSERT INTO metadata (name, content, checksum) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE"
        " SET content = excluded.content, checksum = excluded.checksum",
        (name, value, key_checksum(name.encode(), value)),
    )


def check_metadata(at: Connection) -> None:
    """Raise :exc:`~flask_noderpc.backends.sql.packed.blocks.DamagedValue` for a metadata value
    that does not match its checksum."""
    for (name,) in at.execute("SELECT name FROM metadata ORDER BY name").fetchall():
        read_metadata(at, name)


def fill_checksums(at: Connection) -> bool:
    """Write missing checksums, of rows of an earlier version: of a metadata row, or of some
    rows of the application's state; return false when all rows have one."""
    row = at.execute(
        "SELECT name, content FROM metadata WHERE checksum IS NULL LIMIT 1"
    ).fetchone()
    if row is not None:
        write_metadata(at, *row)
        return True
    return fill_app_state(at)


def fill_app_state(at: Connection) -> bool:
    """Write missing checksums of some rows of the application's state; return false when all
    rows have one."""
    found = at.execute(
        "SELECT key, content FROM app_state WHERE checksum IS NULL LIMIT ?", (_FILLED,)
    ).fetchall()
    long = at.engine.unique_key
    at.executemany(
        f"UPDATE app_state SET checksum = ? WHERE {long('key')} = {long('?')}",
        [(key_checksum(key, content), key) for key, content in found],
    )
    return bool(found)


def write_changes(at: Connection, changes: Changes) -> None:
    """Apply a block's writes to the application's state."""
    written = [
        (key, value, key_checksum(key, value))
        for key, value in changes.items()
        if value is not None
    ]
    removed = [(key,) for key, value in changes.items() if value is None]
    long = at.engine.unique_key
    at.executemany(
        "INSERT INTO app_state (key, content, checksum) VALUES (?, ?, ?)"
        f" ON CONFLICT ({long('key')}) DO UPDATE"
        " SET content = excluded.content, checksum = excluded.checksum",
        written,
    )
    at.executemany(f"DELETE FROM app_state WHERE {long('key')} = {long('?')}", removed)


def app_value(key: bytes, content: bytes, checksum: int | None) -> bytes:
    """Return the checked value of a row of the application's state; raise
    :exc:`~flask_noderpc.backends.sql.packed.blocks.DamagedValue` if its checksum differs."""
    return checked("app_state", key, content, checksum)


def app_range(
    at: Connection, prefix: bytes, after: bytes | None, limit: int
) -> tuple[tuple[bytes, bytes], ...]:
    """Return up to ``limit`` pairs of key and value whose keys start with the prefix and sort
    after ``after``."""
    head = at.engine.prefix_key
    low = prefix if after is None else max(prefix, after + b"\0")
    bounds = [f"{head('key')} >= {head('?')} AND key >= ?"]
    values: list[object] = [low, low]
    if high := _end_of(prefix):
        bounds.append(f"{head('key')} <= {head('?')} AND key < ?")
        values += [high, high]
    found = at.execute(
        f"SELECT key, content, checksum FROM app_state WHERE {' AND '.join(bounds)}"
        f" ORDER BY {head('key')}, key LIMIT ?",
        (*values, limit),
    )
    return tuple([(row[0], app_value(*row)) for row in found])


def _end_of(prefix: bytes) -> bytes:
    """Return the lowest key above all keys with the prefix; empty if no such key exists."""
    prefix = prefix.rstrip(b"\xff")
    return prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else b""


def check_app_state(at: Connection, after: bytes | None) -> bytes | None:
    """Check the next 1,000 rows of the application's state after a key; return the last key,
    or ``None`` after the last row. Raise
    :exc:`~flask_noderpc.backends.sql.packed.blocks.DamagedValue`."""
    found = app_range(at, b"", after, _CHECKED)
    return found[-1][0] if found else None
