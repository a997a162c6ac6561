"""Tables of the store.

What the node answers is in packed rows, each with a checksum (``backends.sql.packed``). The
columns beside them are for look-ups and for an operator's SQL: heights, hashes and keys are
plain, times are integer nanoseconds since 1970, and the views have them readable.
"""

from __future__ import annotations

import logging

from sqlite_utils import Database, Migrations

from ...errors import StoreError
from . import migration, v1
from .engine import Connection

log = logging.getLogger("flask_noderpc.store")

migrations = Migrations("flask_noderpc")

_CHAIN = """
CREATE TABLE chain (
    id INTEGER PRIMARY KEY,
    chain_id TEXT NOT NULL,
    initial_height INTEGER NOT NULL,
    application TEXT NOT NULL,
    app_hash BLOB,
    beginning BLOB NOT NULL,
    genesis BLOB,
    app_state BLOB,
    trusted_height INTEGER,
    trusted BLOB,
    dialect TEXT NOT NULL DEFAULT '',
    revision INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE blocks (
    height INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    time INTEGER NOT NULL,
    proposer BLOB NOT NULL,
    size INTEGER NOT NULL,
    tx_count INTEGER NOT NULL,
    header BLOB NOT NULL,
    events TEXT,
    unchecked TEXT NOT NULL,
    unverified TEXT NOT NULL,
    source TEXT NOT NULL
) STRICT;
CREATE INDEX blocks_unchecked ON blocks (unchecked, height) WHERE unchecked <> '';
CREATE INDEX blocks_left_out ON blocks (height) WHERE events IS NULL;
CREATE INDEX blocks_time ON blocks (time);
CREATE INDEX blocks_with_txs ON blocks (height, tx_count) WHERE tx_count > 0;
CREATE TABLE commits (height INTEGER PRIMARY KEY, "commit" BLOB NOT NULL) STRICT;
CREATE TABLE results (height INTEGER PRIMARY KEY, results BLOB) STRICT;
CREATE INDEX results_missing ON results (height) WHERE results IS NULL;
CREATE TABLE tx_slices (place INTEGER PRIMARY KEY, txs BLOB NOT NULL) STRICT;
CREATE TABLE txs (
    place INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,
    code INTEGER NOT NULL,
    gas_wanted INTEGER NOT NULL,
    gas_used INTEGER NOT NULL,
    events TEXT
) STRICT;
CREATE INDEX txs_hash ON txs (hash, code);
CREATE INDEX txs_failed ON txs (hash) WHERE code <> 0 AND events IS NOT NULL;
CREATE INDEX txs_left_out ON txs (place) WHERE events IS NULL;
CREATE TABLE evidence (
    height INTEGER NOT NULL,
    position INTEGER NOT NULL,
    hash BLOB NOT NULL,
    kind TEXT NOT NULL,
    offence INTEGER NOT NULL,
    evidence BLOB NOT NULL,
    PRIMARY KEY (height, position)
) STRICT;
CREATE INDEX evidence_hash ON evidence (hash);
CREATE INDEX evidence_offence ON evidence (offence);
CREATE TABLE validator_sets (
    since INTEGER PRIMARY KEY, until INTEGER, size INTEGER NOT NULL, members BLOB NOT NULL
) STRICT;
CREATE TABLE validators (id INTEGER PRIMARY KEY, address BLOB NOT NULL UNIQUE) STRICT;
CREATE TABLE missed_votes (
    height INTEGER NOT NULL,
    validator_id INTEGER NOT NULL,
    flag INTEGER NOT NULL,
    PRIMARY KEY (height, validator_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX missed_votes_validator ON missed_votes (validator_id, height, flag);
CREATE TABLE validator_priorities (
    height INTEGER PRIMARY KEY, until INTEGER, priorities BLOB NOT NULL
) STRICT;
CREATE TABLE consensus_params (
    since INTEGER PRIMARY KEY, until INTEGER, params BLOB NOT NULL
) STRICT;
CREATE TABLE pending_evidence (
    hash BLOB PRIMARY KEY,
    height INTEGER NOT NULL,
    time INTEGER NOT NULL,
    size INTEGER NOT NULL,
    evidence BLOB NOT NULL
) STRICT;
CREATE TABLE metadata (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE refuted_results (number INTEGER PRIMARY KEY, height INTEGER NOT NULL) STRICT;
"""

