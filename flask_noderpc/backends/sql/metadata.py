"""Values by name beside the chain: what one process leaves for the others."""

from __future__ import annotations

from .connection import Connection


def read(at: Connection, name: str) -> bytes | None:
    """Return a value; ``None`` if there is none."""
    row = at.execute("SELECT value FROM metadata WHERE name = ?", (name,)).fetchone()
    return None if row is None else bytes(row[0])


def write(at: Connection, name: str, value: bytes) -> None:
    """Write a value in place of the former one."""
    at.execute(
        "INSERT INTO metadata (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )
