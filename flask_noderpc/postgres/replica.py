"""Read from a replica what it has replayed of the primary's chain.

The state is compared for each snapshot, as one of several replicas may lag behind another. If
a replica lacks a block, the primary is read.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import psycopg
from psycopg import errors

from ..backends.sql.connection import Connection
from ..backends.sql.packed.blocks import DamagedRow
from ..errors import StoreError
from .database import Database
from .errors import is_recovery_conflict
from .readers import Reader, Readers, ReplicaReaders, ReplicaState

log = logging.getLogger("flask_noderpc.postgres")

T = TypeVar("T")

# Number of attempts to read from the replica if its recovery cancels the read.
_TRIES = 2
# Seconds between attempts to reconnect to a lost replica.
_AGAIN_S = 1.0


class ReplicaResult(NamedTuple, Generic[T]):
    """The result of a read from the replica, which may be ``None``."""

    value: T


class Replica:
    """Reads from a replica, while it is reachable and does not lag.

    A separate thread reconnects to a lost replica, so that no read waits for it.
    """

    def __init__(self, database: Database, primary: Readers, fresh_s: float) -> None:
        self._shown = database.display_name
        self._primary = primary
        self._fresh_s = fresh_s
        self._readers = ReplicaReaders(database, fresh_s)
        self._seen = -fresh_s, ReplicaState(None, 0)
        self._is_up = False
        # True from a failure until the replica is available again.
        self._is_lost = False
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._connecting: threading.Thread | None = None

    def read(self, work: Callable[[Connection], T], height: int) -> ReplicaResult[T] | None:
        """Return the result of ``work`` in a snapshot that has the blocks up to a height;
        ``None`` if the primary must be read."""
        for _ in range(_TRIES):
            reader = self.take(height)
            if reader is None:
                break
            try:
                return ReplicaResult(work(reader))
            except DamagedRow as error:
                log.warning("%s: %s; the row is read from the primary", self._shown, error)
                break
            except (StoreError, OverflowError):
                # Read from the primary, which raises the same error with its own name.
                break
            except psycopg.Error as error:
                if not is_recovery_conflict(error):
                    self._check(error)
                    break
            finally:
                self._readers.give_back(reader)
        return None

    def take(self, height: int) -> Reader | None:
        """Return a connection with a snapshot that has the blocks up to a height, which the
        caller must give back; ``None`` if the primary must be read."""
        if not self._is_up:
            self._connect_again()
            return None
        known = self._primary.state()
        seen_at, seen = self._seen
        if time.monotonic() - seen_at < self._fresh_s and not _has(seen, known, height):
            return None
        try:
            reader = self._readers.take()
        except (psycopg.Error, StoreError) as error:
            self._check(error)
            return None
        self._seen = time.monotonic(), reader.state
        if not _has(reader.state, known, height):
            self._readers.give_back(reader)
            return None
        return reader

    def give_back(self, reader: Reader) -> None:
        """End a snapshot."""
        self._readers.give_back(reader)

    def _check(self, error: Exception) -> None:
        """If an error shows that the replica is lost, read from the primary until it is
        back."""
        cause = error.__cause__ if isinstance(error, StoreError) else error
        if isinstance(cause, (psycopg.OperationalError, errors.UndefinedTable)) and self._is_up:
            self._is_up = False
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        if not self._is_lost:
            self._is_lost = True
            if not isinstance(error, StoreError):
                error = StoreError(str(error).strip(), self._shown)
            log.warning("%s; the primary is read until the replica is back", error)

    def _connect_again(self) -> None:
        with self._lock:
            if self._connecting is None and not self._ended.is_set():
                self._connecting = threading.Thread(
                    target=self._connect, name="noderpc-replica", daemon=True
                )
                self._connecting.start()

    def _connect(self) -> None:
        while not self._ended.is_set():
            try:
                self._readers.connect()
            except StoreError as error:
                self._warn(error)
                self._ended.wait(_AGAIN_S)
            else:
                self._is_up, self._is_lost = True, False
                log.info("%s: the replica is connected, and is read", self._shown)
                break
        self._connecting = None

    def suspend(self, timeout_s: float) -> bool:
        """Block new reads and close the connections; return true if all reads have ended."""
        self._ended.set()
        connecting = self._connecting
        if connecting is not None:
            connecting.join()
        self._is_up = False
        return self._readers.suspend(timeout_s)

    def resume(self) -> None:
        """Resume reads."""
        self._readers.resume()
        self._ended.clear()

    def close(self) -> None:
        """Close the connections."""
        self._ended.set()
        self._is_up = False
        self._readers.close()


def _has(state: ReplicaState, known: ReplicaState, height: int) -> bool:
    """Return true if ``state`` has the blocks up to a height, or all blocks of ``known``."""
    if known.version is None or state.version is None:
        return False
    # If the history differs, one server has replaced or pruned blocks that the other still
    # has.
    is_same = state.version.history == known.version.history
    return is_same and state.height >= min(height, known.height)
