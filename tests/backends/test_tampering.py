"""Tests that ``verify`` notices every change that a checksum, a hash or a signature covers, and
that reads refuse a changed row."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.base.verify import Scope
from flask_noderpc.backends.sql.packed import blocks, state
from flask_noderpc.backends.sql.packed.blocks import seal, unseal
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.cli import main, verification
from flask_noderpc.domain.block import ABSENT, BlockMeta
from flask_noderpc.errors import InvalidBlock, StoreError
from flask_noderpc.testing import SampleChain

from .conftest import OpenStore

pytestmark = pytest.mark.sqlite

T = TypeVar("T")
Change = Callable[..., bytes]
"""For each row, change bytes and recompute the row's checksum, which covers its key."""

AT = "WHERE height = 5"
LAST = "WHERE height = (SELECT max(height) FROM blocks)"
SINCE = "WHERE since = 1"
ONE = "WHERE place >> 20 = 5"
CHAIN = "sample-chain"

ROWS = (
    ("blocks", "header", AT),
    ("commits", "commit", AT),
    ("commits", "commit", LAST),
    ("results", "results", AT),
    ("tx_slices", "txs", "WHERE place >> 20 = 5"),
    ("evidence", "evidence", ""),
    ("validator_sets", "members", SINCE),
    ("validator_priorities", "priorities", "WHERE height = 1"),
    ("consensus_params", "params", SINCE),
    ("chain", "genesis", ""),
    ("chain", "app_state", ""),
)


def rewrite(path: Path, table: str, column: str, where: str, change: Change) -> None:
    """Change the packed rows that SQL selects."""
    key = KEYS.get(table, "rowid")
    with closing(sqlite3.connect(path)) as at, at:
        found = at.execute(f'SELECT rowid, "{column}", {key} FROM {table} {where}').fetchall()
        assert found
        at.executemany(
            f'UPDATE {table} SET "{column}" = ? WHERE rowid = ?',
            [(change(row, *own_key), rowid) for rowid, row, *own_key in found],
        )


KEYS = {
    "tx_slices": "place >> 20, place & 1048575",
    **dict.fromkeys(("validator_sets", "consensus_params"), "since, until"),
    "validator_priorities": "height, until",
}


def run(path: Path, sql: str) -> int:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(sql).rowcount


@pytest.fixture
def tampered(full: SQLiteBackend, path: Path) -> Path:
    full.close()
    return path


# Flipped bits.


