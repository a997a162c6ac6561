"""Tables of a PostgreSQL store, and their migrations.

The tables are those of SQLite, with other types: keys and values of events are bytea, because
text has no U+0000, and no column is sorted by a locale. Times are nanoseconds; the views show
timestamps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..backends.sql import hits
from ..backends.sql.blocks import places
from ..backends.sql.values import fill_checksums
from ..errors import StoreError
from . import partitions
from .connection import Connection

VERSION = 7
"""Version of the tables, which is the number of the last step."""

log = logging.getLogger("flask_noderpc.postgres")

# Number of blocks whose hashes a migration copies per transaction.
_FILLED = 1_000

# Key of the advisory lock for creating and migrating tables; the value is arbitrary.
_LOCK = 0x6E6F64657270

_CHAIN = """
CREATE TABLE noderpc_schema (version bigint NOT NULL, oldest bigint NOT NULL);
CREATE TABLE chain (
    id bigint PRIMARY KEY,
    chain_id text COLLATE "C" NOT NULL,
    initial_height bigint NOT NULL,
    application text COLLATE "C" NOT NULL,
    app_hash bytea,
    beginning bytea NOT NULL,
    genesis bytea,
    app_state bytea,
    trusted_height bigint,
    trusted bytea,
    dialect text COLLATE "C" NOT NULL DEFAULT '',
    revision bigint NOT NULL DEFAULT 0
);
CREATE TABLE evidence (
    height bigint NOT NULL,
    position bigint NOT NULL,
    hash bytea NOT NULL,
    kind text COLLATE "C" NOT NULL,
    offence bigint NOT NULL,
    evidence bytea NOT NULL,
    PRIMARY KEY (height, position)
);
CREATE INDEX evidence_hash ON evidence (hash);
CREATE INDEX evidence_offence ON evidence (offence);
CREATE TABLE validator_sets (
    since bigint PRIMARY KEY, until bigint, size bigint NOT NULL, members bytea NOT NULL
);
CREATE TABLE validators (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, address bytea NOT NULL UNIQUE
);
CREATE TABLE validator_priorities (
    height bigint PRIMARY KEY, until bigint, priorities bytea NOT NULL
);
CREATE TABLE consensus_params (since bigint PRIMARY KEY, until bigint, params bytea NOT NULL);
CREATE TABLE pending_evidence (
    hash bytea PRIMARY KEY,
    height bigint NOT NULL,
    time bigint NOT NULL,
    size bigint NOT NULL,
    evidence bytea NOT NULL
);
CREATE TABLE metadata (
    name text COLLATE "C" PRIMARY KEY, content bytea NOT NULL, checksum bigint NOT NULL
);
CREATE TABLE refuted_results (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, height bigint NOT NULL
);
CREATE TABLE app_state (
    key bytea NOT NULL, content bytea NOT NULL, checksum bigint NOT NULL
);
CREATE UNIQUE INDEX app_state_key ON app_state (sha256(key));
CREATE TABLE rewinds (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, height bigint NOT NULL
);
CREATE TABLE filters (
    id text COLLATE "C" PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    cursor bigint NOT NULL,
    criteria text COLLATE "C" NOT NULL,
    expires bigint NOT NULL,
    owner text COLLATE "C" NOT NULL DEFAULT '',
    rowid bigint GENERATED ALWAYS AS IDENTITY
);
CREATE TABLE lease (
    id bigint PRIMARY KEY,
    owner text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    expires bigint NOT NULL,
    last_error text COLLATE "C" NOT NULL DEFAULT ''
) WITH (fillfactor = 10);
INSERT INTO lease (id, owner, epoch, expires) VALUES (1, '', 0, 0);
"""

# Event index of transactions or blocks: the values of event attributes; see sql/index.py. The
# counts of keys change often, so their pages keep free space for updates that need no new index
# entry. Pages of values don't: most values occur once, and an update leaves space for the next.
# The first stored hit of a value is in the value's row, ``place`` and ``event``.
_INDEX = """
CREATE TABLE {kind}_keys (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key bytea NOT NULL,
    places bigint NOT NULL
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX {kind}_keys_key ON {kind}_keys (sha256(key));
CREATE TABLE {kind}_values (
    id bigint PRIMARY KEY,
    key_id bigint NOT NULL,
    digest bigint NOT NULL,
    value bytea NOT NULL,
    number text COLLATE "C",
    places bigint NOT NULL,
    place bigint,
    event bigint
);
CREATE INDEX {kind}_values_digest ON {kind}_values (key_id, digest);
CREATE INDEX {kind}_values_number ON {kind}_values (key_id, number)
    WHERE number IS NOT NULL;
"""

# Tables that are partitioned by ranges of heights; see :mod:`.partitions`.
_PARTITIONED = """
CREATE TABLE blocks (
    height bigint PRIMARY KEY,
    hash bytea NOT NULL,
    time bigint NOT NULL,
    proposer bytea NOT NULL,
    size bigint NOT NULL,
    tx_count bigint NOT NULL,
    header bytea NOT NULL,
    events text COLLATE "C",
    unchecked text COLLATE "C" NOT NULL,
    unverified text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL
) PARTITION BY RANGE (height);
CREATE INDEX blocks_unchecked ON blocks (unchecked, height) WHERE unchecked <> '';
CREATE INDEX blocks_left_out ON blocks (height) WHERE events IS NULL;
CREATE INDEX blocks_time ON blocks (time);
CREATE INDEX blocks_with_txs ON blocks (height, tx_count) WHERE tx_count > 0;
CREATE TABLE commits (height bigint PRIMARY KEY, "commit" bytea NOT NULL)
    PARTITION BY RANGE (height);
CREATE TABLE results (height bigint PRIMARY KEY, results bytea) PARTITION BY RANGE (height);
CREATE INDEX results_missing ON results (height) WHERE results IS NULL;
CREATE TABLE missed_votes (
    height bigint NOT NULL,
    validator_id bigint NOT NULL,
    flag bigint NOT NULL,
    PRIMARY KEY (height, validator_id)
) PARTITION BY RANGE (height);
CREATE INDEX missed_votes_validator ON missed_votes (validator_id, height, flag);
CREATE TABLE tx_slices (place bigint PRIMARY KEY, txs bytea NOT NULL)
    PARTITION BY RANGE (place);
CREATE TABLE txs (
    place bigint PRIMARY KEY,
    hash bytea NOT NULL,
    code bigint NOT NULL,
    gas_wanted bigint NOT NULL,
    gas_used bigint NOT NULL,
    events text COLLATE "C"
) PARTITION BY RANGE (place);
CREATE INDEX txs_left_out ON txs (place) WHERE events IS NULL;
CREATE TABLE tx_hits (
    value_id bigint NOT NULL,
    place bigint NOT NULL,
    event bigint NOT NULL,
    PRIMARY KEY (value_id, place, event)
) PARTITION BY RANGE (place);
CREATE TABLE block_hits (
    value_id bigint NOT NULL,
    place bigint NOT NULL,
    event bigint NOT NULL,
    PRIMARY KEY (value_id, place, event)
) PARTITION BY RANGE (place);
"""

# Tables of hashes have no partitions, because a look-up by hash has no height. They also serve
# to read the lowest and the highest height.
_HASHES = """
CREATE TABLE partitions (
    low bigint PRIMARY KEY,
    high bigint NOT NULL,
    has_leftovers boolean NOT NULL DEFAULT false,
    is_dropped boolean NOT NULL DEFAULT false
);
CREATE TABLE block_hashes (height bigint PRIMARY KEY, hash bytea NOT NULL UNIQUE);
CREATE TABLE tx_hashes (
    hash bytea NOT NULL,
    code bigint NOT NULL,
    place bigint NOT NULL,
    PRIMARY KEY (hash, code, place)
);
CREATE FUNCTION noderpc_header(wanted bytea) RETURNS TABLE (height bigint, header bytea)
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    here bigint := (SELECT h.height FROM block_hashes AS h WHERE hash = wanted);
BEGIN
    RETURN QUERY SELECT b.height, b.header FROM blocks AS b WHERE b.height = here;
END $$;
CREATE FUNCTION noderpc_tx(wanted bytea)
RETURNS TABLE (place bigint, txs bytea, first_place bigint)
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    here bigint := coalesce(
        (SELECT max(h.place) FROM tx_hashes AS h WHERE hash = wanted AND code = 0),
        (SELECT max(h.place) FROM tx_hashes AS h WHERE hash = wanted)
    );
BEGIN
    RETURN QUERY SELECT here, s.txs, s.place FROM (SELECT 1) AS one LEFT JOIN
        (SELECT t.txs, t.place FROM tx_slices AS t
         WHERE t.place BETWEEN here >> 20 << 20 AND here
         ORDER BY t.place DESC LIMIT 1) AS s ON true;
END $$;
"""

# Triggers that update the tables of hashes.
_TRIGGERS = """
CREATE FUNCTION noderpc_blocks_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO block_hashes (height, hash) SELECT height, hash FROM added;
    RETURN NULL;
END $$;
CREATE TRIGGER blocks_added AFTER INSERT ON blocks REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION noderpc_blocks_added();
CREATE FUNCTION noderpc_blocks_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM block_hashes AS h USING removed AS r WHERE h.height = r.height;
    RETURN NULL;
END $$;
CREATE TRIGGER blocks_removed AFTER DELETE ON blocks REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION noderpc_blocks_removed();
CREATE FUNCTION noderpc_txs_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tx_hashes (hash, code, place) SELECT hash, code, place FROM added;
    RETURN NULL;
END $$;
CREATE TRIGGER txs_added AFTER INSERT ON txs REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION noderpc_txs_added();
CREATE FUNCTION noderpc_txs_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM tx_hashes AS h USING removed AS r
        WHERE h.hash = r.hash AND h.code = r.code AND h.place = r.place;
    RETURN NULL;
END $$;
CREATE TRIGGER txs_removed AFTER DELETE ON txs REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION noderpc_txs_removed();
"""

# Mempool tables, whose rows are inserted and deleted often, so they are vacuumed often.
_MEMPOOL = """
CREATE TABLE mempool (
    seq bigint PRIMARY KEY,
    hash bytea NOT NULL UNIQUE,
    size bigint NOT NULL,
    gas_wanted bigint NOT NULL,
    tx bytea NOT NULL,
    other_hash bytea,
    sender bytea,
    nonce bigint,
    fee_cap bytea,
    tip bytea
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX mempool_other_hash ON mempool (other_hash);
CREATE UNIQUE INDEX mempool_sender ON mempool (sender, nonce);
CREATE TABLE tx_cache (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash bytea NOT NULL UNIQUE,
    arrival bigint
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX tx_cache_arrival ON tx_cache (arrival);
CREATE TABLE mempool_totals (
    id bigint PRIMARY KEY, txs bigint NOT NULL, bytes bigint NOT NULL, last_seq bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO mempool_totals VALUES (1, 0, 0, 0);
CREATE FUNCTION noderpc_mempool_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mempool_totals SET txs = txs + 1, bytes = bytes + new.size, last_seq = last_seq + 1
        RETURNING last_seq INTO new.seq;
    RETURN new;
END $$;
CREATE TRIGGER mempool_added BEFORE INSERT ON mempool
    FOR EACH ROW EXECUTE FUNCTION noderpc_mempool_added();
CREATE FUNCTION noderpc_mempool_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mempool_totals AS t SET txs = t.txs - gone.txs, bytes = t.bytes - gone.bytes
        FROM (SELECT count(*) AS txs, coalesce(sum(size), 0) AS bytes FROM removed) AS gone
        WHERE gone.txs > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER mempool_removed AFTER DELETE ON mempool REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION noderpc_mempool_removed();
"""

# Index for range queries of the application's state (AppState.range).
_STATE_ORDER = """
CREATE INDEX app_state_order ON app_state (substring(key, 1, 500));
"""

# The indexes serve to find the rows that have no checksum yet.
_CHECKSUMS = "".join(
    f"""
ALTER TABLE {table} RENAME COLUMN value TO content;
ALTER TABLE {table} ADD checksum bigint;
CREATE INDEX {table}_unfilled ON {table} (checksum) WHERE checksum IS NULL;
"""
    for table in ("app_state", "metadata")
)
_CHECKSUMS_FILLED = """
DROP INDEX app_state_unfilled;
DROP INDEX metadata_unfilled;
ALTER TABLE app_state ALTER checksum SET NOT NULL;
ALTER TABLE metadata ALTER checksum SET NOT NULL;
"""

# Number of indexed transactions per 1,024 heights, for searches of a range of heights.
_TX_COUNTS = """
CREATE TABLE tx_counts (heights bigint PRIMARY KEY, txs bigint NOT NULL)
    WITH (fillfactor = 50);
"""

# Views for people who read the store with SQL. Bytes that are not text are escaped.
# Transactions below the lowest block are left out, as they are about to be removed.
_VIEWS = """
CREATE VIEW block_list AS
    SELECT height, to_timestamp(time / 1000000000.0) AS time, encode(hash, 'hex') AS hash,
           encode(proposer, 'hex') AS proposer, tx_count, size, unchecked, unverified, source
    FROM blocks;
CREATE VIEW missed_vote_list AS
    SELECT encode(address, 'hex') AS validator, height,
           CASE flag WHEN 1 THEN 'absent' ELSE 'nil' END AS vote
    FROM validators JOIN missed_votes ON validator_id = id;
CREATE VIEW tx_list AS
    SELECT place >> 20 AS height, place & 1048575 AS position, encode(hash, 'hex') AS hash,
           code, gas_wanted, gas_used
    FROM txs WHERE place >= (SELECT min(height) << 20 FROM block_hashes);
"""

# All hits of both indexes, and views of them for people.
_HIT_VIEWS = "".join(
    f"""
CREATE OR REPLACE VIEW {kind}_all_hits AS
    SELECT value_id, place, event FROM {kind}_hits
    UNION ALL SELECT id, place, event FROM {kind}_values WHERE place IS NOT NULL;
"""
    for kind in ("tx", "block")
)
_HIT_VIEWS += """
CREATE OR REPLACE VIEW tx_events AS
    SELECT h.place >> 20 AS height, h.place & 1048575 AS position, h.event,
           encode(k.key, 'escape') AS key, encode(v.value, 'escape') AS value
    FROM tx_all_hits AS h JOIN tx_values AS v ON v.id = h.value_id
    JOIN tx_keys AS k ON k.id = v.key_id
    WHERE h.place >= (SELECT min(height) << 20 FROM block_hashes);
CREATE OR REPLACE VIEW block_events AS
    SELECT h.place AS height, h.event,
           encode(k.key, 'escape') AS key, encode(v.value, 'escape') AS value
    FROM block_all_hits AS h JOIN block_values AS v ON v.id = h.value_id
    JOIN block_keys AS k ON k.id = v.key_id;
"""

# Values that are stored already keep all their hits in the table of hits.
_FIRST_HITS = "".join(
    f"""
ALTER TABLE {kind}_values ADD place bigint, ADD event bigint;
ALTER TABLE {kind}_values RESET (fillfactor);
"""
    for kind in ("tx", "block")
)

# Columns that PostgreSQL should not compress: hashes and signatures don't get smaller.
_EXTERNAL = (
    ("blocks", "header"),
    ("commits", '"commit"'),
    ("results", "results"),
    ("validator_sets", "members"),
    ("mempool", "tx"),
    ("app_state", "content"),
)


def _nothing(at: Connection) -> bool:
    return False


class _Step(NamedTuple):
    """A migration of the tables from the previous version."""

    script: str
    oldest: int
    """The lowest version whose processes may still use the tables afterwards."""
    before: str = ""
    """A script that runs first, in its own transaction, after which older processes stop."""
    fill: Callable[[Connection], bool] = _nothing
    """A function that is called in a new transaction each time, and updates some rows; it
    returns false when no row is left."""
    after: Callable[[Connection], None] | None = None
    """A function that is called after the script, in the same transaction."""


_INDEXES = """
DO $$
DECLARE
    old regclass;
BEGIN
    FOR old IN SELECT indexrelid FROM pg_index WHERE indrelid = '{table}_0'::regclass LOOP
        EXECUTE format('ALTER INDEX %s RENAME TO %I', old,
            replace((SELECT relname FROM pg_class WHERE oid = old), '{table}', '{table}_0'));
    END LOOP;
END $$;
"""
# Rename the existing tables, and create partitioned tables with their names, to which they are
# then attached.
_TO_PARTITIONS = "".join(
    (
        "DROP VIEW block_list, missed_vote_list, tx_list, tx_events, block_events;",
        "ALTER TABLE blocks DROP CONSTRAINT blocks_hash_key; DROP INDEX txs_hash;",
        *(f"ALTER TABLE {table} RENAME TO {table}_0;" for table in partitions.TABLES),
        *(_INDEXES.format(table=table) for table in partitions.TABLES),
        _PARTITIONED,
        _TRIGGERS,
        _VIEWS,
    )
)


def _fill_hashes(at: Connection) -> bool:
    """Copy the hashes of some blocks and of their transactions; return false when all are
    copied."""
    (last,) = at.execute("SELECT max(height) FROM block_hashes").fetchone()
    found = at.execute(
        "INSERT INTO block_hashes (height, hash) SELECT height, hash FROM blocks"
        " WHERE height > ? ORDER BY height LIMIT ? RETURNING height",
        (-1 if last is None else last, _FILLED),
    ).fetchall()
    if not found:
        return False
    between = places(min(found)[0], max(found)[0])
    at.execute(
        "INSERT INTO tx_hashes (hash, code, place) SELECT hash, code, place FROM txs"
        " WHERE place BETWEEN ? AND ?",
        between,
    )
    return True


def _compress(at: Connection) -> None:
    """Make PostgreSQL compress rows of transactions that it writes from now on: the keys and
    values of events are repeated."""
    # PostgreSQL 14 and later have LZ4, if they were built with it; its default takes four times
    # as long.
    has_lz4 = at.execute(
        "SELECT 1 FROM pg_settings WHERE name = 'default_toast_compression'"
        " AND 'lz4' = ANY(enumvals)"
    ).fetchone()
    # The compression of a partitioned table only applies to its new partitions.
    for (table,) in at.execute(
        "SELECT CAST(relid AS text) FROM pg_partition_tree('tx_slices')"
    ).fetchall():
        at.execute(f"ALTER TABLE {table} ALTER COLUMN txs SET STORAGE EXTENDED")
        if has_lz4:
            at.execute(f"ALTER TABLE {table} ALTER COLUMN txs SET COMPRESSION lz4")


def _attach_existing(at: Connection) -> None:
    partitions.add_existing(at)
    # Apply the setting to the new partitioned tables; other tables have it already.
    _keep_uncompressed(at, list(partitions.TABLES))


# Steps to version 2, 3 and so on. A step should leave old tables in place, so that processes
# of the previous version can continue; a later step may remove them, and then raises
# ``oldest``.
_STEPS = (
    _Step("ALTER TABLE noderpc_schema ADD oldest bigint NOT NULL DEFAULT 1", 1),
    # Stop processes of version 2, which would not write hashes.
    _Step(_TO_PARTITIONS, 3, _HASHES, _fill_hashes, _attach_existing),
    _Step(_STATE_ORDER, 3),
    # Stop processes of version 4, which would not write checksums.
    _Step(_CHECKSUMS_FILLED, 5, _CHECKSUMS, fill_checksums),
    _Step("", 5, after=_compress),
    # Stop processes of version 6, which would not find first hits.
    _Step(_FIRST_HITS + _HIT_VIEWS, 7),
)

# Lock that waits for write transactions in flight and blocks new ones, because each one first
# reads the version from this table.
_ALONE = "SET LOCAL lock_timeout = '15s'; LOCK TABLE noderpc_schema"


def prepare(at: Connection) -> None:
    """Create the tables in a new database, or migrate them; raise :exc:`StoreError` if they
    are of a newer version that this one can't use."""
    while _version(at) < VERSION:
        at.execute("BEGIN")
        try:
            at.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
            # Read the version again, as another process may have created the tables meanwhile.
            version = _version(at)
            if not version:
                _create(at)
            elif version < VERSION:
                _go_on(at, version + 1)
            at.execute("COMMIT")
        finally:
            at.rollback()
    check(at)
    _make_hit_tables(at)


def _make_hit_tables(at: Connection) -> None:
    if not hits.new_indexes(at):
        return
    at.execute("BEGIN")
    try:
        at.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
        hits.make_tables(at)
        at.execute("COMMIT")
    finally:
        at.rollback()


def _go_on(at: Connection, version: int) -> None:
    """Run the step to a version, or the next part of it."""
    step = _STEPS[version - 2]
    if step.before:
        (oldest,) = at.execute(f"SELECT {OLDEST}").fetchone()
        if oldest < step.oldest:
            log.warning("migrating the store's tables to version %s", version)
            at.script(_ALONE)
            at.script(step.before)
            at.execute("UPDATE noderpc_schema SET oldest = ?", (step.oldest,))
            return
    if step.fill(at):
        return
    at.script(_ALONE)
    at.script(step.script)
    if step.after is not None:
        step.after(at)
    at.execute("UPDATE noderpc_schema SET version = ?, oldest = ?", (version, step.oldest))


def check(at: Connection) -> None:
    """Raise :exc:`StoreError` if the tables are missing, or if this version can't use them."""
    version = _version(at)
    if not version:
        raise StoreError(
            "expected a store with a chain, as it is opened read-only; check the URL"
        )
    if version < VERSION:
        raise StoreError(
            f"expected tables of version {VERSION}, got version {version}: start a process that"
            " may write, which migrates them"
        )
    (oldest,) = at.execute(f"SELECT {OLDEST}").fetchone()
    check_oldest(oldest)


OLDEST = "(SELECT oldest FROM noderpc_schema)"
"""SQL expression for the lowest version that may use the tables."""


def check_oldest(oldest: int) -> None:
    """Raise :exc:`StoreError` if ``oldest`` is newer than this version."""
    if oldest > VERSION:
        raise StoreError(
            f"the tables were created by a newer flask-noderpc (for version {oldest} and above,"
            f" this one has {VERSION}): upgrade the package, or use another NODERPC_DATABASE"
        )


def is_made(at: Connection) -> bool:
    """Return true if the store's tables exist."""
    found = at.execute("SELECT to_regclass('noderpc_schema') IS NOT NULL").fetchone()
    return bool(found[0])


def _version(at: Connection) -> int:
    """Return the version of the tables; 0 if they don't exist."""
    if not is_made(at):
        return 0
    return int(at.execute("SELECT version FROM noderpc_schema").fetchone()[0])


def _create(at: Connection) -> None:
    foreign = at.execute("SELECT to_regclass('blocks') IS NOT NULL").fetchone()
    if foreign[0]:
        raise StoreError(
            "the database has a table 'blocks' of another program: name another database, or a"
            " schema with options=-csearch_path%3Dname in its URL"
        )
    indexes = [_INDEX.format(kind=kind) for kind in ("tx", "block")]
    tables = (_CHAIN, _STATE_ORDER, *indexes, _MEMPOOL, _TX_COUNTS, _HASHES, _PARTITIONED)
    for script in (*tables, _TRIGGERS, _VIEWS, _HIT_VIEWS):
        at.script(script)
        if script is _CHAIN:
            # Create the tables of features before the others: otherwise, rows of the catalog
            # would change that reads on a replica have locked, and the replica would wait.
            for name in sorted(hits.new_indexes(at)):
                at.engine.make_hit_tables(at, name)
    _keep_uncompressed(at, [table for table, _ in _EXTERNAL])
    _compress(at)
    at.execute("INSERT INTO noderpc_schema VALUES (?, ?)", (VERSION, _STEPS[-1].oldest))


def _keep_uncompressed(at: Connection, tables: Sequence[str]) -> None:
    for table, column in _EXTERNAL:
        if table in tables:
            at.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")
