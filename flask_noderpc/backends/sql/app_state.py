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
