"""The reference backend, in SQLite."""

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
    # Loaded when it is asked for: ``noderpc start`` itself only looks which chain is there.
    if name != "SQLiteBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(".backend", __name__).SQLiteBackend


def stored_identity(path: str | os.PathLike[str]) -> Identity | None:
    """The chain in a store; ``None`` where there is none, or none that can be read now."""
    file = Path(os.path.realpath(FileLocation(path).file))
    if not file.is_file():
        return None
    try:
        wal.check(file)
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
            return _identity(connection)
    except (sqlite3.Error, StoreError):
        # The server that opens it reports the error.
        return None


def _identity(connection: sqlite3.Connection) -> Identity | None:
    # SQLite: a column that version 0.1 does not have is read from its genesis document.
    columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(chain)")}
    chain_id = "chain_id" if "chain_id" in columns else "genesis ->> 'chain_id'"
    dialect = "dialect" if "dialect" in columns else "''"
    row = connection.execute(f"SELECT {chain_id}, application, {dialect} FROM chain").fetchone()
    return None if row is None else Identity(*row)
