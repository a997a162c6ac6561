"""Identity of the chain in a store, read without loading the backend."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

from ... import jsoncodec
from ..base.store import Identity, Location


class _Genesis(jsoncodec.Struct):
    chain_id: str


def stored_identity(path: str | os.PathLike[str]) -> Identity | None:
    """The chain in a store; ``None`` where there is none, or none that can be read now."""
    file = Location(path).file
    if not file.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
            return read_identity(connection)
    except (sqlite3.Error, jsoncodec.NotJSON):
        # The server that opens it reports the error.
        return None


def read_identity(connection: sqlite3.Connection) -> Identity | None:
    """The same by a connection that is open."""
    # Stores that an older version made don't have all columns.
    cursor = connection.execute("SELECT * FROM chain")
    row = cursor.fetchone()
    if row is None:
        return None
    found = dict(zip((column[0] for column in cursor.description), row, strict=True))
    genesis = jsoncodec.decode(found["genesis"], _Genesis)
    return Identity(genesis.chain_id, found.get("application", ""))