# Of transactions and blocks: the values of indexed attributes, and the events that have them.
_INDEX = """
CREATE TABLE {kind}_keys (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, places INTEGER NOT NULL
) STRICT;
CREATE TABLE {kind}_values (
    id INTEGER PRIMARY KEY,
    key_id INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    value TEXT NOT NULL,
    number TEXT,
    places INTEGER NOT NULL
) STRICT;
CREATE INDEX {kind}_values_digest ON {kind}_values (key_id, digest);
CREATE INDEX {kind}_values_number ON {kind}_values (key_id, number) WHERE number IS NOT NULL;
CREATE TABLE {kind}_hits (
    value_id INTEGER NOT NULL,
    place INTEGER NOT NULL,
    event INTEGER NOT NULL,
    PRIMARY KEY (value_id, place, event)
) STRICT, WITHOUT ROWID;
"""

# As version 0.1 had them, with other names of their indexes.
# AUTOINCREMENT: a cursor over the mempool must never see a number twice, not even after the
# table was empty.
_UNCHANGED = """
CREATE TABLE app_state (key BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE rewinds (number INTEGER PRIMARY KEY, height INTEGER NOT NULL) STRICT;
CREATE TABLE lease (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    last_error TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE evm_hits (
    key INTEGER NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (key, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE evm_unindexed (height INTEGER PRIMARY KEY) STRICT;
CREATE TABLE mempool (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    gas_wanted INTEGER NOT NULL,
    tx BLOB NOT NULL,
    other_hash BLOB,
    sender BLOB,
    nonce INTEGER,
    fee_cap BLOB,
    tip BLOB
) STRICT;
CREATE INDEX mempool_other_hash ON mempool (other_hash);
CREATE UNIQUE INDEX mempool_sender ON mempool (sender, nonce);
CREATE TABLE tx_cache (
    seq INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, arrival INTEGER
) STRICT;
CREATE INDEX tx_cache_arrival ON tx_cache (arrival);
CREATE TABLE filters (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    cursor INTEGER NOT NULL,
    criteria TEXT NOT NULL,
    expires INTEGER NOT NULL,
    owner TEXT NOT NULL DEFAULT ''
) STRICT;
"""

# Each transaction that comes asks for the number and bytes of those that wait.
_TOTALS = """
CREATE TABLE mempool_totals (
    id INTEGER PRIMARY KEY, txs INTEGER NOT NULL, bytes INTEGER NOT NULL
) STRICT;
INSERT INTO mempool_totals SELECT 1, count(*), coalesce(sum(size), 0) FROM mempool;
CREATE TRIGGER mempool_added AFTER INSERT ON mempool
    BEGIN UPDATE mempool_totals SET txs = txs + 1, bytes = bytes + new.size; END;
CREATE TRIGGER mempool_removed AFTER DELETE ON mempool
    BEGIN UPDATE mempool_totals SET txs = txs - 1, bytes = bytes - old.size; END;
"""

# Indexed transactions of each 1,024 heights: a search of a range of heights asks for them.
_TX_COUNTS = """
CREATE TABLE tx_counts (heights INTEGER PRIMARY KEY, txs INTEGER NOT NULL) STRICT;
"""

# For people who read the store with SQL.
_VIEWS = """
CREATE VIEW block_list AS
    SELECT height, strftime('%Y-%m-%dT%H:%M:%SZ', time / 1000000000, 'unixepoch') AS time,
           hex(hash) AS hash, hex(proposer) AS proposer, tx_count, size,
           unchecked, unverified, source
    FROM blocks;
CREATE VIEW missed_vote_list AS
    SELECT hex(address) AS validator, height,
           CASE flag WHEN 1 THEN 'absent' ELSE 'nil' END AS vote
    FROM validators JOIN missed_votes ON validator_id = id;
CREATE VIEW tx_list AS
    SELECT place >> 20 AS height, place & 1048575 AS position, hex(hash) AS hash, code,
           gas_wanted, gas_used
    FROM txs;
CREATE VIEW tx_events AS
    SELECT place >> 20 AS height, place & 1048575 AS position, event.key AS event,
           k.key, v.value
    FROM txs, json_each(txs.events) AS event, json_each(event.value) AS listed
    JOIN tx_values AS v ON v.id = listed.value JOIN tx_keys AS k ON k.id = v.key_id;
CREATE VIEW block_events AS
    SELECT height, event.key AS event, k.key, v.value
    FROM blocks, json_each(blocks.events) AS event, json_each(event.value) AS listed
    JOIN block_values AS v ON v.id = listed.value JOIN block_keys AS k ON k.id = v.key_id;
"""


