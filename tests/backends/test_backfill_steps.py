"""Tests that a large block, or many failed transactions above it, do not hold the writer for
long: they are indexed in steps, which continue after an interruption."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import CommittedBlock, MemoryChain, SQLiteBackend
from flask_noderpc.backends.base.application import BlockExecution, BlockRequest
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.base.new_blocks import OlderBlock
from flask_noderpc.backends.sql import backfill, prune
from flask_noderpc.backends.sql import store as sql_store
from flask_noderpc.backends.sql.block_writes import Prepared
from flask_noderpc.backends.sql.connection import Connection
from flask_noderpc.backends.sql.ledger import Ledger
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.domain.abci import Event, EventAttribute
from flask_noderpc.domain.search import Page, Search, SearchLimits, Term
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.until import PATIENCE

from .conftest import OpenStore
from .leftovers import assert_no_leftovers

LARGE, FAILURES = 300, 200
ATTRIBUTES = tuple(EventAttribute(b"k%d" % n, b"v%d" % n) for n in range(10))


class Failing(KVStore):
    """Fails transactions from the third block on."""

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        made = super().finalize_block(block)
        code = int(block.height > 2)
        return replace(made, tx_results=tuple(replace(r, code=code) for r in made.tx_results))


class Chain:
    """A small block, a large one, and above it failures of one of its transactions."""

    def __init__(self) -> None:
        maker = ChainMaker(application=Failing)
        plain, large = maker.block(b"a=1"), maker.block(*(b"k%d=v" % n for n in range(LARGE)))
        self.blocks = [plain, self._with_events(large)]
        self.blocks.append(maker.block(*[b"k7=v"] * FAILURES))
        self.whole = ChainBackend(MemoryChain(maker.genesis, self.blocks, state=maker.state))

    def _with_events(self, item: CommittedBlock) -> CommittedBlock:
        events = (Event("e", ATTRIBUTES),)
        found = tuple(replace(each, events=events) for each in item.results.tx_results)
        return replace(item, results=replace(item.results, tx_results=found))

    def older(self, height: int) -> OlderBlock:
        item = self.blocks[height - 1]
        return OlderBlock(item.block, item.results, self.whole.reads.validators(height))

    def begin(self, store: SQLiteBackend) -> None:
        whole = self.whole
        first, second, third = (whole.reads.validators(2 + n) for n in range(3))
        store.init_at(
            whole.reads.chain_id(),
            1,
            whole.reads.block_meta(2).header,
            whole.reads.commit(2),
            (first, second, third),
            whole.reads.consensus_params(3),
        )
        store.append_block(*self.blocks[2:])

    def check(self, store: SQLiteBackend) -> None:
        page, limits = Page(0, 1000), SearchLimits(PATIENCE)
        for asked in (
            Search(),
            Search((Term("e.k1", equals="v1"),)),
            Search((Term("app.key"),)),
        ):
            assert store.reads.search_txs(asked, page, limits) == self.whole.reads.search_txs(
                asked, page, limits
            )
        assert store.reads.tx(tx_hash(b"k7=v")).height == 2
        assert store.reads.lowest_indexed() == store.reads.base_height()
        assert store.verify() == 4 - store.reads.base_height()


@pytest.fixture(scope="module")
def chain() -> Chain:
    return Chain()


@pytest.fixture
def store(open_store: OpenStore, chain: Chain) -> SQLiteBackend:
    backend = open_store()
    chain.begin(backend)
    return backend


Older = Prepared[OlderBlock]


BACKFILL = (Ledger, "backfill")


@contextmanager
def steps(
    monkeypatch: pytest.MonkeyPatch,
    most: int = 1 << 30,
    work: tuple[Any, str] = BACKFILL,
) -> Iterator[list[int]]:
    """Make each step as short as possible, and yield the number of rows that each changed;
    raise in the step after ``most``, as if the process ended."""
    rows: list[int] = []
    real = getattr(*work)

    def counted(*args: Any, **options: Any) -> Any:
        if len(rows) == most:
            raise KeyboardInterrupt
        (at,) = (each for each in args if isinstance(each, sqlite3.Connection))
        before = at.total_changes
        found = real(*args, **options)
        rows.append(at.total_changes - before)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(sql_store, "GENTLE", backfill.GENTLE._replace(seconds=-1.0))
        patch.setattr(prune, "_STEP_S", -1.0)
        patch.setattr(*work, counted)
        yield rows


@pytest.mark.sqlite
def test_no_transaction_indexes_a_large_block_or_many_failures_whole(
    store: SQLiteBackend, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    with steps(monkeypatch) as rows:
        store.backfill(chain.older(2), chain.older(1))

    hits = LARGE * len(ATTRIBUTES)
    assert sum(rows) > hits
    assert max(rows) < hits / 2
    chain.check(store)
    with steps(monkeypatch, work=(prune, "prune_some")) as gone:
        store.prune(1)
    assert sum(gone) > hits
    assert max(gone) < hits * 2 / 3
    assert_no_leftovers(store, 3)


@pytest.mark.sqlite
def test_a_large_block_that_was_pruned_in_part_is_indexed_again_or_pruned(
    store: SQLiteBackend, chain: Chain, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.backfill(chain.older(2))
    interrupted = pytest.raises(KeyboardInterrupt)
    with steps(monkeypatch, 1, (prune, "prune_some")), interrupted:
        store.prune(1)
    store.close()
    again = open_store()
    assert (again.reads.base_height(), again.reads.lowest_indexed(), again.verify()) == (
        2,
        3,
        2,
    )

    again.backfill(chain.older(1))

    chain.check(again)
    assert again.prune(1) == 2
    assert_no_leftovers(again, 3)


# The process ends in the failures, in the large block, and at its last step.
@pytest.mark.sqlite
@pytest.mark.parametrize("most", [0, 1, 3, 5, 6, 9, 12, 13])
def test_an_interrupted_index_goes_on(
    store: SQLiteBackend,
    chain: Chain,
    most: int,
    open_store: OpenStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with steps(monkeypatch, most), pytest.raises(KeyboardInterrupt):
        store.backfill(chain.older(2))
    store.close()
    again = open_store()
    assert again.verify() == 4 - again.reads.base_height()
    before = again.reads.version()

    again.backfill(
        *(chain.older(height) for height in range(again.reads.base_height() - 1, 0, -1))
    )

    assert again.reads.version() != before
    chain.check(again)


@pytest.mark.sqlite
def test_a_block_that_is_indexed_in_part_is_pruned_whole(
    store: SQLiteBackend, chain: Chain, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with steps(monkeypatch, 12), pytest.raises(KeyboardInterrupt):
        store.backfill(chain.older(2))
    assert (store.reads.base_height(), store.reads.lowest_indexed()) == (2, 3)

    store.prune(1)

    assert_no_leftovers(store, 3)
    store.backfill(chain.older(2))
    assert store.verify() == 2


def test_caches_see_each_step(
    store: SQLiteBackend, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = []
    work = Ledger.backfill

    def look(self: Ledger, at: Connection, items: list[Older], pace: backfill.Pace) -> int:
        versions.append(store.reads.version())
        return work(self, at, items, pace._replace(seconds=-1.0))

    monkeypatch.setattr(Ledger, "backfill", look)
    store.backfill(chain.older(2))

    assert len(set(versions)) == len(versions) > LARGE / 64
