"""Convert errors of PostgreSQL to errors of the store that say what to do."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from ..backends.sql.packed.blocks import DamagedRow
from ..errors import FULL, StoreError, StoreUnavailable
from .green import DatabaseNotResponding

_POOLED = (
    "a pooler such as PgBouncer gives each transaction another connection: add"
    " pool_mode=transaction to the URL of the database"
)
_CURES: tuple[tuple[type[psycopg.Error], str], ...] = (
    (errors.DiskFull, f"{FULL}: make space on the database's host"),
    (errors.OutOfMemory, "the database has too little memory: free some on its host"),
    (errors.TooManyConnections, "the database has no free connections: raise max_connections"),
    (
        errors.ReadOnlySqlTransaction,
        "the database is read-only: name the primary, if this is a standby",
    ),
    (
        errors.InsufficientPrivilege,
        "the user lacks a privilege: GRANT it, or name another user",
    ),
    (errors.InvalidCatalogName, "the database does not exist: create it with createdb"),
    (errors.UndefinedTable, "a table is missing: restore a backup"),
    (errors.UndefinedColumn, "a column is missing: restore a backup"),
    (errors.LockNotAvailable, "another process holds a lock for long: see pg_stat_activity"),
    (
        errors.SerializationFailure,
        "a standby cancelled the read for its recovery: try again, or raise"
        " max_standby_streaming_delay there",
    ),
    (errors.QueryCanceled, "the database took too long: check its load"),
    (errors.DuplicatePreparedStatement, _POOLED),
    (errors.InvalidSqlStatementName, _POOLED),
    (errors.AdminShutdown, "the database is shutting down: start it again"),
    (errors.CannotConnectNow, "the database is starting or shutting down: wait for it"),
)

_AWAY = "the database can't be reached: check that PostgreSQL is running there"

# Parts of error texts of connection attempts, which have no SQLSTATE.
_NO_PASSWORD = ("password authentication failed", "no password supplied")
_NOT_ALLOWED = ("does not exist", "no pg_hba.conf entry")
_TEXTS = (
    (
        _NOT_ALLOWED[0],
        "the user or the database does not exist: create it with createuser or createdb",
    ),
    (_NOT_ALLOWED[1], "the database refuses this user or host: allow it in pg_hba.conf"),
    ("too many clients", "the database has no free connections: raise max_connections"),
    (
        "remaining connection slots",
        "the database has no free connections: raise max_connections",
    ),
)


@contextmanager
def postgres_errors(shown: str) -> Iterator[None]:
    """Convert PostgreSQL's errors to :exc:`StoreError` with advice and the name of the
    database."""
    try:
        yield
    except psycopg.Error as error:
        kind = StoreUnavailable if _may_pass(error) else StoreError
        raise kind(_cause(error), shown) from error
    except DamagedRow as error:
        raise StoreError(str(error), shown) from None
    except StoreError as error:
        raise type(error)(error.reason, error.path or shown) from error.__cause__
    except (OverflowError, struct.error):
        # An integer exceeds 64 bits; psycopg without its C part raises the second error.
        raise StoreError(
            "expected integers of at most 64 bits to store or to look up, got a larger one",
            shown,
        ) from None


def is_recovery_conflict(error: BaseException) -> bool:
    """Return true if a standby cancelled a read because of its recovery."""
    if isinstance(error, errors.QueryCanceled):
        return "conflict with recovery" in str(error)
    return isinstance(error, (errors.SerializationFailure, errors.DeadlockDetected))


def _may_pass(error: psycopg.Error) -> bool:
    """Return true for errors that may go away without a change of settings, such as an
    unavailable or busy server."""
    if not isinstance(error, psycopg.OperationalError):
        return False
    if error.sqlstate is None:
        return not any(part in str(error) for part in (*_NO_PASSWORD, *_NOT_ALLOWED))
    return not isinstance(error, errors.InvalidAuthorizationSpecification)


def _cause(error: psycopg.Error) -> str:
    text = next(iter(str(error).strip().splitlines()), type(error).__name__)
    for kind, cure in _CURES:
        if isinstance(error, kind):
            return f"{cure} ({text})"
    if isinstance(error, DatabaseNotResponding):
        return f"the database does not respond, check its host: {text}"
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        return f"{_cure_of_text(str(error))} ({text})"
    return text


def _cure_of_text(text: str) -> str:
    if any(each in text for each in _NO_PASSWORD):
        return (
            "the database refuses the password: set it in the file of PGPASSFILE, in a service"
            " of PGSERVICEFILE, or in PGPASSWORD"
        )
    for part, cure in _TEXTS:
        if part in text:
            return cure
    return _AWAY