@pytest.mark.parametrize("bit", [0, 40, -1])
@pytest.mark.parametrize(("table", "column", "where"), ROWS)
def test_a_flipped_bit_is_noticed(
    tampered: Path, open_store: OpenStore, table: str, column: str, where: str, bit: int
) -> None:
    def flip(row: bytes, *key: object) -> bytes:
        changed = bytearray(row)
        changed[(bit // 8) % len(row)] ^= 1 << bit % 8
        return bytes(changed)

    rewrite(tampered, table, column, where, flip)

    with pytest.raises((InvalidBlock, StoreError), match=r"damaged .*restore a backup"):
        open_store(application=KVStore).verify()


READS: dict[tuple[str, str], Callable[[SQLiteBackend], object]] = {
    ("blocks", "header"): lambda store: store.reads.block_meta(5),
    ("commits", "commit"): lambda store: (store.reads.commit(5), store.reads.commit(10)),
    ("results", "results"): lambda store: store.reads.results(5),
    ("tx_slices", "txs"): lambda store: store.reads.block(5),
    ("evidence", "evidence"): lambda store: [
        store.reads.block(height) for height in range(1, 11)
    ],
    ("validator_sets", "members"): lambda store: store.reads.validators(1),
    ("validator_priorities", "priorities"): lambda store: store.reads.validators(1),
    ("consensus_params", "params"): lambda store: store.reads.consensus_params(1),
    ("chain", "genesis"): lambda store: store.reads.genesis(),
    ("chain", "app_state"): lambda store: store.reads.genesis(),
}


@pytest.mark.parametrize(("table", "column", "where"), ROWS)
def test_a_flipped_bit_is_an_error_and_no_answer(
    tampered: Path, open_store: OpenStore, table: str, column: str, where: str
) -> None:
    rewrite(tampered, table, column, where, lambda row, *_: row[:-1] + bytes([row[-1] ^ 1]))

    with pytest.raises(StoreError, match=r"of height \d+ is damaged .*checksum.*backup"):
        READS[table, column](open_store(application=KVStore))


MISSING: tuple[tuple[str, str, Callable[[SQLiteBackend], object], str], ...] = (
    ("DELETE FROM blocks", AT, lambda store: store.reads.block(5), "header of height 5"),
    ("DELETE FROM blocks", AT, lambda store: store.reads.commit(5), "header of height 5"),
    (
        "DELETE FROM blocks",
        AT,
        lambda store: store.reads.block_metas(1, 9),
        "header of height 5",
    ),
    ("DELETE FROM commits", AT, lambda store: store.reads.commit(5), "commit of height 5"),
    ("DELETE FROM commits", AT, lambda store: store.reads.block(6), "commit of height 5"),
    ("DELETE FROM results", AT, lambda store: store.reads.results(5), "results of height 5"),
    (
        "DELETE FROM tx_slices",
        ONE,
        lambda store: store.reads.block(5),
        "transactions of height 5",
    ),
    (
        "DELETE FROM tx_slices",
        ONE,
        lambda store: store.reads.results(5),
        "transactions of height 5",
    ),
    (
        "DELETE FROM evidence",
        "",
        lambda store: [store.reads.block(height) for height in range(1, 11)],
        r"evidence of height \d+",
    ),
    (
        "UPDATE commits SET height = 99",
        AT,
        lambda store: store.reads.block(6),
        "commit of height 5",
    ),
)


@pytest.mark.parametrize(("sql", "where", "read", "name"), MISSING)
def test_a_row_that_is_missing_is_an_error_and_no_answer(
    tampered: Path,
    open_store: OpenStore,
    sql: str,
    where: str,
    read: Callable[[SQLiteBackend], object],
    name: str,
) -> None:
    assert run(tampered, f"{sql} {where}") > 0

    with pytest.raises(StoreError, match=rf"chain\.db: the {name} is damaged .*backup"):
        read(open_store(application=KVStore))


def test_what_is_not_damaged_is_still_served(tampered: Path, open_store: OpenStore) -> None:
    rewrite(tampered, *ROWS[0], lambda row, *_: b"\0" + row[1:])
    store = open_store()

    with pytest.raises(StoreError, match="the header of height 5 is damaged"):
        store.reads.block(5)

    assert store.reads.block(4)[1].header.height == 4
    assert store.reads.results(5).height == 5


# Rows with changed content and a matching checksum.


def packed(unpack: Callable[[bytes], T], change: Callable[[T], Any], pack: Any) -> Change:
    return lambda row, *_: bytes(pack(change(unpack(row))))


def header(**fields: Any) -> Change:
    def change(meta: BlockMeta) -> BlockMeta:
        return replace(meta, header=replace(meta.header, **fields))

    return packed(lambda row: blocks.unpack_meta(row, 5, CHAIN), change, blocks.pack_meta)


def meta(**fields: Any) -> Change:
    return packed(
        lambda row: blocks.unpack_meta(row, 5, CHAIN),
        lambda found: replace(found, **fields),
        blocks.pack_meta,
    )


def fields(kind: str, change: Callable[[list[Any]], None]) -> Change:
    def changed(row: bytes, *key: Any) -> bytes:
        found = unseal(row, kind, *key)
        change(found)
        return seal(found, kind, *key)

    return changed


def put(kind: str, at: int, value: object) -> Change:
    return fields(kind, lambda row: row.__setitem__(at, value))


def increased(row: list[Any]) -> None:
    row[2][0] += 1


def other_tx(row: list[Any]) -> None:
    row[0][0] = b"other=1"


def other_code(row: list[Any]) -> None:
    result = bytearray(row[1][0])
    result[1] = 9
    row[1][0] = bytes(result)


def other_signature(row: list[Any]) -> None:
    row[5] = bytes([row[5][0] ^ 1]) + row[5][1:]


def other_time(row: list[Any]) -> None:
    row[4] = bytes([row[4][0] ^ 1]) + row[4][1:]


def other_params(row: bytes, since: int, until: int | None) -> bytes:
    found = state.unpack_params(row, since, until)
    changed = replace(found, block=replace(found.block, max_bytes=7))
    return state.pack_params(changed, since, until)


HASH = b"\x07" * 32
CHANGED: tuple[tuple[str, str, str, Change], ...] = (
    *(
        ("blocks", "header", AT, header(**{field: HASH}))
        for field in (
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
    ),
    ("blocks", "header", AT, header(time=5)),
    ("blocks", "header", AT, meta(size=5)),
    ("blocks", "header", AT, meta(tx_count=0)),
    ("results", "results", AT, put("results", 4, b"other app hash")),
    ("results", "results", "WHERE height > 0", put("results", 2, [])),
    ("results", "results", AT, put("results", 3, b'{"app_version":9}')),
    ("results", "results", AT, put("results", 0, [["stray", [b"k", b"v", True]]])),
    ("tx_slices", "txs", "WHERE place >> 20 = 5", fields("transactions", other_tx)),
    ("tx_slices", "txs", "WHERE place >> 20 = 5", fields("transactions", other_code)),
    *(
        ("commits", "commit", where, fields("commit", change))
        for where in (AT, LAST)
        for change in (other_signature, other_time)
    ),
    ("commits", "commit", AT, put("commit", 0, 5)),
    ("validator_sets", "members", SINCE, fields("validator set", increased)),
    (
        "validator_priorities",
        "priorities",
        "WHERE height = 1",
        put("proposer priorities", 1, [0, 0, 0]),
    ),
    ("consensus_params", "params", SINCE, other_params),
)


@pytest.mark.parametrize(("table", "column", "where", "change"), CHANGED)
def test_a_row_with_another_content_is_noticed(
    tampered: Path, open_store: OpenStore, table: str, column: str, where: str, change: Change
) -> None:
    rewrite(tampered, table, column, where, change)

    with pytest.raises((InvalidBlock, StoreError)):
        open_store(application=KVStore).verify()


def test_a_set_that_is_not_that_of_the_header_is_an_error_and_no_answer(
    tampered: Path, open_store: OpenStore
) -> None:
    rewrite(tampered, "validator_sets", "members", SINCE, fields("validator set", increased))

    with pytest.raises(StoreError, match=r"the validator set of height \d is damaged .*backup"):
        open_store(application=KVStore).reads.validators(5)


def test_a_commit_of_others_than_the_stored_set_is_an_error_and_no_answer(
    tampered: Path, open_store: OpenStore
) -> None:
    def other_address(row: list[Any]) -> None:
        row[0][0] = b"\x07" * 20

    rewrite(
        tampered, "validator_sets", "members", SINCE, fields("validator set", other_address)
    )
    store = open_store(application=KVStore)

    for read in (lambda: store.reads.commit(5), lambda: store.reads.block(6)):
        with pytest.raises(StoreError, match=r"the commit of height 5 is damaged .*backup"):
            read()


# Columns for look-ups, indexes, and missing rows.

LOOKUPS = (
    *(f"UPDATE blocks SET {column} = {column} + 1 {AT}" for column in ("time", "size")),
    *(f"UPDATE blocks SET {column} = X'07' {AT}" for column in ("hash", "proposer")),
    f"UPDATE blocks SET tx_count = 0 {AT}",
    f"UPDATE blocks SET events = '[[1]]' {AT}",
    *(f"UPDATE txs SET {c} = {c} + 1 {ONE}" for c in ("code", "gas_wanted", "gas_used")),
    f"UPDATE txs SET hash = X'07' {ONE}",
    f"UPDATE txs SET events = NULL {ONE}",
    f"UPDATE txs SET events = '[]' {ONE}",
    f"UPDATE txs SET place = place + 7 {ONE}",
    f"UPDATE tx_slices SET place = place + 1 {ONE}",
    "UPDATE tx_values SET value = value || 'x'",
    "UPDATE tx_values SET digest = digest + 1",
    "UPDATE tx_values SET number = 'p1'",
    "UPDATE tx_values SET places = places + 1 WHERE id = 1",
    "UPDATE tx_keys SET places = places + 1 WHERE id = 1",
    "UPDATE tx_keys SET key = 'other' WHERE id = 1",
    "UPDATE tx_hits SET event = event + 9",
    "INSERT INTO tx_hits VALUES (77777, 5, 0)",
    "INSERT INTO tx_hits VALUES (1, 5, 0)",
    "UPDATE mempool_totals SET txs = 5",
    "UPDATE tx_counts SET txs = txs + 1",
    "UPDATE evidence SET offence = offence + 1",
    "UPDATE evidence SET hash = X'07'",
    "UPDATE app_state SET content = X'31' WHERE key = CAST('size' AS BLOB)",
    *(f"DELETE FROM {table} {AT}" for table in ("blocks", "commits", "results")),
    *(f"DELETE FROM {table} {ONE}" for table in ("txs", "tx_slices", "tx_hits")),
    "DELETE FROM evidence",
    "INSERT INTO missed_votes VALUES (5, 1, 1)",
    "DELETE FROM validator_sets",
    "DELETE FROM validator_priorities",
    "DELETE FROM consensus_params",
    "UPDATE validator_sets SET since = 4 WHERE since = 1",
    "UPDATE consensus_params SET since = 3",
)


@pytest.mark.parametrize("sql", LOOKUPS)
def test_a_change_of_what_sql_looks_up_is_noticed(
    tampered: Path, open_store: OpenStore, sql: str
) -> None:
    assert run(tampered, sql) > 0

    with pytest.raises((InvalidBlock, StoreError)):
        open_store(application=KVStore).verify()


@pytest.mark.parametrize("table", ["blocks", "txs"])
def test_a_hash_that_leads_to_another_row_is_an_error(
    tampered: Path, open_store: OpenStore, table: str
) -> None:
    run(tampered, f"UPDATE {table} SET hash = X'07' {AT if table == 'blocks' else ONE}")
    store = open_store()

    with pytest.raises(StoreError, match="has another hash"):
        store.reads.height_of(b"\x07") if table == "blocks" else store.reads.tx(b"\x07")


def test_an_untouched_store_verifies_with_its_application(
    tampered: Path, open_store: OpenStore, sample: SampleChain
) -> None:
    assert open_store(application=KVStore).verify() == len(sample.blocks)


def test_an_index_that_lost_an_entry_is_noticed(tampered: Path, open_store: OpenStore) -> None:
    with closing(sqlite3.connect(tampered)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        (sql,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = 'txs_hash'"
        ).fetchone()
        partial = f"{sql} WHERE place >> 20 <> 5"
        connection.execute("DROP INDEX txs_hash")
        connection.execute(partial)
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'txs_hash'", (sql,))

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


def test_a_commit_of_too_little_power_is_noticed(
    tampered: Path, open_store: OpenStore, sample: SampleChain
) -> None:
    commit = sample.blocks[-1].commit
    few = replace(commit, signatures=(ABSENT, ABSENT, *commit.signatures[2:]))

    rewrite(tampered, "commits", "commit", LAST, lambda *_: blocks.pack_commit(few))

    with pytest.raises(InvalidBlock, match="more than two thirds are needed"):
        open_store().verify()


def test_verify_goes_on_from_a_height(
    tampered: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify = SQLiteBackend.verify_blocks

    def interrupted(store: SQLiteBackend, progress: Callable[[int], None], scope: Scope) -> int:
        def until_seven(height: int) -> None:
            progress(height)
            if height == 7:
                raise KeyboardInterrupt

        return verify(store, until_seven, scope)

    with monkeypatch.context() as patch:
        patch.setattr(SQLiteBackend, "verify_blocks", interrupted)
        found = CliRunner().invoke(main, ["verify", str(tampered)])
    assert (found.exit_code, "continue with --from 8" in found.output) == (130, True)

    assert open_store().verify(scope=Scope(7)) == 4
    found = CliRunner().invoke(main, ["verify", str(tampered), "--from", "7"])
    assert "4 blocks verified" in found.output
    rewrite(tampered, *ROWS[0], lambda row, *_: b"\0" + row[1:])
    found = CliRunner().invoke(main, ["verify", str(tampered), "--from", "7"])
    assert found.exit_code == 0


@pytest.mark.parametrize(
    ("events", "cause"), [("[[999]]", "value 999 is missing"), ("[[", "truncated")]
)
@pytest.mark.parametrize("table", ["txs", "blocks"])
def test_a_damaged_list_of_indexed_values_is_an_error_of_its_height(
    full: SQLiteBackend, path: Path, table: str, events: str, cause: str
) -> None:
    with closing(sqlite3.connect(path)) as at, at:
        at.execute(f"UPDATE {table} SET events = ?", (events,))

    with pytest.raises(StoreError, match=rf"the index of height [12] is damaged \(.*{cause}"):
        full.prune(1)
    with pytest.raises((InvalidBlock, StoreError), match="restore a backup"):
        full.verify()

    assert full.reads.base_height() == 1
    assert full.reads.block(2)


@pytest.mark.parametrize("jobs", [1, 2])
def test_verify_has_a_range_and_a_sample(
    tampered: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    # Each process verifies three blocks at once.
    monkeypatch.setattr(verification, "_PART", 3)

    def verified(*words: str) -> Any:
        flags = ["--jobs", str(jobs), *words]
        return CliRunner().invoke(main, ["verify", str(tampered), *flags])

    assert "10 blocks verified" in verified().output
    assert "5 blocks verified" in verified("--from", "3", "--to", "7").output
    assert "8 blocks verified" in verified("--from", "3", "--to", "99").output
    assert "0 blocks verified" in verified("--from", "7", "--to", "3").output
    sampled = verified("--sample", "4", "--all-signatures").output
    assert "4 of 10 blocks verified" in sampled
    assert "not verified: the other blocks" in sampled
    assert "10 of 10 blocks verified" in verified("--sample", "99").output
    rewrite(tampered, *ROWS[0], lambda row, *_: b"\0" + row[1:])
    broken = verified()
    assert broken.exit_code == 1, broken.output
    assert "restore a backup" in broken.output
