"""The application's committed key-value state."""

from __future__ import annotations

import sqlite3

from ..base.application import Changes


def write_changes(at: sqlite3.Connection, changes: Changes) -> None:
    """Apply what a block writes into the application's state."""
    written = [(key, value) for key, value in changes.items() if value is not None]
    removed = [(key,) for key, value in changes.items() if value is None]
    at.executemany(
        "INSERT INTO app_state (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        written,
    )
    at.executemany("DELETE FROM app_state WHERE key = ?", removed)
