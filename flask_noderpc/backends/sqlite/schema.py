"""Opening of a store: its tables are created, or migrated, or refused."""

from __future__ import annotations

import logging

from sqlite_utils import Database

from ...errors import StoreError
from . import migration, v1
from .engine import Connection
from .tables import CORE, OWNERS, create_new

log = logging.getLogger("flask_noderpc.store")

# In a store of version 0.1 whose blocks are being copied.
_COPYING = "m100_copying_blocks"

# To migrate as many blocks takes some seconds.
_MAX_BLOCKS_WHEN_OPENED = 10_000


def refuse_foreign(connection: Connection) -> None:
    """Raise :exc:`StoreError` for a database of another program, without a write to it."""
    # In this order: another process may be making the tables, all at once.
    if not is_empty(connection) and not CORE.taken(connection):
        raise StoreError(
            "the file is a database of another program, no store of flask-noderpc: name another"
            " file (NODERPC_DATABASE)"
        )


def is_empty(connection: Connection) -> bool:
    """Return true for a database without tables."""
    found = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    return found is None


def prepare(connection: Connection) -> bool:
    """Create the tables of a new store, or migrate the tables of an earlier version;
    return true if another transaction is needed for the rest.

    Raise :exc:`StoreError` for a store that can't be opened.
    """
    if _is_v1(connection):
        if _COPYING in CORE.taken(connection) or _is_large(connection):
            raise _unmigrated()
        log.warning("the store of flask-noderpc 0.1 is migrated to this version's tables")
        remaining = begin_migration(connection)
        while remaining is not None:
            remaining = migrate_some(connection)
    return _go_on(connection)


def announce(connection: Connection) -> None:
    """Log the steps that are missing in a store of an earlier version; some take seconds."""
    if CORE.taken(connection) and not _is_v1(connection) and (names := _missing(connection)):
        log.warning("the tables of an earlier version are migrated: %s", ", ".join(names))


def _missing(connection: Connection) -> list[str]:
    return [step.name for owner in OWNERS for step in owner.missing(connection)]


def check(connection: Connection) -> None:
    """Raise :exc:`StoreError` for tables of another version, which are only read."""
    if _is_v1(connection):
        raise _unmigrated()
    if missing := _missing(connection):
        raise StoreError(
            f"the store was made by an earlier flask-noderpc, and lacks {', '.join(missing)}:"
            " start its node, or run `noderpc migrate`, which adds them"
        )


def _go_on(connection: Connection) -> bool:
    return any(owner.go_on(connection) for owner in OWNERS)


def _unmigrated() -> StoreError:
    return StoreError(
        "the store was made by flask-noderpc 0.1: migrate it with `noderpc migrate`, which"
        " can be interrupted and goes on later"
    )


def begin_migration(connection: Connection) -> int | None:
    """Begin to migrate a store of version 0.1, or go on; return the number of blocks that are
    left, ``None`` if all are copied. Raise :exc:`StoreError` for a store that can't be
    migrated."""
    if not _is_v1(connection):
        if not CORE.taken(connection):
            raise StoreError("this is no store of flask-noderpc")
        return None
    if _COPYING not in CORE.taken(connection):
        migration.begin(connection)
        create_new(Database(connection))
        CORE.record(connection, _COPYING)
    return migration.count(connection)


def migrate_some(connection: Connection) -> int | None:
    """Migrate a little more of a store of version 0.1; return the number of blocks that are
    left, ``None`` when all are copied."""
    remaining = migration.step(connection)
    if remaining is None:
        CORE.forget(connection)
        CORE.record(connection, CORE.names[0])
    return remaining


def _is_v1(connection: Connection) -> bool:
    """Return true for a store of version 0.1, also one whose blocks are being copied; raise
    :exc:`StoreError` for one that is older."""
    taken = set(CORE.taken(connection))
    steps = set(v1.STEPS)
    if not taken or not taken <= steps | {_COPYING}:
        return False
    if not taken >= steps:
        raise StoreError(
            "the store was made by a development version before flask-noderpc 0.1: open it"
            " once with version 0.1"
        )
    return True


def _is_large(connection: Connection) -> bool:
    (blocks,) = connection.execute("SELECT count(*) FROM blocks").fetchone()
    return bool(blocks > _MAX_BLOCKS_WHEN_OPENED)
