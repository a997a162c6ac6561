"""SQLite store, the reference backend."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import StoreError
from ..base.location import FileLocation, Identity
from . import wal

if TYPE_CHECKING:
    from .backend import SQLiteBackend

__all__ = ["SQLiteBackend", "stored_identity"]


def __getattr__(name: str) -> Any:
    # Import the backend at its first use: ``noderpc start`` itself only reads the store's
    # identity.
    if name != "SQLiteBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(".backend", __name__).SQLiteBackend


def stored_identity(path: str | os.PathLike[str]) -> Identity | None:
    """Return the identity of the chain in a store; ``None`` if it does not exist or can't be
    read now."""
    file = Path(os.path.realpath(FileLocation(path).file))
    if not file.is_file():
        return None
    try:
        wal.check(file)
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
            return _identity(connection)
    except (sqlite3.Error, StoreError):
        # Ignore the error here: the process that opens the store reports it.
        return None


def _identity(connection: sqlite3.Connection) -> Identity | None:
    # Stores of version 0.1 lack these columns: read the chain ID from the genesis document.
    columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(chain)")}
    chain_id = "chain_id" if "chain_id" in columns else "genesis ->> 'chain_id'"
    dialect = "dialect" if "dialect" in columns else "''"
    row = connection.execute(f"SELECT {chain_id}, application, {dialect} FROM chain").fetchone()
    return None if row is None else Identity(*row)
