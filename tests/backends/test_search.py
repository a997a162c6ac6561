"""The index finds what a scan of every block finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc import CommittedBlock, MemoryBackend, SQLiteBackend
from flask_noderpc.backends.sqlite.index import sortable
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
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.until import PATIENCE

from .test_mempool import failing

ALL = Page(0, 1000)

numbers = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40)) | st.integers(
    -30, 30
).map(Decimal)


@given(numbers, numbers)
def test_numbers_sort_as_their_texts(one: Decimal, other: Decimal) -> None:
    assert (one < other) == (sortable(one) < sortable(other))
    assert (one == other) == (sortable(one) == sortable(other))


# Few keys and values, so that events share them.
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
# Of each block: its own events, and those of its transactions.
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
) -> Iterator[tuple[SQLiteBackend, MemoryBackend]]:
    with (
        TemporaryDirectory() as folder,
        closing(SQLiteBackend(Path(folder) / "chain.db")) as stored,
    ):
        stored.init_chain(maker.genesis, maker.state)
        stored.append_block(*blocks)
        yield stored, MemoryBackend(maker.genesis, blocks, state=maker.state)


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
                one = getattr(stored, backend_call)(search, window, SearchLimits(PATIENCE))
                other = getattr(scanned, backend_call)(search, window, SearchLimits(PATIENCE))
                assert one == other, search


@pytest.fixture
def long(store: SQLiteBackend, maker: ChainMaker) -> SQLiteBackend:
    """Two thousand transactions in twenty blocks."""
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
    long: SQLiteBackend, maker: ChainMaker, effort: SearchLimits, setting: str
) -> None:
    with pytest.raises(SearchTooCostly, match=setting):
        long.search_txs(CONTAINS, ALL, effort)

    # The thread and its connection are as good as before.
    assert long.search_txs(CONTAINS, ALL, SearchLimits(PATIENCE)).total > 500


def test_a_scan_respects_the_search_limits(maker: ChainMaker) -> None:
    backend = MemoryBackend(
        maker.genesis, [maker.block(b"a=1", b"b=2") for _ in range(9)], state=maker.state
    )
    for effort, setting in (
        (SearchLimits(rows=10), "NODERPC_SEARCH_TIMEOUT"),
        (SearchLimits(seconds=-1), "NODERPC_SEARCH_TIMEOUT"),
        (SearchLimits(size=10), "NODERPC_MAX_RESPONSE_BYTES"),
    ):
        with pytest.raises(SearchTooCostly, match=setting):
            backend.search_txs(Search(), ALL, effort)


def test_proofs_are_of_the_block(long: SQLiteBackend) -> None:
    found = long.search_txs(CONTAINS, Page(0, 100), SearchLimits(PATIENCE), prove=True)

    assert len(found.txs) == 100
    for record in found.txs:
        assert record.proof is not None
        assert record.proof.root_hash == long.block_meta(record.height).header.data_hash
        assert record.proof.tx == record.tx


def test_a_failure_after_a_success_is_not_found(
    store: SQLiteBackend, maker: ChainMaker
) -> None:
    blocks = [maker.block(b"a=1", b"b=2"), failing(maker.block(b"a=1"))]
    store.append_block(*blocks)
    scanned = MemoryBackend(maker.genesis, blocks, state=maker.state)

    for search, found in ((Search(), [b"a=1", b"b=2"]), (A_KEY, [b"a=1"])):
        answer = store.search_txs(search, ALL, SearchLimits(PATIENCE))
        assert [tx.tx for tx in answer.txs] == found
        assert {tx.height for tx in answer.txs} == {1}
        assert scanned.search_txs(search, ALL, SearchLimits(PATIENCE)) == answer


def test_an_empty_chain_has_nothing_to_find(store: SQLiteBackend) -> None:
    assert store.search_txs(Search(), ALL, SearchLimits(PATIENCE)) == FoundTxs(0, ())
    assert store.search_blocks(Search(), ALL, SearchLimits(PATIENCE)) == FoundHeights(0, ())


def test_a_busy_searcher_does_not_starve_others(
    store: SQLiteBackend, maker: ChainMaker
) -> None:
    store.append_block(maker.block(b"a=1"))
    turns = [0] * 6
    # Each waits for its turn; no machine is so slow.
    patience_s = 60.0

    def search(own: int) -> None:
        while min(turns) < 20:
            store.search_txs(A_KEY, ALL, SearchLimits(seconds=patience_s))
            turns[own] += 1

    with ThreadPoolExecutor(6) as pool:
        for searching in [pool.submit(search, own) for own in range(6)]:
            searching.result()
