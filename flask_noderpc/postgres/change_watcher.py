"""Wait for changes of the database by other processes.

A notification wakes the waiting threads at once. The store is also polled, because a
notification can be lost with its connection, and PgBouncer and standbys deliver no
notifications.
"""

from __future__ import annotations

import threading
from contextlib import suppress

import psycopg

from ..backends.sql import handles
from ..errors import StoreError
from .database import Database
from .engine import CHANNEL, POSTGRES
from .readers import Readers

_STATE = (
    f"SELECT (SELECT max(height) FROM {POSTGRES.heights}), (SELECT max(number) FROM rewinds),"
    " (SELECT revision FROM chain), (SELECT last_seq FROM mempool_totals),"
    " (SELECT txs FROM mempool_totals), (SELECT count(*) FROM pending_evidence)"
)

# Seconds between attempts of a listener to connect, and between checks whether it should end.
_AGAIN_S = 1.0


class ChangeWatcher(handles.ChangeWatcher):
    """Wakes the threads that wait for the store to change."""

    def __init__(self, database: Database, readers: Readers, poll_s: float) -> None:
        super().__init__(poll_s)
        self._database = database
        self._readers = readers
        self._state: object = None
        self._ended = threading.Event()
        self._listener: threading.Thread | None = None

    def notify(self) -> None:
        self._readers.announce_change()
        super().notify()

    def _is_new(self) -> bool:
        self._listen()
        before, self._state = self._state, self._readers.one(_STATE)
        return self._state != before

    def _listen(self) -> None:
        if self._listener is None and not self._database.url.is_pooled:
            self._listener = threading.Thread(
                target=self._hear, name="noderpc-listener", daemon=True
            )
            self._listener.start()

    def _hear(self) -> None:
        while not self._ended.is_set():
            with suppress(psycopg.Error, StoreError):
                self._hear_until_lost()
            self._ended.wait(_AGAIN_S)

    def _hear_until_lost(self) -> None:
        with self._database.connect() as at:
            # LISTEN fails on a standby: wait, as the standby may be promoted.
            while at.execute("SELECT pg_is_in_recovery()").fetchone() == (True,):
                if self._ended.wait(_AGAIN_S):
                    return
            at.execute(f"LISTEN {CHANNEL}")
            # Wake all threads once, because notifications before LISTEN are lost.
            self.notify()
            while not self._ended.is_set():
                for _ in at.notifies(timeout=_AGAIN_S, stop_after=1):
                    self.notify()

    def suspend(self) -> None:
        """End the listener."""
        self._ended.set()
        if self._listener is not None:
            self._listener.join()
        self._listener = None

    def resume(self) -> None:
        """Let the listener start again at the next wait."""
        self._ended.clear()

    close = suspend
