"""Writers of a process to the database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import psycopg
from psycopg import errors

from ..backends.sql import writer
from ..backends.sql.writer import Job
from ..concurrency import native_lock
from ..errors import StoreError
from .connection import Connection
from .database import Database
from .errors import postgres_errors
from .partitions import LOCK_TIMEOUT
from .schema import OLDEST, check_oldest

# The database ends the transaction of a process that was paused or cut off after 10 s, so that
# its locks are released.
_LIMITS = (
    "SET LOCAL idle_in_transaction_session_timeout = '10s';"
    f" SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"
)

CHAIN = f"BEGIN; {_LIMITS}; SELECT 1 FROM lease FOR UPDATE; SELECT {OLDEST}"
"""Statements that begin a transaction with the chain's lock, which no two transactions hold at
a time."""
MEMPOOL = f"BEGIN; {_LIMITS}; SELECT {OLDEST}"
"""Statements that begin a transaction without the chain's lock, which does not wait for a
block."""


class Writer(writer.Writer):
    """A writer with one thread and one connection; a lost connection is replaced.

    ``on_commit`` is called after each transaction, before its callers continue.
    """

    def __init__(
        self, database: Database, name: str, begin: str, on_commit: Callable[[], None]
    ) -> None:
        super().__init__(name)
        self._database = database
        self._begin = begin
        self._on_commit = on_commit
        self._connection: Connection | None = None
        self.between_writes = native_lock()

    def _errors(self) -> AbstractContextManager[None]:
        return postgres_errors(self._database.display_name)

    def _commit(self, jobs: list[Job[Any]]) -> None:
        with self.between_writes:
            if self._database.url.read_only:
                raise StoreError(
                    "the store was opened read-only, and can't be written to",
                    self._database.display_name,
                )
            connection = self._begun()
            try:
                self._do(connection, jobs)
            except BaseException as error:
                connection.rollback()
                self._leave_standby(error)
                raise
            for job in jobs:
                self._leave_standby(job.error)
        self._on_commit()

    def _leave_standby(self, error: BaseException | None) -> None:
        if isinstance(error, errors.ReadOnlySqlTransaction):
            # Connect again at the next write, as another server may be the primary now.
            self.disconnect()

    def _begun(self) -> Connection:
        """Begin a transaction; open a new connection if the last one is lost."""
        if self._connection is not None:
            try:
                return self._begin_on(self._connection)
            except errors.ReadOnlySqlTransaction:
                self.disconnect()
            except psycopg.OperationalError:
                if not self._connection.raw.closed:
                    raise
        self._connection = Connection(self._database.connect())
        return self._begin_on(self._connection)

    def _begin_on(self, connection: Connection) -> Connection:
        try:
            (oldest,) = connection.script(self._begin).fetchone()
            check_oldest(oldest)
        except BaseException:
            connection.rollback()
            raise
        return connection

    @staticmethod
    def _do(connection: Connection, jobs: list[Job[Any]]) -> None:
        if len(jobs) == 1:
            # A single job needs no savepoint, which saves two round trips.
            jobs[0].run_without_savepoint(connection)
        else:
            for job in jobs:
                job.run(connection)
                if not connection.in_transaction:
                    raise job.error or psycopg.OperationalError("the transaction was lost")
        connection.execute("COMMIT")

    def disconnect(self) -> None:
        """Close the connection between two writes; the next write opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Finish the queued writes, and close the connection."""
        if self._waiting:
            self._thread.run(self._write_jobs)
        self.disconnect()
        self._thread.stop()
