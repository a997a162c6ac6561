"""Read connections to the database, each for a query or a snapshot."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Any

import psycopg

from ...concurrency import native_lock
from ...errors import StoreError
from ..base.reads import ChainVersion
from ..sql import readers
from ..sql.readers import read_version
from ..sql.turns import Turns
from .connection import Connection
from .database import Database
from .errors import postgres_errors

MAX_READERS = 8
"""Connections that read in each process."""

# How long a read waits for one of them.
_WAIT_S = 5.0


class Reader(Connection):
    """A connection that only reads."""

    def version(self) -> ChainVersion | None:
        """Return the chain's version."""
        return read_version(self)


class Readers(readers.Readers[Reader]):
    """Read connections; lost ones, as after a restart of the database, are replaced.

    ``fresh_s`` is how long the chain's version is remembered, unless this process learns that
    it has changed.
    """

    begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(self, database: Database, fresh_s: float) -> None:
        super().__init__()
        self._database = database
        self._fresh_s = fresh_s
        self._turns = Turns([True] * MAX_READERS)
        self._version: tuple[float, ChainVersion | None] = (-fresh_s, None)
        # The writer forgets it from a thread of its own.
        self._forgetting = native_lock()

    def _connect(self) -> Reader:
        return Reader(self._database.connect())

    def _errors(self) -> AbstractContextManager[None]:
        return postgres_errors(self._database.shown)

    def _take(self) -> Reader:
        if not self._turns.acquire(_WAIT_S):
            raise StoreError(f"all {MAX_READERS} connections of this process are in use")
        try:
            return super()._take()
        except BaseException:
            self._turns.release(True)
            raise

    def _give_back(self, connection: Reader) -> None:
        try:
            connection.close_if_busy()
            if connection.raw.closed:
                # The idle ones are probably lost as well.
                self._close_idle()
                self._leave()
            else:
                super()._give_back(connection)
        finally:
            self._turns.release(True)

    def one(self, sql: str, *args: object) -> Any:
        with self._errors():
            view = self._read_view()
            if view is not None:
                return view.execute(sql, args).fetchone()
            for _ in range(2):
                connection = self._take()
                try:
                    return connection.execute(sql, args).fetchone()
                except psycopg.OperationalError as error:
                    lost = error
                    if not connection.raw.closed:
                        raise
                finally:
                    self._give_back(connection)
            raise lost

    def _begun(self) -> Reader:
        try:
            return super()._begun()
        except psycopg.OperationalError:
            # This one is new.
            return super()._begun()

    def version(self) -> ChainVersion | None:
        """Return the version of the chain, at most ``fresh_s`` old."""
        now = time.monotonic()
        known = self._version
        known_at, version = known
        if now - known_at >= self._fresh_s:
            version = self._read()
            with self._forgetting:
                # Else it may be older than a write of this process.
                if self._version is known:
                    self._version = now, version
        return version

    def _read(self) -> ChainVersion | None:
        row = self.one(readers.VERSION)
        return readers.version_of(row)

    def forget_version(self) -> None:
        """Read the version anew: the chain has changed."""
        with self._forgetting:
            self._version = -self._fresh_s, None
