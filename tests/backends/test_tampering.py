"""``verify`` notices every change that a hash or a signature covers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.errors import InvalidBlock, StoreError
from flask_noderpc.testing import SampleChain

from .conftest import OpenStore


def flipped(table: str, column: str, where: str) -> str:
    """Change the first byte of a BLOB."""
    changed = f"CAST(CASE substr({column}, 1, 1) WHEN X'FF' THEN X'FE' ELSE X'FF' END"
    return f"UPDATE {table} SET {column} = {changed} || substr({column}, 2) AS BLOB) {where}"


def raised(table: str, column: str, where: str) -> str:
    return f"UPDATE {table} SET {column} = {column} + 1 {where}"


AT = "WHERE height = 5"
FIRST = "WHERE height = 5 AND position = 0"
LAST = "WHERE height = (SELECT max(height) FROM blocks) AND position = 0"
HEADER_BLOBS = (
    "last_block_hash",
    "last_parts_hash",
    "last_commit_hash",
    "data_hash",
    "validators_hash",
    "next_validators_hash",
    "consensus_hash",
    "app_hash",
    "last_results_hash",
    "evidence_hash",
    "proposer_address",
)
CHANGED = (
    *(flipped("blocks", column, AT) for column in ("hash", "parts_hash", *HEADER_BLOBS)),
    *(
        raised("blocks", column, AT)
        for column in (
            "parts_total",
            "size",
            "tx_count",
            "version_block",
            "version_app",
            "time",
            "last_parts_total",
        )
    ),
    flipped("blocks", "next_app_hash", AT),
    "UPDATE blocks SET validator_updates = '[]' WHERE validator_updates <> '[]'",
    "UPDATE blocks SET param_updates = '{\"app_version\":9}' WHERE height = 5",
    "UPDATE blocks SET end_events = '[' WHERE height = 5",
    *(flipped("txs", column, FIRST) for column in ("tx", "hash")),
    *(raised("txs", column, FIRST) for column in ("code", "gas_wanted", "gas_used")),
    "UPDATE txs SET data = X'01' WHERE height = 5 AND position = 0",
    "UPDATE txs SET position = 7 WHERE height = 5 AND position = 0",
    *(raised("signatures", column, FIRST) for column in ("flag", "time")),
    *(flipped("signatures", column, FIRST) for column in ("validator_address", "signature")),
    *(raised("signatures", column, LAST) for column in ("flag", "time")),
    *(flipped("signatures", column, LAST) for column in ("validator_address", "signature")),
    *(raised("commits", column, AT) for column in ("round", "parts_total")),
    *(flipped("commits", column, AT) for column in ("block_hash", "parts_hash")),
    "UPDATE evidence SET body = replace(body, 'voting_power\":', 'voting_power\":1')",
    "UPDATE evidence SET body = '{}'",
    *(
        flipped("validators", column, f"WHERE members_since {since}")
        for column in ("address", "key")
        for since in ("= 1", "> 1")
    ),
    "UPDATE validators SET voting_power = voting_power + 1 WHERE position = 0",
    "UPDATE validators SET key_type = 'secp256k1'",
    *(flipped("validator_heights", "proposer", f"WHERE height = {h}") for h in (1, 2, 5)),
    *(
        f"UPDATE validator_heights SET priorities = '{priorities}' WHERE height = {height}"
        for priorities in ("[0,0,0]", "[1]", "x")
        for height in (1, 2, 5)
    ),
    "UPDATE validator_heights SET members_since = 2 WHERE height = 5",
    "UPDATE consensus_params SET params = replace(params, '22020096', '22020097')",
    "UPDATE consensus_params SET since = 3",
    "UPDATE chain SET genesis = replace(genesis, 'sample-chain', 'another-chain')",
    "UPDATE app_state SET value = X'31' WHERE key = CAST('size' AS BLOB)",
    *(
        f"DELETE FROM {table} {AT}"
        for table in ("blocks", "txs", "commits", "signatures", "validator_heights")
    ),
    "DELETE FROM evidence",
    "DELETE FROM validators",
    "DELETE FROM consensus_params",
)


def tamper(path: Path, sql: str) -> int:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(sql).rowcount


@pytest.fixture
def tampered(full: SQLiteBackend, path: Path) -> Path:
    full.close()
    return path


@pytest.mark.parametrize("sql", CHANGED)
def test_a_change_is_noticed(tampered: Path, open_store: OpenStore, sql: str) -> None:
    assert tamper(tampered, sql) > 0

    with pytest.raises(InvalidBlock):
        open_store(application=KVStore).verify()


def test_an_untouched_store_verifies_with_its_application(
    tampered: Path, open_store: OpenStore, sample: SampleChain
) -> None:
    assert open_store(application=KVStore).verify() == len(sample.blocks)


def test_an_index_that_lost_an_entry_is_noticed(tampered: Path, open_store: OpenStore) -> None:
    with closing(sqlite3.connect(tampered)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        (sql,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = 'idx_txs_hash'"
        ).fetchone()
        partial = f"{sql} WHERE height <> 5"
        connection.execute("DROP INDEX idx_txs_hash")
        connection.execute(partial)
        connection.execute(
            "UPDATE sqlite_master SET sql = ? WHERE name = 'idx_txs_hash'", (sql,)
        )

    with pytest.raises((InvalidBlock, StoreError), match=r"missing from index|corrupt"):
        open_store().verify()


def test_verify_reports_progress_for_each_block(
    full: SQLiteBackend, sample: SampleChain
) -> None:
    seen: list[int] = []

    full.verify(seen.append)

    assert seen == list(range(1, len(sample.blocks) + 1))


def test_a_chain_without_blocks_verifies(store: SQLiteBackend) -> None:
    assert store.verify() == 0


def test_a_commit_of_too_little_power_is_noticed(tampered: Path, open_store: OpenStore) -> None:
    absent = (
        "UPDATE signatures SET flag = 1, validator_address = X'', time = NULL, signature = X''"
        " WHERE height = (SELECT max(height) FROM blocks) AND position < 2"
    )
    tamper(tampered, absent)

    with pytest.raises(InvalidBlock, match="more than two thirds are needed"):
        open_store().verify()