@migrations()
def m101_packed_rows(db: Database) -> None:
    """The tables of version 0.2."""
    _create(db, _UNCHANGED)
    _create_new(db)


def _create_new(db: Database) -> None:
    indexes = [_INDEX.format(kind=kind) for kind in ("tx", "block")]
    for script in (_CHAIN, *indexes, _TOTALS, _TX_COUNTS, _VIEWS):
        _create(db, script)


def _create(db: Database, script: str) -> None:
    # Not executescript, which commits.
    for statement in script.strip().split(";\n"):
        db.execute(statement)


_DONE = {m101_packed_rows.__name__}

# In a store of version 0.1 whose blocks are being copied.
_COPYING = "m100_copying_blocks"

# To migrate as many blocks takes some seconds.
_MAX_BLOCKS_WHEN_OPENED = 10_000


def refuse_foreign(connection: Connection) -> None:
    """Raise :exc:`StoreError` for a database of another program, without a write to it."""
    # In this order: another process may be making the tables, all at once.
    if not is_empty(connection) and not _applied(connection):
        raise StoreError(
            "the file is a database of another program, no store of flask-noderpc: name another"
            " file (NODERPC_DATABASE)"
        )


def is_empty(connection: Connection) -> bool:
    """Return true for a database without tables."""
    found = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    return found is None


def prepare(connection: Connection, read_only: bool = False) -> None:
    """Create the tables of a new store, or migrate a small one of version 0.1; raise
    :exc:`StoreError` for a store that can't be opened."""
    applied = _applied(connection)
    if applied == _DONE:
        return
    _refuse_others(applied)
    if not applied and not read_only:
        migrations.apply(Database(connection))
        return
    if read_only or _COPYING in applied or _is_large(connection):
        raise StoreError(
            "the store was made by flask-noderpc 0.1: migrate it with `noderpc migrate`, which"
            " can be interrupted and goes on later"
        )
    log.warning("the store of flask-noderpc 0.1 is migrated to this version's tables")
    remaining = begin_migration(connection)
    while remaining is not None:
        remaining = migrate_some(connection)


def begin_migration(connection: Connection) -> int | None:
    """Begin to migrate a store of version 0.1, or go on; return the number of blocks that are
    left, ``None`` if it is migrated. Raise :exc:`StoreError` for any other file."""
    applied = _applied(connection)
    _refuse_others(applied)
    if not applied:
        raise StoreError("this is no store of flask-noderpc")
    if applied == set(v1.STEPS):
        migration.begin(connection)
        _create_new(Database(connection))
        _record(connection, _COPYING)
    return None if applied == _DONE else migration.count(connection)


def migrate_some(connection: Connection) -> int | None:
    """Migrate a little more; return the number of blocks that are left, ``None`` when the
    store is migrated."""
    remaining = migration.step(connection)
    if remaining is None:
        connection.execute("DELETE FROM _sqlite_migrations")
        _record(connection, *_DONE)
    return remaining


def _applied(connection: Connection) -> set[str]:
    return {step.name for step in migrations.applied(Database(connection))}


def _record(connection: Connection, name: str) -> None:
    connection.execute(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
        " VALUES (?, ?, datetime('now'))",
        (migrations.name, name),
    )


def _refuse_others(applied: set[str]) -> None:
    unknown = applied - _DONE - {_COPYING, *v1.STEPS}
    if unknown:
        raise StoreError(
            f"the store was made by a newer flask-noderpc ({', '.join(sorted(unknown))}):"
            " upgrade the package, or use another NODERPC_DATABASE"
        )
    if applied and applied != _DONE and not applied >= set(v1.STEPS):
        raise StoreError(
            "the store was made by a development version before flask-noderpc 0.1: open it"
            " once with version 0.1"
        )


def _is_large(connection: Connection) -> bool:
    (blocks,) = connection.execute("SELECT count(*) FROM blocks").fetchone()
    return bool(blocks > _MAX_BLOCKS_WHEN_OPENED)
