"""Tests that ``verify`` names a changed value in any table, or that the table is listed here as
not covered."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from flask_noderpc.backends.base.application import BlockExecution, BlockRequest
from flask_noderpc.backends.sql import evidence, values
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.cli import main
from flask_noderpc.domain.abci import Event, EventAttribute
from flask_noderpc.errors import StoreError
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for
from tests.chain.misbehavior import double_vote

from .conftest import OpenStore

pytestmark = pytest.mark.sqlite

# A change of each table, and a part of the error that names its place.
CHANGES = (
    ("chain", "initial_height = 2", "beginning of the chain"),
    ("blocks", "size = size + 1 WHERE height = 5", "block 5"),
    ("commits", "\"commit\" = X'00' WHERE height = 5", "height 5"),
    ("results", "results = X'00' WHERE height = 5", "height 5"),
    ("tx_slices", "txs = X'00' WHERE place >> 20 = 5", "height 5"),
    ("txs", "gas_used = gas_used + 1 WHERE place >> 20 = 5", "block 5"),
    ("evidence", "offence = offence + 1", "evidence"),
    ("validator_sets", "members = X'00'", "validator set"),
    ("validators", "address = X'00'", "missed votes"),
    ("missed_votes", "flag = 7 - flag", "missed votes"),
    ("validator_priorities", "priorities = X'00'", "proposer priorities"),
    ("consensus_params", "params = X'00'", "consensus parameters"),
    ("pending_evidence", "evidence = X'00'", "evidence"),
    ("metadata", "content = X'00'", "metadata: the row of key 0x6e6f7465"),
    ("metadata", "checksum = NULL", "metadata: the row of key 0x6e6f7465"),
    ("app_state", "content = X'00' WHERE key = X'0102'", "app_state: the row of key 0x0102"),
    ("app_state", "key = X'0103' WHERE key = X'0102'", "app_state: the row of key 0x0103"),
    ("app_state", "checksum = 7 WHERE key = X'0102'", "app_state: the row of key 0x0102"),
    ("app_state", "checksum = NULL WHERE key = X'0102'", "app_state: the row of key 0x0102"),
    ("mempool", "tx = X'00'", "mempool: transaction 1"),
    ("mempool_totals", "txs = 7", "mempool_totals"),
    ("tx_counts", "txs = txs + 1", "tx_counts"),
    *(
        (f"{kind}_{part}", change, name)
        for kind in ("tx", "block")
        for part, change, name in (
            ("keys", "key = key || 'x'", "events"),
            ("values", "value = value || 'x'", "events"),
            ("hits", "event = event + 9", "events"),
        )
    ),
)
# Tables of short-lived values and of counts, as docs/reliability.rst lists them.
NOT_COVERED = {
    "rewinds",
    "refuted_results",
    "lease",
    "tx_cache",
    "filters",
    "evm_hits",
    "evm_unindexed",
}


class Noisy(KVStore):
    """Adds an event to each block."""

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        event = Event("tick", (EventAttribute(b"height", b"%d" % block.height),))
        return replace(super().finalize_block(block), begin_events=(event,))


@pytest.fixture
def whole(open_store: OpenStore, path: Path) -> Path:
    """A store with a row in each table that is covered."""
    store, maker = open_store(application=KVStore), ChainMaker((10, 7, 3), application=Noisy)
    store.init_chain(maker.genesis, maker.state)
    # Without its key, the third validator signs no votes.
    del maker.keys[2]
    store.append_block(*(maker.block(b"key=%d" % number) for number in range(5)))
    evil = maker.double_vote(0, 2, store.reads.block_meta(2).header.time)
    store.append_block(maker.block(evidence=[evil]), maker.block(b"last=1"))
    writer = store._open().writer
    writer.run(lambda at: values.write_changes(at, {b"\1\2": b"value"}))
    piece = double_vote(store, maker.keys[0], 6)
    writer.run(lambda at: evidence.add(at, piece))
    store.set_metadata("note", b"left by a process")
    store.mempool.submit(b"waits=1")
    store.close()
    return path


def run(path: Path, sql: str) -> int:
    with closing(sqlite3.connect(path)) as at, at:
        return at.execute(sql).rowcount


def test_every_table_is_listed(whole: Path) -> None:
    with closing(sqlite3.connect(whole)) as at:
        tables = at.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()

    # Leave out the tables of SQLite and of sqlite-utils.
    own = {name for (name,) in tables if not name.startswith(("sqlite_", "_sqlite_"))}
    assert own == {table for table, *_ in CHANGES} | NOT_COVERED


def test_an_unchanged_store_is_verified(whole: Path) -> None:
    found = CliRunner().invoke(main, ["verify", str(whole)])

    assert (found.exit_code, "7 blocks verified" in found.output) == (0, True), found.output


@pytest.mark.parametrize(("table", "change", "message"), CHANGES)
def test_verify_names_what_has_changed(
    whole: Path, table: str, change: str, message: str
) -> None:
    assert run(whole, f"UPDATE {table} SET {change}") > 0

    found = CliRunner().invoke(main, ["verify", str(whole)])

    assert found.exit_code == 1
    assert message in found.output
    assert "Traceback" not in found.output


@pytest.mark.parametrize("change", ["content = X'00'", "checksum = NULL"])
def test_a_changed_state_is_an_error_and_no_answer(
    whole: Path, open_store: OpenStore, change: str
) -> None:
    run(whole, f"UPDATE app_state SET {change} WHERE key = X'0102'")
    state = open_store(application=KVStore).app_state

    for read in (lambda: state.get(b"\1\2"), lambda: state.range(b"\1")):
        with pytest.raises(StoreError, match=r"chain\.db: app_state: .* 0x0102 is damaged"):
            read()

    assert state.get(b"height") == state.range(b"height")[0][1]


def test_a_changed_state_is_an_error_of_the_query(whole: Path, open_store: OpenStore) -> None:
    run(whole, "UPDATE app_state SET content = X'00' WHERE key = CAST('height' AS BLOB)")
    client = app_for(open_store(application=KVStore)).test_client()

    found = client.get("/abci_query?data=0x61")

    assert found.get_json()["error"]["code"] == -32603
    assert "is damaged" in found.text
