"""Tables of the store, and their migrations.

An operator reads them with any SQL tool: hashes and keys are BLOBs, times are integer
nanoseconds since 1970, lists that are always read whole are JSON text.
"""

from __future__ import annotations

import sqlite3

from sqlite_utils import Database, Migrations
from sqlite_utils.db import Table

from ...errors import StoreError
from . import evidence, evm_index, index

migrations = Migrations("flask_noderpc")

_ID = {"block_hash": bytes, "parts_total": int, "parts_hash": bytes}


@migrations()
def m001_chain(db: Database) -> None:
    """The tables of the first release."""
    _create(
        db,
        "chain",
        {"id": int, "genesis": str, "app_state": bytes, "app_hash": bytes},
        pk="id",
    )
    _create(
        db,
        "blocks",
        {
            "height": int,
            "hash": bytes,
            "parts_total": int,
            "parts_hash": bytes,
            "size": int,
            "tx_count": int,
            "version_block": int,
            "version_app": int,
            "time": int,
            "last_block_hash": bytes,
            "last_parts_total": int,
            "last_parts_hash": bytes,
            "last_commit_hash": bytes,
            "data_hash": bytes,
            "validators_hash": bytes,
            "next_validators_hash": bytes,
            "consensus_hash": bytes,
            "app_hash": bytes,
            "last_results_hash": bytes,
            "evidence_hash": bytes,
            "proposer_address": bytes,
            "begin_events": str,
            "end_events": str,
            "validator_updates": str,
            "param_updates": str,
            "next_app_hash": bytes,
        },
        pk="height",
    ).create_index(["hash"], unique=True)
    _create(db, "commits", {"height": int, "round": int, **_ID}, pk="height")
    _create(
        db,
        "signatures",
        {
            "height": int,
            "position": int,
            "flag": int,
            "validator_address": bytes,
            "time": int,
            "signature": bytes,
        },
        pk=("height", "position"),
        optional=("time",),
    )
    _create(
        db,
        "txs",
        {
            "height": int,
            "position": int,
            "hash": bytes,
            "tx": bytes,
            "code": int,
            "data": bytes,
            "log": str,
            "info": str,
            "gas_wanted": int,
            "gas_used": int,
            "codespace": str,
            "events": str,
        },
        pk=("height", "position"),
    ).create_index(["hash"])
    _create(
        db,
        "evidence",
        {"height": int, "position": int, "kind": str, "body": str},
        pk=("height", "position"),
    )
    _create(
        db,
        "validator_heights",
        {"height": int, "members_since": int, "proposer": bytes, "priorities": str},
        pk="height",
    )
    _create(
        db,
        "validators",
        {
            "members_since": int,
            "position": int,
            "address": bytes,
            "key_type": str,
            "key": bytes,
            "voting_power": int,
        },
        pk=("members_since", "position"),
    )
    _create(db, "consensus_params", {"since": int, "params": str}, pk="since")
    _create(db, "app_state", {"key": bytes, "value": bytes}, pk="key")
    # AUTOINCREMENT, which sqlite-utils does not write: a cursor over the mempool must
    # never see a number twice, not even after the table was empty.
    db.execute(
        """CREATE TABLE mempool (
               seq INTEGER PRIMARY KEY AUTOINCREMENT,
               hash BLOB NOT NULL UNIQUE,
               size INTEGER NOT NULL,
               gas_wanted INTEGER NOT NULL,
               tx BLOB NOT NULL
           ) STRICT"""
    )
    # Count and bytes of the mempool are read from this index, not from its transactions.
    db.table("mempool").create_index(["size"])
    _create(db, "tx_cache", {"seq": int, "hash": bytes}, pk="seq").create_index(
        ["hash"], unique=True
    )
    _create(db, "lease", {"id": int, "owner": str, "epoch": int, "expires": int}, pk="id")


@migrations()
def m002_index(db: Database) -> None:
    """The index of events; what a store already has is indexed now."""
    db.table("txs").add_column("seq", int)
    db.table("txs").create_index(["seq"], unique=True)
    for kind in (index.TX, index.BLOCK):
        values = _create(
            db,
            f"{kind}_values",
            {"id": int, "key": str, "value": str, "number": str, "places": int},
            pk="id",
            optional=("number",),
        )
        values.create_index(["key", "value"], unique=True)
        # Neither a table that is its own index nor an index of some rows is in sqlite-utils.
        db.execute(
            f"CREATE INDEX {kind}_numbers ON {kind}_values (key, number)"
            " WHERE number IS NOT NULL"
        )
        db.execute(
            f"""CREATE TABLE {kind}_hits (
                    value_id INTEGER NOT NULL,
                    place INTEGER NOT NULL,
                    event INTEGER NOT NULL,
                    PRIMARY KEY (value_id, place, event)
                ) STRICT, WITHOUT ROWID"""
        )
        # From a place to its values, for the conditions beside the most telling one.
        db.execute(f"CREATE INDEX {kind}_places ON {kind}_hits (place, event)")
    index.write_stored(db.conn)


