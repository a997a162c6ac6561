"""Bounds the size of the WAL.

SQLite checkpoints by itself every few megabytes and then restarts the WAL. It can't restart
it while a reader still uses it.
"""

from __future__ import annotations

import logging
import sqlite3
import time

from .connection import Store

log = logging.getLogger("flask_noderpc.store")

# How long a write may be held up for readers to end: the longer, the larger the log is. All
# that time it may be but a twentieth of.
_PATIENCE_MS, _MAX_PATIENCE_MS = 100, 1_000
_SHARE = 20


class Checkpoints:
    """Truncates the WAL when it is large."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._not_before = 0.0
        self._warned = False

    def after_write(self, connection: sqlite3.Connection) -> None:
        """Truncate the WAL if it is large; a failure does not affect the write."""
        size, limit = self._store.log_bytes(), self._store.max_log_bytes
        if size <= limit:
            self._warned = False
            return
        if time.monotonic() >= self._not_before:
            patience = min(_PATIENCE_MS * size // limit, _MAX_PATIENCE_MS)
            if not _emptied(connection, patience):
                # Many readers one after another let it grow a little.
                if size > 2 * limit:
                    self._log_failure()
                self._not_before = time.monotonic() + _SHARE * patience / 1000

    def _log_failure(self) -> None:
        if self._warned:
            return
        self._warned = True
        log.warning(
            "%s-wal has %s MB and grows, as something has read the store for long: a backup, a"
            " verification or another program; it is emptied when that ends its transaction",
            self._store.file,
            self._store.log_bytes() >> 20,
        )


def _emptied(connection: sqlite3.Connection, patience_ms: int) -> bool:
    (usual,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {patience_ms}").fetchone()
    try:
        (busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        log.warning("the log of what was written is not emptied: %s", error)
        return True
    finally:
        connection.execute(f"PRAGMA busy_timeout = {usual}").fetchone()
    return not busy
