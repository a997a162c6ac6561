"""The application's committed key-value state."""

from __future__ import annotations

from ..base.application import Changes
from .connection import Connection


def write_changes(at: Connection, changes: Changes) -> None:
    """Apply what a block writes into the application's state."""
    written = [(key, value) for key, value in changes.items() if value is not None]
    removed = [(key,) for key, value in changes.items() if value is None]
    long = at.engine.long
    at.executemany(
        "INSERT INTO app_state (key, value) VALUES (?, ?)"
        f" ON CONFLICT ({long('key')}) DO UPDATE SET value = excluded.value",
        written,
    )
    at.executemany(f"DELETE FROM app_state WHERE {long('key')} = {long('?')}", removed)


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
        f"SELECT key, value FROM app_state WHERE {' AND '.join(bounds)}"
        f" ORDER BY {head('key')}, key LIMIT ?",
        (*values, limit),
    )
    return tuple((bytes(key), bytes(value)) for key, value in found)


def end_of(prefix: bytes) -> bytes:
    """Return the first key behind all with the prefix; empty if there is none."""
    prefix = prefix.rstrip(b"\xff")
    return prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else b""
