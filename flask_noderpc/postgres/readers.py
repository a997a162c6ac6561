"""Pool of read connections to the database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGconn
from psycopg.waiting import Wait

from .. import shared
from ..backends.base.reads import ChainVersion
from ..backends.sql import handles
from ..backends.sql.connection import Rows
from ..backends.sql.handles import FairQueue, version_from_row
from ..concurrency import native_lock
from ..errors import StoreError
from . import schema
from .connection import Connection
from .database import Database
from .engine import POSTGRES
from .errors import postgres_errors
from .green import DatabaseNotResponding, GreenConnection

MAX_READERS = 8
"""Maximum number of read connections in each process."""

# Seconds for which a read waits for a free connection.
_WAIT_S = 5.0

# Seconds for which an expired state is still used while one thread reads it again; otherwise
# each request in progress would read it.
_READING_S = 0.005

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_STATE_SQL = (
    f"{handles.version_sql(POSTGRES)}, (SELECT max(height) FROM {POSTGRES.heights}),"
    f" {schema.OLDEST}"
)


class ReplicaState(NamedTuple):
    """State of the chain on one server: its version, and its latest height."""

    version: ChainVersion | None
    height: int

    @classmethod
    def of(cls, row: Any) -> ReplicaState:
        """Build the state from a row of the statement for it; raise :exc:`StoreError` if the
        tables are of a newer version."""
        *version, height, oldest = row
        schema.check_oldest(oldest)
        return cls(version_from_row(version), height or 0)


_UNKNOWN = ReplicaState(None, 0)


class _Known(NamedTuple):
    """A state that was read, and how long it is valid."""

    state: ReplicaState = _UNKNOWN
    until: float = 0.0
    """Monotonic time; 0 if no state is known."""
    changes: bytes = b""
    """Changes that the processes of the node had noted before the state was read."""

    def is_fresh(self, now: float) -> bool:
        """Return true if the state is valid at a time."""
        return now < self.until and self.changes == shared.changes()


class Reader(Connection):
    """A connection that only reads.

    Beginning a snapshot takes one round trip, which also reads the chain's state; ending it
    takes no round trip.
    """

    raw: GreenConnection

    def __init__(self, raw: GreenConnection, is_pooled: bool) -> None:
        super().__init__(raw)
        self._is_ending = False
        self.state = _UNKNOWN
        """State of the last snapshot."""
        # Use no prepared statement behind PgBouncer, where the transaction may get a
        # connection that lacks it.
        self._begin = f"{_BEGIN}; {_STATE_SQL if is_pooled else 'EXECUTE noderpc_standing'}"
        if not is_pooled:
            self.script(f"PREPARE noderpc_standing AS {_STATE_SQL}")

    def begin(self) -> None:
        """Begin a snapshot."""
        with self.raw.expect_fast_response():
            self._finish_ending()
            self.state = ReplicaState.of(self.script(self._begin).fetchone())

    def version(self) -> ChainVersion | None:
        """Return the chain's version in the snapshot."""
        return self.state.version

    def execute(self, sql: str, parameters: Any = (), /) -> Rows:
        """Execute one statement."""
        self._finish_ending()
        return super().execute(sql, parameters)

    def rollback(self) -> None:
        """Send the ROLLBACK that ends the snapshot; the next statement waits for its
        response."""
        pgconn = self.raw.pgconn
        # Do this even after errors, because psycopg's own rollback also sends DEALLOCATE ALL.
        if pgconn.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            pgconn.send_query(b"ROLLBACK")
            pgconn.flush()
            self._is_ending = True
        else:
            super().rollback()

    def _finish_ending(self) -> None:
        if self._is_ending:
            self.raw.wait(_discard_results(self.raw.pgconn))
            self._is_ending = False

    def close_if_busy(self) -> None:
        """Close a connection that was interrupted within a statement."""
        if not self._is_ending:
            super().close_if_busy()


def _discard_results(pgconn: PGconn) -> PQGen[None]:
    """Read and discard the result of a statement, which has usually arrived already."""
    pgconn.consume_input()
    while pgconn.is_busy():
        while not (yield Wait.R):
            pass
        pgconn.consume_input()
    while pgconn.get_result() is not None:
        pass


