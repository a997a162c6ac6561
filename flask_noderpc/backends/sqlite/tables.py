"""Tables of the store, and the steps that create them.

Responses are built from packed rows, each with a checksum (``backends.sql.packed``). The other
columns are for look-ups and for an operator's SQL: heights, hashes and keys are plain values,
and times are integer nanoseconds since 1970. Views show them in a readable format.

Each owner of tables has an ordered list of migration steps. Later versions append steps, which
are applied when a store is opened. The names of applied steps are stored in this order in the
migrations table of sqlite-utils, with the owner as the migration set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlite_utils import Database, Migrations

from ...errors import StoreError
from ..sql.values import fill_checksums
from .engine import Connection


def _nothing(connection: Connection) -> bool:
    return False


class Step(NamedTuple):
    """A migration step: a change to an owner's tables."""

    name: str
    run: Callable[[Database], None]
    fill: Callable[[Connection], bool] = _nothing
    """Function that is called before ``run``, each time in a new transaction: it updates some
    rows that the step needs, and returns false when no such row is left."""


class Owner:
    """An owner of tables, with the ordered steps that create them."""

    def __init__(self, name: str, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)
        # sqlite-utils manages the table of applied steps.
        self._migrations = Migrations(name)

    @property
    def names(self) -> list[str]:
        """Names of all steps, in order."""
        return [step.name for step in self._steps]

    def applied(self, connection: Connection) -> list[str]:
        """Return the names of the steps that a store has applied, in order."""
        return [step.name for step in self._migrations.applied(Database(connection))]

    def missing(self, connection: Connection) -> tuple[Step, ...]:
        """Return the steps that a store lacks; raise :exc:`StoreError` if its applied steps
        are not the first steps of the list."""
        taken, names = self.applied(connection), self.names
        if taken == names[: len(taken)]:
            return self._steps[len(taken) :]
        if unknown := [name for name in taken if name not in names]:
            raise StoreError(
                f"the store was created by a newer flask-noderpc ({', '.join(unknown)}):"
                " upgrade the package, or use another NODERPC_DATABASE"
            )
        raise StoreError(
            f"the store has applied the migrations {', '.join(taken)} of"
            f" {self._migrations.name}, expected the first of {', '.join(names)} in this order:"
            " it was created by a development version, so restore a backup or use another"
            " NODERPC_DATABASE"
        )

    def apply_missing(self, connection: Connection) -> bool:
        """Apply missing steps in this transaction; return true if another call in a new
        transaction must continue."""
        for step in self.missing(connection):
            if step.fill(connection):
                return True
            step.run(Database(connection))
            self.record(connection, step.name)
        return False

    def record(self, connection: Connection, name: str) -> None:
        """Record a step as applied."""
        self._migrations.ensure_migrations_table(Database(connection))
        connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
            " VALUES (?, ?, datetime('now'))",
            (self._migrations.name, name),
        )

    def forget(self, connection: Connection) -> None:
        """Delete the record of all steps of this owner."""
        connection.execute(
            "DELETE FROM _sqlite_migrations WHERE migration_set = ?", (self._migrations.name,)
        )


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

# Event index of transactions or blocks: the values of event attributes, and the events that
# have them. See sql/index.py.
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

# Tables as in version 0.1, with other index names. The mempool has AUTOINCREMENT, so that a
# cursor never sees a number twice, even after the table was empty.
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

# Number and total bytes of the pending transactions: each new transaction reads them.
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

# Number of indexed transactions per 1,024 heights, for searches of a range of heights.
_TX_COUNTS = """
CREATE TABLE tx_counts (heights INTEGER PRIMARY KEY, txs INTEGER NOT NULL) STRICT;
"""

# Views for people who read the store with SQL.
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

# Rename the column ``value``, so that a process of the previous version fails instead of
# writing rows without checksums. The index serves to find rows that have no checksum yet.
_WITH_CHECKSUMS = ("app_state", "metadata")
_CHECKSUMS = """
ALTER TABLE {table} RENAME COLUMN value TO content;
ALTER TABLE {table} ADD COLUMN checksum INTEGER;
CREATE INDEX {table}_unfilled ON {table} (checksum) WHERE checksum IS NULL;
"""


def _packed_rows(db: Database) -> None:
    _create(db, _UNCHANGED)
    create_new(db)


def create_new(db: Database) -> None:
    """Create the tables that a version 0.1 store lacks."""
    indexes = [_INDEX.format(kind=kind) for kind in ("tx", "block")]
    for script in (_CHAIN, *indexes, _TOTALS, _TX_COUNTS, _VIEWS):
        _create(db, script)


def _checksums(db: Database) -> None:
    for table in _WITH_CHECKSUMS:
        _create(db, _CHECKSUMS.format(table=table))


def _checksums_filled(db: Database) -> None:
    for table in _WITH_CHECKSUMS:
        _create(db, f"DROP INDEX {table}_unfilled")


def _create(db: Database, script: str) -> None:
    # Execute each statement by itself, as executescript would commit the transaction.
    for statement in script.strip().split(";\n"):
        db.execute(statement)


CORE = Owner(
    "flask_noderpc",
    (
        Step("m101_packed_rows", _packed_rows),
        Step("m102_checksums", _checksums),
        Step("m103_checksums_filled", _checksums_filled, fill_checksums),
    ),
)
"""Owner of the chain's tables."""

OWNERS = (CORE,)
"""All owners of tables, in the order in which their steps are applied."""
