"""Tests that the index finds what a scan of every block finds."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from decimal import Decimal
from itertools import combinations_with_replacement
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc import CommittedBlock, MemoryChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.sql import search as index_search
from flask_noderpc.backends.sql.index import sortable
from flask_noderpc.backends.sql.store import ChainStore
from flask_noderpc.domain.abci import Event, EventAttribute
from flask_noderpc.domain.search import (
    HIGHEST,
    Bound,
    FoundHeights,
    FoundTxs,
    Page,
    Search,
    SearchLimits,
    Term,
)
from flask_noderpc.errors import SearchTooCostly
from flask_noderpc.testing.chains import ChainMaker, make_blocks
from tests.helpers.stores import make_store
from tests.helpers.until import PATIENCE

from .conftest import OpenStore
from .test_mempool import failing

ALL = Page(0, 1000)

numbers = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40)) | st.integers(
    -30, 30
).map(Decimal)


@given(numbers, numbers)
def test_numbers_sort_as_their_texts(one: Decimal, other: Decimal) -> None:
    assert (one < other) == (sortable(one) < sortable(other))
    assert (one == other) == (sortable(one) == sortable(other))


# Few keys and values, so that several events have them.
KEYS = ("k", "l")
VALUES = ("", "1", "2", " 2 ", "2.0", "10", "-3", "1e1", "8atom", "x1", "x", "1" * 30)

attributes = st.builds(
    EventAttribute,
    st.sampled_from((*KEYS, "")).map(str.encode),
    st.sampled_from(VALUES).map(str.encode),
    st.booleans() | st.just(True),
)
events = st.lists(
    st.builds(
        Event, st.sampled_from(("a", "b", "")), st.lists(attributes, max_size=3).map(tuple)
    ),
    max_size=3,
).map(tuple)
# For each block: its own events, and the events of each of its transactions.
contents = st.lists(st.tuples(events, st.lists(events, max_size=3)), min_size=1, max_size=5)

names = st.sampled_from([f"{kind}.{key}" for kind in "ab" for key in KEYS])
bounds = st.builds(
    Bound,
    st.sampled_from(("<", "<=", ">", ">=")),
    st.sampled_from(("0", "1", "2.0", "10", "1" * 30, "1" * 29 + "2")).map(Decimal),
)
terms = (
    st.builds(Term, names, equals=st.sampled_from(VALUES))
    | st.builds(Term, names, contains=st.sampled_from(("", "1", "x", "atom")))
    | st.builds(Term, names, within=st.lists(bounds, min_size=1, max_size=2).map(tuple))
    | st.builds(Term, names)
)
searches = st.builds(
    Search,
    st.lists(terms, max_size=3, unique=True).map(tuple),
    st.integers(0, 4),
    st.integers(1, 6) | st.just(HIGHEST),
)
windows = st.builds(Page, st.integers(0, 4), st.integers(1, 4), st.booleans())


def with_events(
    maker: ChainMaker, height: int, own: tuple[Event, ...], of_txs: Sequence[tuple[Event, ...]]
) -> CommittedBlock:
    block = maker.block(*(b"k%d.%d=v" % (height, index) for index in range(len(of_txs))))
    results = replace(
        block.results,
        end_block_events=own,
        tx_results=tuple(
            replace(result, events=events)
            for result, events in zip(block.results.tx_results, of_txs, strict=True)
        ),
    )
    return replace(block, results=results)


@contextmanager
def both(
    blocks: list[CommittedBlock], maker: ChainMaker
) -> Iterator[tuple[ChainStore, ChainBackend]]:
    with (
        TemporaryDirectory() as folder,
        closing(make_store(Path(folder) / "chain.db")) as stored,
    ):
        stored.init_chain(maker.genesis, maker.state)
        stored.append_block(*blocks)
        yield stored, ChainBackend(MemoryChain(maker.genesis, blocks, state=maker.state))


@settings(max_examples=60, deadline=None)
@given(contents, st.lists(st.tuples(searches, windows), min_size=1, max_size=12))
def test_index_search_equals_a_full_scan(
    parts: list[tuple[tuple[Event, ...], list[tuple[Event, ...]]]],
    asked: list[tuple[Search, Page]],
) -> None:
    maker = ChainMaker()
    blocks = [
        with_events(maker, height, own, of_txs) for height, (own, of_txs) in enumerate(parts, 1)
    ]
    with both(blocks, maker) as (stored, scanned):
        for search, window in asked:
            for backend_call in ("search_txs", "search_blocks"):
                one = getattr(stored.reads, backend_call)(
                    search, window, SearchLimits(PATIENCE)
                )
                other = getattr(scanned.reads, backend_call)(
                    search, window, SearchLimits(PATIENCE)
                )
                assert one == other, search


@pytest.fixture
def long(store: ChainStore, maker: ChainMaker) -> ChainStore:
    """A store with two thousand transactions in twenty blocks."""
    store.append_block(
        *(
            maker.block(*(b"k%d.%d=v%d" % (height, index, index) for index in range(100)))
            for height in range(20)
        )
    )
    return store


A_KEY = Search((Term("app.key", equals="a"),))
CONTAINS = Search((Term("app.key", contains="7"),))


@pytest.mark.parametrize(
    ("effort", "setting"),
    [
        (SearchLimits(rows=100), "NODERPC_SEARCH_TIMEOUT"),
        (SearchLimits(seconds=1e-9), "NODERPC_SEARCH_TIMEOUT"),
        (SearchLimits(size=1000), "NODERPC_MAX_RESPONSE_BYTES"),
    ],
)
def test_a_search_that_costs_too_much_is_refused_whole(
    long: ChainStore, maker: ChainMaker, effort: SearchLimits, setting: str
) -> None:
    with pytest.raises(SearchTooCostly, match=setting):
        long.reads.search_txs(CONTAINS, ALL, effort)

    # The thread and its connection are still usable.
    assert long.reads.search_txs(CONTAINS, ALL, SearchLimits(PATIENCE)).total > 500


@pytest.mark.sqlite  # PostgreSQL runs each search in the thread of its call.
def test_a_short_search_waits_for_no_long_one(
    long: ChainStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, end = threading.Semaphore(0), threading.Event()

    def slow(*_: object) -> FoundHeights:
        if not threading.current_thread().name.startswith("noderpc-search"):
            raise SearchTooCostly.by_rows(1)
        held.release()
        end.wait(PATIENCE)
        return FoundHeights(0, ())

    monkeypatch.setattr(index_search, "heights", slow)
    limits = SearchLimits(PATIENCE)
    one = Search((Term("app.key", equals="k7.3"),))
    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            pool.submit(long.reads.search_blocks, CONTAINS, ALL, limits)
        try:
            assert held.acquire(timeout=PATIENCE)
            assert held.acquire(timeout=PATIENCE)
            assert long.reads.search_txs(one, ALL, limits).total == 1
        finally:
            end.set()


OLDEST, NEWEST = Page(0, 30), Page(0, 30, newest_first=True)


@pytest.mark.parametrize(
    ("asked", "total"),
    [
        (Search((Term("old.k"),)), 100),
        (Search((Term("app.key"),)), 1900),
        (Search((Term("app.key"),), low=7, high=8), 200),
        (Search((Term("app.key", contains="9"),), low=7, high=7), 19),
        (Search((Term("app.key"), Term("app.creator")), low=7, high=8), 200),
    ],
)
@pytest.mark.parametrize("page", [OLDEST, NEWEST])
def test_first_pages_look_at_few_rows(
    store: ChainStore,
    maker: ChainMaker,
    monkeypatch: pytest.MonkeyPatch,
    asked: Search,
    total: int,
    page: Page,
) -> None:
    """Search for a key that only old transactions have, and for heights among many other
    values."""
    monkeypatch.setattr(index_search, "_FEW_PLACES", 50)
    old = (Event("old", (EventAttribute(b"k", b"v"),)),)
    store.append_block(with_events(maker, 1, (), [old] * 100), *make_blocks(maker, 19, 100))

    found = store.reads.search_txs(asked, page, SearchLimits(PATIENCE, rows=1500))

    assert (found.total, len(found.txs)) == (total, min(30, total))


def test_a_scan_respects_the_search_limits(maker: ChainMaker) -> None:
    backend = ChainBackend(
        MemoryChain(
            maker.genesis, [maker.block(b"a=1", b"b=2") for _ in range(9)], state=maker.state
        )
    )
    for effort, setting in (
        (SearchLimits(rows=10), "NODERPC_SEARCH_TIMEOUT"),
        (SearchLimits(seconds=-1), "NODERPC_SEARCH_TIMEOUT"),
        (SearchLimits(size=10), "NODERPC_MAX_RESPONSE_BYTES"),
    ):
        with pytest.raises(SearchTooCostly, match=setting):
            backend.reads.search_txs(Search(), ALL, effort)


def test_proofs_are_of_the_block(long: ChainStore) -> None:
    found = long.reads.search_txs(CONTAINS, Page(0, 100), SearchLimits(PATIENCE), prove=True)

    assert len(found.txs) == 100
    for record in found.txs:
        assert record.proof is not None
        assert record.proof.root_hash == long.reads.block_meta(record.height).header.data_hash
        assert record.proof.tx == record.tx


def test_a_failure_after_a_success_is_not_found(store: ChainStore, maker: ChainMaker) -> None:
    blocks = [maker.block(b"a=1", b"b=2"), failing(maker.block(b"a=1"))]
    store.append_block(*blocks)
    scanned = ChainBackend(MemoryChain(maker.genesis, blocks, state=maker.state))

    for search, found in ((Search(), [b"a=1", b"b=2"]), (A_KEY, [b"a=1"])):
        answer = store.reads.search_txs(search, ALL, SearchLimits(PATIENCE))
        assert [tx.tx for tx in answer.txs] == found
        assert {tx.height for tx in answer.txs} == {1}
        assert scanned.reads.search_txs(search, ALL, SearchLimits(PATIENCE)) == answer


def test_the_transactions_of_thousands_of_heights_are_counted(
    open_store: OpenStore, tmp_path: Path
) -> None:
    first, last = 1_000, 3_200
    maker, store = ChainMaker(initial_height=first), open_store(tmp_path / "counted.db")
    store.init_chain(maker.genesis, maker.state)
    sizes = {height: height % 3 for height in range(first, last + 1)}
    store.append_block(
        *[
            maker.block(*[b"k%d=%d" % (height, n) for n in range(size)])
            for height, size in sizes.items()
        ]
    )
    low = first

    def assert_counted() -> None:
        ends = [first, 1_023, 1_024, 1_500, 2_047, 2_048, 2_900, 3_071, 3_072, last]
        for begin, end in combinations_with_replacement(ends, 2):
            found = store.reads.search_txs(
                Search(low=begin, high=end), Page(0, 1), SearchLimits(PATIENCE)
            )
            within = range(max(begin, low), end + 1)
            assert found.total == sum(sizes[height] for height in within), (begin, end)

    assert_counted()
    store.prune(last - 1_400 + 1)
    low = 1_400
    assert_counted()


def test_an_empty_chain_has_nothing_to_find(store: ChainStore) -> None:
    assert store.reads.search_txs(Search(), ALL, SearchLimits(PATIENCE)) == FoundTxs(0, ())
    assert store.reads.search_blocks(Search(), ALL, SearchLimits(PATIENCE)) == FoundHeights(
        0, ()
    )


def test_a_busy_searcher_does_not_starve_others(store: ChainStore, maker: ChainMaker) -> None:
    store.append_block(maker.block(b"a=1"))
    turns = [0] * 6
    # Each search waits for its turn, longer than any machine takes.
    patience_s = 60.0

    def search(own: int) -> None:
        while min(turns) < 20:
            store.reads.search_txs(A_KEY, ALL, SearchLimits(seconds=patience_s))
            turns[own] += 1

    with ThreadPoolExecutor(6) as pool:
        for searching in [pool.submit(search, own) for own in range(6)]:
            searching.result()