class Readers(handles.Readers[Reader]):
    """Pool of read connections that replaces lost ones, for example after a restart of the
    database.

    ``fresh_s`` is the time for which the chain's version is cached, unless this process learns
    that it has changed.
    """

    def __init__(self, database: Database, fresh_s: float) -> None:
        super().__init__()
        self._database = database
        self._fresh_s = fresh_s
        self._turns = FairQueue([True] * MAX_READERS)
        self._known = _Known()
        self._forgotten = 0
        """Number of times that the known state was forgotten."""
        self._last = _UNKNOWN
        """State that was read last."""
        # Use a native lock, because the writer's native thread clears the cached version.
        self._forgetting = native_lock()

    def _connect(self) -> Reader:
        raw = self._database.connect(GreenConnection)
        assert isinstance(raw, GreenConnection), "connect() returns the class that it is given"
        try:
            return Reader(raw, self._database.url.is_pooled)
        except BaseException:
            raw.close()
            raise

    def _errors(self) -> AbstractContextManager[None]:
        return postgres_errors(self._database.display_name)

    def _take(self) -> Reader:
        if not self._turns.acquire(_WAIT_S):
            raise StoreError(
                f"all {MAX_READERS} read connections of this process are in use: try again"
            )
        # Use the connection that was returned first: the response to its ROLLBACK has probably
        # arrived.
        self._idle.rotate(1)
        try:
            return super()._take()
        except BaseException:
            self._turns.release(True)
            raise

    def _give_back(self, connection: Reader) -> None:
        try:
            connection.close_if_busy()
            if connection.raw.closed:
                # Close the idle connections, which are probably lost as well.
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
            return self._one_now(sql, args)

    def _one_now(self, sql: str, args: tuple[object, ...]) -> Any:
        """Return the first row of current data, even if this thread shares a snapshot; after a
        lost connection, try once more."""
        for _ in range(2):
            connection = self._take()
            try:
                with connection.raw.expect_fast_response():
                    return connection.execute(sql, args).fetchone()
            except DatabaseNotResponding:
                raise
            except psycopg.OperationalError as error:
                lost = error
                if not connection.raw.closed:
                    raise
            finally:
                self._give_back(connection)
        raise lost

    def _begin_snapshot(self) -> Reader:
        forgotten, now, changes = self._forgotten, time.monotonic(), shared.changes()
        try:
            reader = super()._begin_snapshot()
        except DatabaseNotResponding:
            raise
        except psycopg.OperationalError:
            # The connection was lost: try again with a new one.
            reader = super()._begin_snapshot()
        # The snapshot's state saves a statement of its own for the version.
        self._remember(_Known(reader.state, now + self._fresh_s, changes), forgotten)
        return reader

    @property
    def holds_view(self) -> bool:
        """True while the reads of this thread share a snapshot."""
        return self._read_view() is not None

    @contextmanager
    def share(self, view: Reader) -> Iterator[ChainVersion | None]:
        """In this context, all reads of this thread use a snapshot of a replica; yield its
        version."""
        with self._errors(), self.using(view):
            yield view.state.version

    # The version of the chain.

    def version(self) -> ChainVersion | None:
        """Return the version of the chain, at most ``fresh_s`` old."""
        return self.state().version

    def state(self) -> ReplicaState:
        """Return the state of the chain, at most ``fresh_s`` old."""
        now = time.monotonic()
        if self._known.is_fresh(now):
            return self._known.state
        self._keep_while_reading(now)
        forgotten, changes = self._forgotten, shared.changes()
        with self._errors():
            state = ReplicaState.of(self._one_now(_STATE_SQL, ()))
        self._remember(_Known(state, now + self._fresh_s, changes), forgotten)
        return state

    def _keep_while_reading(self, now: float) -> None:
        """Let other threads use an expired state for some milliseconds, in which this thread
        reads it again."""
        with self._forgetting:
            if self._known.until:
                self._known = self._known._replace(until=now + _READING_S)

    def _remember(self, read: _Known, forgotten: int) -> None:
        """Keep a state, unless states were forgotten since it was read or a newer one is known;
        let other processes know if it differs from the last one."""
        with self._forgetting:
            is_new, self._last = read.state != self._last, read.state
            if self._forgotten == forgotten and read.until > self._known.until:
                self._known = read
        if is_new:
            shared.note_change()

    def forget_older(self, height: int) -> None:
        """Forget the cached version unless its height equals the height of the head just
        reported."""
        if self._known.state.height != height:
            self.announce_change()

    def announce_change(self) -> None:
        """Let this process and the other ones of the node read the version again, as the chain
        has changed."""
        shared.note_change()
        self.forget_version()

    def forget_version(self) -> None:
        """Forget the cached version."""
        with self._forgetting:
            self._known = _Known()
            self._forgotten += 1


class ReplicaReaders(Readers):
    """Pool of read connections to a replica."""

    def take(self) -> Reader:
        """Return a connection with a snapshot."""
        return self._begin_snapshot()

    def give_back(self, connection: Reader) -> None:
        """End the snapshot of a connection, and return it to the pool."""
        self._end(connection)

    def connect(self) -> None:
        """Open and test a connection, and put it into the pool."""
        with self._errors():
            connection = self._connect()
            try:
                connection.begin()
                connection.rollback()
            except BaseException:
                connection.close()
                raise
        self._idle.append(connection)
        if self._closed:
            self._close_idle()
