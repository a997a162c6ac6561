"""The application's committed key-value state; each row has a checksum of its key and value."""

from __future__ import annotations

from ..base.application import Changes
from .connection import Connection
from .packed.row import checked, key_checksum

# Rows of an earlier version that get a checksum in one transaction, and rows that a
# verification reads at once.
_FILLED, _CHECKED = 2_000, 1_000


def write_changes(at: Connection, changes: Changes) -> None:
    """Apply what a block writes into the application's state."""
    written = [
        (key, value, key_checksum(key, value))
        for key, value in changes.items()
        if value is not None
    ]
    removed = [(key,) for key, value in changes.items() if value is None]
    long = at.engine.long
    at.executemany(
        "INSERT INTO app_state (key, content, checksum) VALUES (?, ?, ?)"
        f" ON CONFLICT ({long('key')}) DO UPDATE"
        " SET content = excluded.content, checksum = excluded.checksum",
        written,
    )
    at.executemany(f"DELETE FROM app_state WHERE {long('key')} = {long('?')}", removed)


def fill_some(at: Connection) -> bool:
    """Write the checksums of some rows of an earlier version; return false when all rows have
    one."""
    found = at.execute(
        "SELECT key, content FROM app_state WHERE checksum IS NULL LIMIT ?", (_FILLED,)
    ).fetchall()
    long = at.engine.long
    at.executemany(
        f"UPDATE app_state SET checksum = ? WHERE {long('key')} = {long('?')}",
        [(key_checksum(key, content), key) for key, content in found],
    )
    return bool(found)


def value(key: bytes, content: bytes, checksum: int | None) -> bytes:
    """Return the value of a row; raise
    :exc:`~flask_noderpc.backends.sql.packed.row.DamagedValue`."""
    return checked("app_state", key, content, checksum)


def read_range(
    at: Connection, prefix: bytes, after: bytes | None, limit: int
) -> tuple[tuple[bytes, bytes], ...]:
    """Return the first pairs whose keys begin with the prefix and follow ``after``."""
    head = at.engine.head
    low = prefix if after is None else max(prefix, after + b"\0")
    bounds = [f"{head('key')} >= {head('?')} AND key >= ?"]
    values: list[object] = [low, low]
    if high := end_of(prefix):
        bounds.append(f"{head('key')} <= {head('?')} AND key < ?")
        values += [high, high]
    found = at.execute(
        f"SELECT key, content, checksum FROM app_state WHERE {' AND '.join(bounds)}"
        f" ORDER BY {head('key')}, key LIMIT ?",
        (*values, limit),
    )
    return tuple([(row[0], value(*row)) for row in found])


def end_of(prefix: bytes) -> bytes:
    """Return the first key behind all with the prefix; empty if there is none."""
    prefix = prefix.rstrip(b"\xff")
    return prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else b""


def check_some(at: Connection, after: bytes | None) -> bytes | None:
    """Check the rows that follow a key, up to a limit; return the last key, ``None`` behind
    the last row. Raise :exc:`~flask_noderpc.backends.sql.packed.row.DamagedValue`."""
    found = read_range(at, b"", after, _CHECKED)
    return found[-1][0] if found else None
