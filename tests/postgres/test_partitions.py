"""Tests of tables of blocks and transactions with partitions by height, which are added and
dropped."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from flask_noderpc.backends.base.new_blocks import CommittedBlock, OlderBlock
from flask_noderpc.domain.search import Page, Search, SearchLimits, Term
from flask_noderpc.errors import HeightNotAvailable, InvalidBlock, StoreError, TxNotFound
from flask_noderpc.postgres import backend as postgres_backend
from flask_noderpc.postgres import partitions
from flask_noderpc.postgres.backend import PostgresBackend
from flask_noderpc.postgres.connection import Connection
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.until import PATIENCE

from .conftest import Open

HEIGHTS = 8
BLOCKS = 50


@pytest.fixture(autouse=True)
def _few_heights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "HEIGHTS", HEIGHTS)
    # Dropping a partition whose reader has ended is retried at once.
    monkeypatch.setattr(postgres_backend, "_DROP_AGAIN_S", 0.0)
    wait_for_others(monkeypatch)


def wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pruning wait for autovacuum, and for connections that were just closed."""
    monkeypatch.setattr(partitions, "_PATIENCE_S", PATIENCE)
    monkeypatch.setattr(partitions, "_DETACH_TIMEOUT", f"{PATIENCE:.0f}s")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Shorten the timeout of pruning that readers block; restore it at the end."""
    with monkeypatch.context() as patch:
        patch.setattr(partitions, "_PATIENCE_S", 0.1)
        patch.setattr(partitions, "_DETACH_TIMEOUT", "100ms")
        yield patch


def ask(url: str, sql: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as at:
        return at.execute(sql.encode()).fetchall()


def listed(url: str) -> list[tuple[int, int]]:
    return ask(url, "SELECT low, high FROM partitions ORDER BY low")


def attached(url: str, table: str) -> list[int]:
    """Return the heights at which the partitions of a table begin."""
    found = ask(
        url,
        "SELECT inhrelid::regclass::text FROM pg_inherits"
        f" WHERE inhparent = '{table}'::regclass",
    )
    return sorted(int(name.rpartition("_")[2]) for (name,) in found)


def remaining(url: str) -> set[str]:
    """Return the tables that look like partitions, attached or not."""
    names = "|".join(partitions.TABLES)
    found = ask(
        url,
        f"SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^({names})_[0-9]+$'",
    )
    return {name for (name,) in found}


def expect_partitions(url: str, *lows: int) -> None:
    """Check the partitions of all tables."""
    assert [low for low, _ in listed(url)] == list(lows)
    for table in partitions.TABLES:
        assert attached(url, table) == list(lows)
    assert remaining(url) == {f"{table}_{low}" for table in partitions.TABLES for low in lows}


def blocks_of(maker: ChainMaker, count: int = BLOCKS) -> list[CommittedBlock]:
    return [maker.block(b"a=%d" % each, b"b=%d" % each) for each in range(1, count + 1)]


@pytest.fixture
def blocks(maker: ChainMaker) -> list[CommittedBlock]:
    return blocks_of(maker)


@pytest.fixture
def full(host: PostgresBackend, blocks: list[CommittedBlock]) -> PostgresBackend:
    """A host with 50 blocks."""
    host.append_block(*blocks)
    return host


def older(block: CommittedBlock) -> OlderBlock:
    return OlderBlock(block.block, block.results)


EVERY = Search((Term("app.key"),))


def places(store: PostgresBackend, search: Search, page: Page) -> list[tuple[int, int]]:
    found = store.reads.search_txs(search, page, SearchLimits())
    return [(record.height, record.index) for record in found.txs]


def test_each_table_has_one_partition_more_than_its_blocks_need(
    url: str, host: PostgresBackend, maker: ChainMaker
) -> None:
    host.append_block(*blocks_of(maker, HEIGHTS - 2))
    expect_partitions(url, 0)

    host.append_block(maker.block())
    expect_partitions(url, 0, 8)

    for _ in range(HEIGHTS):
        host.append_block(maker.block(b"c=1"))
    expect_partitions(url, 0, 8, 16)
    assert host.verify() == 2 * HEIGHTS - 1


def test_a_batch_of_blocks_may_need_several(url: str, full: PostgresBackend) -> None:
    expect_partitions(url, *range(0, BLOCKS + HEIGHTS - BLOCKS % HEIGHTS, HEIGHTS))
    assert full.verify() == BLOCKS


def test_two_hosts_that_add_blocks_add_partitions_once(
    url: str, open_host: Open, host: PostgresBackend, blocks: list[CommittedBlock]
) -> None:
    """Both append the same blocks, and for each block one of them is first."""

    def offer(store: PostgresBackend) -> None:
        for block in blocks:
            with suppress(InvalidBlock):
                store.append_block(block)

    threads = [threading.Thread(target=offer, args=(each,)) for each in (host, open_host())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert host.reads.latest_height() == BLOCKS
    assert host.verify() == BLOCKS
    expect_partitions(url, *range(0, BLOCKS + 6, HEIGHTS))


def test_no_block_waits_for_a_partition_that_is_not_needed_yet(
    url: str, host: PostgresBackend, maker: ChainMaker
) -> None:
    host.append_block(*blocks_of(maker, HEIGHTS - 2))
    with psycopg.connect(url) as at:
        # ANALYZE takes this lock.
        at.execute("LOCK TABLE txs IN SHARE UPDATE EXCLUSIVE MODE")
        host.append_block(maker.block(b"c=1"))
        assert host.reads.latest_height() == HEIGHTS - 1
    expect_partitions(url, 0)

    host.append_block(maker.block(b"c=2"))
    expect_partitions(url, 0, 8)


def begin_above(store: PostgresBackend, full: PostgresBackend, height: int) -> None:
    store.init_at(
        full.reads.chain_id(),
        1,
        full.reads.block_meta(height).header,
        full.reads.commit(height),
        (
            full.reads.validators(height),
            full.reads.validators(height + 1),
            full.reads.validators(height + 2),
        ),
        full.reads.consensus_params(height + 1),
    )


@pytest.fixture
def trusting(full: PostgresBackend, cluster: Any) -> Iterator[PostgresBackend]:
    """A second store that begins above block 27."""
    url = cluster.new_database()
    store = PostgresBackend(url)
    begin_above(store, full, 27)
    yield store
    store.close()
    cluster.drop(url)


def test_a_backfill_adds_partitions_below(
    trusting: PostgresBackend, full: PostgresBackend, blocks: list[CommittedBlock]
) -> None:
    url = trusting.location.path
    trusting.append_block(*blocks[27:])
    assert listed(url)[0] == (24, 32)

    lowest = replace(
        older(blocks[0]),
        validators=full.reads.validators(1),
        params=full.reads.consensus_params(1),
    )
    trusting.backfill(*map(older, blocks[26:0:-1]), lowest)

    assert listed(url)[0] == (0, 8)
    assert trusting.verify() == BLOCKS
    for order in (True, False):
        page = Page(0, 30, order)
        assert places(trusting, EVERY, page) == places(full, EVERY, page)


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_search_finds_what_is_in_several_partitions(
    full: PostgresBackend, newest_first: bool
) -> None:
    expected = [(height, index) for height in range(1, BLOCKS + 1) for index in (0, 1)]
    if newest_first:
        expected.reverse()

    found = [
        each
        for offset in range(0, 2 * BLOCKS, 30)
        for each in places(full, EVERY, Page(offset, 30, newest_first))
    ]

    assert found == expected
    some = Search((Term("app.key", equals="a"),), 6, 27)
    assert places(full, some, Page(0, 100, newest_first)) == [
        (height, index) for height, index in expected if 6 <= height <= 27 and index == 0
    ]


def test_a_look_up_by_hash_finds_any_partition(
    full: PostgresBackend, blocks: list[CommittedBlock]
) -> None:
    for height in (1, 7, 8, 9, 33, BLOCKS):
        assert full.reads.tx(tx_hash(b"a=%d" % height)).height == height
        assert full.reads.height_of(full.reads.hash_at(height)) == height
    with pytest.raises(TxNotFound):
        full.reads.tx(tx_hash(b"nothing"))


# Statements that read one height, and the ends of the chain.
ONE_PARTITION = (
    "SELECT header FROM blocks WHERE height = 20",
    "SELECT results FROM results WHERE height = 20",
    "SELECT txs FROM tx_slices WHERE place BETWEEN 20 << 20 AND 21 << 20",
)


@pytest.mark.parametrize("sql", ONE_PARTITION)
def test_a_read_of_one_height_looks_at_one_partition(
    url: str, full: PostgresBackend, sql: str
) -> None:
    assert scanned(url, sql) == 1


def test_hits_are_read_in_their_order_without_a_sort(url: str, full: PostgresBackend) -> None:
    """Only the one hit in the value's row is sorted, which PostgreSQL can't know."""
    sql = (
        "SELECT DISTINCT place FROM tx_all_hits WHERE value_id = 1 ORDER BY place DESC LIMIT 5"
    )
    with psycopg.connect(url) as at:
        at.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
        plan = "\n".join(line for (line,) in at.execute(b"EXPLAIN " + sql.encode()))
    assert "Merge Append" in plan
    assert plan.count("->  Sort") == 1


def scanned(url: str, sql: str) -> int:
    ((plan,),) = ask(url, f"EXPLAIN (FORMAT JSON) {sql}")
    return json.dumps(plan).count('"Relation Name"')


# Tests of pruning.


def test_pruning_drops_whole_partitions(url: str, full: PostgresBackend) -> None:
    assert full.prune(20) == 30

    # The commit of block 30 is in the remaining partition.
    expect_partitions(url, 24, 32, 40, 48)
    check_pruned(full, 31)


def check_pruned(store: PostgresBackend, base: int) -> None:
    """Check a store of blocks from a height on."""
    assert store.reads.base_height() == base
    assert store.verify() == BLOCKS - base + 1
    expected = [(height, index) for height in range(base, BLOCKS + 1) for index in (0, 1)]
    assert places(store, EVERY, Page(0, 100)) == expected
    assert places(store, Search((), 0, BLOCKS), Page(0, 100)) == expected
    latest = [(record.height, record.index) for record in store.reads.latest_txs(200)]
    assert latest == expected[::-1]
    for height in (base - 1, 1):
        with pytest.raises(HeightNotAvailable):
            store.reads.block(height)
        with pytest.raises(HeightNotAvailable):
            store.reads.results(height)
        with pytest.raises(TxNotFound):
            store.reads.tx(tx_hash(b"a=%d" % height))


def prune_in_part(store: PostgresBackend, monkeypatch: pytest.MonkeyPatch) -> int:
    """Remove some blocks of partitions that are to be dropped, like a process that ends then;
    return the base."""
    from flask_noderpc.backends.sql import prune

    with monkeypatch.context() as patch:
        patch.setattr(prune, "_MAX_BLOCKS", 3)
        patch.setattr(prune, "_FEW_BLOCKS", 2)
        removed = store.prune_some(31)
    assert 0 < removed <= 6
    return removed + 1


def test_an_interrupted_pruning_leaves_nothing_to_find(
    url: str, full: PostgresBackend, open_host: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = prune_in_part(full, monkeypatch)
    assert ask(url, "SELECT count(*) FROM txs") > [(2 * (BLOCKS - base + 1),)]
    other = open_host()

    check_pruned(other, base)
    assert ask(url, "SELECT min(height) FROM tx_list") == [(base,)]

    # Another host continues.
    other.prune(20)
    expect_partitions(url, 24, 32, 40, 48)
    check_pruned(full, 31)


def test_what_an_interrupted_pruning_left_makes_way_for_a_backfill(
    url: str,
    full: PostgresBackend,
    blocks: list[CommittedBlock],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = prune_in_part(full, monkeypatch)

    full.backfill(*map(older, reversed(blocks[: base - 1])))

    assert full.verify() == BLOCKS
    expected = [(height, index) for height in range(1, BLOCKS + 1) for index in (0, 1)]
    assert places(full, EVERY, Page(0, 100)) == expected
    assert ask(url, "SELECT count(*) FROM txs") == [(2 * BLOCKS,)]


@contextmanager
def reading(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Open a snapshot on another host."""
    with psycopg.connect(url) as at:
        at.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        at.execute("SELECT count(*) FROM txs")
        yield at


