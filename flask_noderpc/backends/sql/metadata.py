"""Values by name beside the chain: what one process leaves for the others.

Each row has a checksum of its name and value.
"""

from __future__ import annotations

from .connection import Connection
from .packed.row import checked, key_checksum

GENESIS = "genesis"
"""Name of where the chunks of a genesis document are from, as another node sent them."""


def chunk_name(number: int) -> str:
    """Return the name of such a chunk."""
    return f"genesis.{number}"


def read(at: Connection, name: str) -> bytes | None:
    """Return a value; ``None`` if there is none."""
    row = at.execute(
        "SELECT content, checksum FROM metadata WHERE name = ?", (name,)
    ).fetchone()
    return None if row is None else checked("metadata", name.encode(), *row)


def write(at: Connection, name: str, value: bytes) -> None:
    """Write a value in place of the former one."""
    at.execute(
        "INSERT INTO metadata (name, content, checksum) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE"
        " SET content = excluded.content, checksum = excluded.checksum",
        (name, value, key_checksum(name.encode(), value)),
    )


def fill_some(at: Connection) -> bool:
    """Write the checksum of a value of an earlier version; return false when all have one."""
    row = at.execute(
        "SELECT name, content FROM metadata WHERE checksum IS NULL LIMIT 1"
    ).fetchone()
    if row is None:
        return False
    name, content = row
    write(at, name, content)
    return True


def check(at: Connection) -> None:
    """Raise :exc:`~flask_noderpc.backends.sql.packed.row.DamagedValue` for a value that is not
    what was written."""
    for (name,) in at.execute("SELECT name FROM metadata ORDER BY name").fetchall():
        read(at, name)