@migrations()
def m003_evidence(db: Database) -> None:
    """Evidence that waits for a block, and the hashes of what is in one."""
    db.table("evidence").add_column("hash", bytes)
    db.table("evidence").create_index(["hash"])
    evidence.write_stored_hashes(db.conn)
    _create(
        db,
        "pending_evidence",
        {"hash": bytes, "height": int, "time": int, "size": int, "kind": str, "body": str},
        pk="hash",
    )


@migrations()
def m004_evm(db: Database) -> None:
    """The index of Ethereum transactions and logs; what is stored is indexed afterwards."""
    db.execute(
        """CREATE TABLE evm_hits (
               key INTEGER NOT NULL,
               place INTEGER NOT NULL,
               PRIMARY KEY (key, place)
           ) STRICT, WITHOUT ROWID"""
    )
    _create(db, "evm_unindexed", {"height": int}, pk="height")
    evm_index.list_stored(db.conn)


@migrations()
def m005_ethereum_keys(db: Database) -> None:
    """Ethereum's events are found under both their names, addresses in any letters."""
    index.rewrite_ethereum(db.conn)


@migrations()
def m006_filters(db: Database) -> None:
    """Filters that are polled."""
    _create(
        db,
        "filters",
        {"id": str, "kind": str, "cursor": int, "criteria": str, "expires": int},
        pk="id",
    )


@migrations()
def m007_filter_owners(db: Database) -> None:
    """Clients whose limit the filters count for."""
    db.table("filters").add_column("owner", str, not_null_default="")


@migrations()
def m008_slots(db: Database) -> None:
    """Sender, nonce and fees of pending transactions, where the application has them."""
    waiting = db.table("mempool")
    for name in ("other_hash", "sender", "fee_cap", "tip"):
        waiting.add_column(name, bytes)
    waiting.add_column("nonce", int)
    waiting.create_index(["sender", "nonce"], unique=True)
    waiting.create_index(["other_hash"])


@migrations()
def m009_rewinds(db: Database) -> None:
    """Reorgs of development chains: a number, and the height that remained."""
    _create(db, "rewinds", {"number": int, "height": int}, pk="number")


@migrations()
def m010_complaint(db: Database) -> None:
    """Error for which the last owner released the lease."""
    db.table("lease").add_column("complaint", str, not_null_default="")


@migrations()
def m011_offences(db: Database) -> None:
    """Heights of offences: their validator sets are retained while the evidence is."""
    db.table("evidence").add_column("offence", int, not_null_default=0)
    db.table("evidence").create_index(["offence"])
    evidence.write_stored_offences(db.conn)


@migrations()
def m012_application(db: Database) -> None:
    """Name of the application that made the chain; empty in older stores."""
    db.table("chain").add_column("application", str, not_null_default="")


@migrations()
def m013_arrivals(db: Database) -> None:
    """Mempool cursors of transactions that left the mempool, for its subscribers."""
    db.table("tx_cache").add_column("arrival", int)
    db.table("tx_cache").create_index(["arrival"])


@migrations()
def m014_last_error(db: Database) -> None:
    """The same column by the name that the code has for it."""
    db.conn.execute("ALTER TABLE lease RENAME COLUMN complaint TO last_error")


def _create(
    db: Database,
    name: str,
    columns: dict[str, type],
    *,
    pk: str | tuple[str, ...],
    optional: tuple[str, ...] = (),
) -> Table:
    return db.table(name).create(
        columns, pk=pk, not_null=set(columns) - set(optional), strict=True
    )


_STEPS = (
    m001_chain,
    m002_index,
    m003_evidence,
    m004_evm,
    m005_ethereum_keys,
    m006_filters,
    m007_filter_owners,
    m008_slots,
    m009_rewinds,
    m010_complaint,
    m011_offences,
    m012_application,
    m013_arrivals,
    m014_last_error,
)
_KNOWN = {step.__name__ for step in _STEPS}


def migrate(connection: sqlite3.Connection, read_only: bool = False) -> None:
    """Bring the store to this version's tables; raise :exc:`StoreError` where it can't be."""
    db = Database(connection)
    unknown = {step.name for step in migrations.applied(db)} - _KNOWN
    if unknown:
        raise StoreError(
            f"the store was made by a newer flask-noderpc ({', '.join(sorted(unknown))}):"
            " upgrade the package, or use another NODERPC_DATABASE"
        )
    if not migrations.pending(db):
        return
    if read_only:
        raise StoreError(
            "the store was made by an older flask-noderpc: open it once where it may be written"
        )
    migrations.apply(db)