PENDING = "SELECT count(*) FROM pg_inherits WHERE inhdetachpending"


@pytest.mark.parametrize("is_detaching", [0, 1])
def test_a_partition_that_others_read_is_dropped_later(
    url: str,
    full: PostgresBackend,
    maker: ChainMaker,
    impatient: pytest.MonkeyPatch,
    is_detaching: int,
) -> None:
    """The same holds if another snapshot interrupts DETACH."""
    with reading(url) as other:
        if is_detaching:
            impatient.setattr(partitions, "_is_read", lambda *_: False)
        full.prune(20)
        impatient.undo()
        assert full.reads.base_height() == 31
        assert full.verify() == 20
        # The reader still sees its snapshot, and blocks are appended.
        assert other.execute("SELECT count(*) FROM txs").fetchone() == (2 * BLOCKS,)
        assert ask(url, PENDING) == [(is_detaching,)]
        full.append_block(*(maker.block(b"d=%d" % number) for number in range(10)))
        assert len(listed(url)) == 8

    full.prune(30)
    assert ask(url, PENDING) == [(0,)]
    expect_partitions(url, 24, 32, 40, 48, 56)
    assert full.verify() == 30


@pytest.mark.parametrize("step", [1, 2, 3, 10])
def test_dropping_is_gone_on_with_from_anywhere(
    url: str, full: PostgresBackend, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The connection is lost before each of some statements."""
    count = 0
    execute = Connection.execute

    def lost(self: Any, sql: str, parameters: Any = ()) -> Any:
        nonlocal count
        if "DETACH" in sql or "DROP TABLE" in sql:
            count += 1
            if count == step:
                self.raw.close()
        return execute(self, sql, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "execute", lost)
        full.prune_some(31)

    full.prune(20)
    expect_partitions(url, 24, 32, 40, 48)
    check_pruned(full, 31)


def test_where_a_partition_is_being_removed_no_block_is_added(
    full: PostgresBackend,
    blocks: list[CommittedBlock],
    url: str,
    impatient: pytest.MonkeyPatch,
) -> None:
    with reading(url):
        full.prune(42)
        impatient.undo()
        assert full.reads.base_height() == 9
        with pytest.raises(StoreError, match="are being removed: prune again"):
            full.backfill(*map(older, reversed(blocks[:8])))

    full.prune(42)
    full.backfill(*map(older, reversed(blocks[:8])))
    assert full.verify() == BLOCKS


def test_blocks_that_are_removed_one_at_a_time_leave_no_partition(
    url: str, host: PostgresBackend, blocks: list[CommittedBlock]
) -> None:
    for block in blocks:
        host.append_block(block)
        host.prune(5)

    expect_partitions(url, 40, 48)
    check_pruned(host, 46)


def test_others_read_while_partitions_are_dropped(
    full: PostgresBackend, open_host: Open
) -> None:
    other, errors = open_host(), list[Exception]()
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            try:
                assert other.reads.block(BLOCKS)[1].header.height == BLOCKS
                found = other.reads.search_txs(EVERY, Page(0, 100), SearchLimits())
                assert len(found.txs) == found.total
            except Exception as error:
                errors.append(error)
                return

    thread = threading.Thread(target=read)
    thread.start()
    for retained in range(BLOCKS - 1, 1, -3):
        full.prune(retained)
    ended.set()
    thread.join(PATIENCE)
    assert errors == []
    assert full.verify() == retained


def test_a_rewind_goes_over_a_bound(
    full: PostgresBackend, maker: ChainMaker, blocks: list[CommittedBlock]
) -> None:
    lease = full.acquire_lease("host", 60)
    assert lease is not None

    full.rewind(13, {}, lease)

    assert full.reads.latest_height() == 13
    assert full.verify() == 13
    with pytest.raises(TxNotFound):
        full.reads.tx(tx_hash(b"a=14"))
    full.append_block(*blocks[13:])
    assert full.verify() == BLOCKS
