"""Tests that searches find what a list of all events contains, after any additions and
removals."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc import CommittedBlock, MemoryChain
from flask_noderpc.backends.base.application import BlockExecution, BlockRequest
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.base.new_blocks import OlderBlock
from flask_noderpc.backends.sql import backfill, index, index_steps, search
from flask_noderpc.backends.sql import store as sql_store
from flask_noderpc.backends.sql.block_writes import precomputed_apart
from flask_noderpc.backends.sql.store import ChainStore
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.domain.abci import Event, EventAttribute
from flask_noderpc.domain.search import HIGHEST, Bound, Page, Search, SearchLimits, Term
from flask_noderpc.errors import NotSupported
from flask_noderpc.event_aliases import searchable
from flask_noderpc.testing.chains import ChainMaker
from tests.faults.processes import is_long
from tests.helpers.stores import make_store
from tests.helpers.until import PATIENCE

T = TypeVar("T")
LIMITS = SearchLimits(PATIENCE)
BLOCKS = 9

# Few types and keys, so that several events have them; a dot in either part makes the same key.
TYPES = ("a", "a.b", "ethereum_tx", "")
KEYS = (b"k", b"b.k", b"", b"k'\"", b"\x00k", "ключ".encode(), b"\xff")
VALUES = (
    *(b"", b"1", b" 2 ", b"2.0", b"+2", b"-3", b"-0", b".5", b"5.", b"1e1", b"1E+2", b"1" * 30),
    *(b"8atom", b"1e", b"0x10", b"x1", b"x", b"'", b'"\\', b"\x00", b"a\x00b", b"\n", b"%"),
    *(b"2013-05-03", b"2013-05-03T14:45:00Z", "日本".encode(), b"\xff", b"\xef\xbf\xbd"),
    b"long" * 500,
)

attributes = st.builds(
    EventAttribute,
    st.sampled_from(KEYS),
    st.sampled_from(VALUES),
    st.booleans() | st.just(True),
)
events = st.lists(
    st.builds(Event, st.sampled_from(TYPES), st.lists(attributes, max_size=3).map(tuple)),
    max_size=2,
).map(tuple)


class PlannedTx(NamedTuple):
    """A planned transaction, with its result's code and its events."""

    tx: bytes
    code: int
    events: tuple[Event, ...]


class Planned(NamedTuple):
    """A block's own events, and its transactions."""

    events: tuple[Event, ...]
    txs: tuple[PlannedTx, ...]


txs = st.builds(PlannedTx, st.sampled_from((b"a=1", b"b=2", b"c=3")), st.integers(0, 1), events)
plans = st.builds(Planned, events, st.lists(txs, max_size=3).map(tuple))


def blocks_of(plan: Sequence[Planned]) -> tuple[ChainMaker, list[CommittedBlock]]:
    """Return blocks that are executed as planned."""

    class Application(KVStore):
        def finalize_block(self, block: BlockRequest) -> BlockExecution:
            own = plan[block.height - 1]
            made = super().finalize_block(block)
            results = tuple(
                replace(result, code=tx.code, events=tx.events)
                for result, tx in zip(made.tx_results, own.txs, strict=True)
            )
            return replace(made, tx_results=results, end_events=own.events)

    maker = ChainMaker(application=Application)
    return maker, [maker.block(*(tx.tx for tx in each.txs)) for each in plan]


@dataclass
class Stored:
    """A block of the plan and what the store should find of it; a set of positions is
    indexed."""

    plan: Planned
    has_results: bool
    is_indexed: bool
    positions: set[int]


class Model:
    """A store, and a list of everything that it should contain."""

    def __init__(
        self, store: ChainStore, plan: Sequence[Planned], trusted: int, in_bulk: bool
    ) -> None:
        self.store, self.plan, self.trusted = store, list(plan), trusted
        self.in_bulk = in_bulk
        self.stored: dict[int, Stored] = {}
        self._make()
        whole = ChainBackend(
            MemoryChain(self.maker.genesis, self.blocks, state=self.maker.state)
        )
        self.sets = [whole.reads.validators(height) for height in range(1, len(plan) + 2)]
        if not trusted:
            store.init_chain(self.maker.genesis, self.maker.state)
            return
        first, second, third = self.sets[trusted - 1 : trusted + 2]
        store.init_at(
            whole.reads.chain_id(),
            1,
            whole.reads.block_meta(trusted).header,
            self.blocks[trusted - 1].commit,
            (first, second, third),
            whole.reads.consensus_params(trusted + 1),
        )

    def _make(self) -> None:
        self.maker, self.blocks = blocks_of(self.plan)

    def append(self, count: int) -> None:
        begin = max(self.stored, default=self.trusted)
        self.store.append_block(*self.blocks[begin : begin + count])
        for height in range(begin + 1, min(begin + count, len(self.blocks)) + 1):
            self._add(height, has_results=True, is_indexed=True)

    def fill(self, count: int, has_results: bool, is_indexed: bool) -> None:
        high = min(self.stored, default=self.trusted + 1) - 1
        heights = range(high, max(0, high - count), -1)
        items = [self._older(h, has_results, is_indexed) for h in heights]
        self.store.backfill(*items, in_bulk=self.in_bulk)
        for height in heights:
            self._add(height, has_results, is_indexed)

    def _older(self, height: int, has_results: bool, is_indexed: bool) -> OlderBlock:
        item = self.blocks[height - 1]
        results, found = item.results if has_results else None, None
        if self.in_bulk and results is not None:
            # An import receives them in this form from a decoding process.
            results, found = precomputed_apart(item.block, results)
        return OlderBlock(
            item.block, results, self.sets[height - 1], self.maker.head.params,
            is_indexed=is_indexed, precomputed=found,
        )  # fmt: skip

    def _add(self, height: int, has_results: bool, is_indexed: bool) -> None:
        plan = self.plan[height - 1]
        found = {
            position
            for position, tx in enumerate(plan.txs)
            if has_results
            and is_indexed
            and (tx.code == 0 or not self._has_succeeded(tx, height, position))
        }
        self.stored[height] = Stored(plan, has_results, is_indexed, found)
        for above, other in self.stored.items():
            if above > height and has_results:
                other.positions -= {
                    position
                    for position in other.positions
                    for tx in [other.plan.txs[position]]
                    if tx.code and any(each.tx == tx.tx and not each.code for each in plan.txs)
                }

    def _has_succeeded(self, tx: PlannedTx, height: int, position: int) -> bool:
        earlier = [each for each in self.plan[height - 1].txs[:position] if not each.code]
        for below, other in self.stored.items():
            if below < height and other.has_results:
                earlier += [each for each in other.plan.txs if not each.code]
        return tx.tx in {each.tx for each in earlier}

    def prune(self, retain: int) -> None:
        if not self.stored:
            return
        self.store.prune(retain)
        base = max(self.stored) - retain + 1
        self.stored = {height: each for height, each in self.stored.items() if height >= base}

    def rewind(self, count: int, following: Sequence[Planned]) -> None:
        """Remove the last blocks, and append others."""
        if not self.stored:
            return
        height = max(self.stored) - count
        lease = self.store.acquire_lease("test", 1e6)
        assert lease is not None
        try:
            self.store.rewind(height, {}, lease)
        except NotSupported:
            return
        self.stored = {at: each for at, each in self.stored.items() if at <= height}
        if height:
            self.plan[height:] = following
            self._make()

    def replace(self, events: tuple[Event, ...]) -> None:
        """Replace the events of the head."""
        height = max(self.stored, default=0)
        if height <= self.trusted:
            return
        plan = self.plan[height - 1]
        self.plan[height - 1] = Planned(
            events, tuple(tx._replace(events=events) for tx in plan.txs)
        )
        self._make()
        self.store.replace_head(self.blocks[height - 1])
        self._add(height, has_results=True, is_indexed=True)

    def places(self, asked: Search) -> list[tuple[int, int]]:
        return [
            (height, position)
            for height, each in sorted(self.stored.items())
            if asked.low <= height <= asked.high
            for position in sorted(each.positions)
            if asked.matches(searchable(each.plan.txs[position].events))
        ]

    def heights(self, asked: Search) -> list[int]:
        return [
            height
            for height, each in sorted(self.stored.items())
            if asked.low <= height <= asked.high
            if not asked.terms or (each.has_results and each.is_indexed)
            if asked.matches(each.plan.events)
        ]

    def check(self, asked: Search, page: Page) -> None:
        found = self.store.reads.search_txs(asked, page, LIMITS)
        expected = self.places(asked)
        assert found.total == len(expected)
        assert [(tx.height, tx.index) for tx in found.txs] == cut(expected, page)
        for tx in found.txs:
            planned = self.stored[tx.height].plan.txs[tx.index]
            assert (tx.tx, tx.result.code, tx.result.events) == planned
        heights = self.store.reads.search_blocks(asked, page, LIMITS)
        among = self.heights(asked)
        assert (heights.total, list(heights.heights)) == (len(among), cut(among, page))


def cut(found: list[T], page: Page) -> list[T]:
    ordered = found[::-1] if page.newest_first else found
    return ordered[page.offset : page.offset + page.limit]


names = st.sampled_from(
    ("a.k", "a.b.k", "ethereum_tx.k", "a.k'\"", "a.\x00k", "a.ключ", "a.\ufffd")
)
texts = st.sampled_from([value.decode(errors="replace") for value in VALUES])
bounds = st.builds(
    Bound,
    st.sampled_from(("<", "<=", ">", ">=")),
    st.sampled_from(("-3", "0", "0.5", "2", "10", "1" * 30)).map(Decimal),
)
terms = (
    st.builds(Term, names, equals=texts)
    | st.builds(
        Term, names, contains=st.sampled_from(("", "1", "x", "\x00", "本", "long", "'"))
    )
    | st.builds(Term, names, within=st.lists(bounds, min_size=1, max_size=2).map(tuple))
    | st.builds(Term, names)
)
searches = st.builds(
    Search,
    st.lists(terms, max_size=3, unique=True).map(tuple),
    st.integers(0, BLOCKS),
    st.integers(1, BLOCKS) | st.just(HIGHEST),
) | st.builds(Search, st.lists(terms, max_size=1).map(tuple))
pages = st.builds(Page, st.integers(0, 4), st.integers(1, 4), st.booleans())
asked = st.lists(st.tuples(searches, pages), min_size=1, max_size=4)

Steps = list[tuple[tuple[Any, ...], list[tuple[Search, Page]]]]

counts = st.integers(1, 4)
changes = (
    st.tuples(st.just("append"), counts)
    | st.tuples(st.just("fill"), counts, st.booleans(), st.booleans())
    | st.tuples(st.just("fill"), counts, st.just(True), st.just(True))
    | st.tuples(st.just("prune"), counts)
    | st.tuples(st.just("replace"), events)
    | st.tuples(st.just("rewind"), counts, st.lists(plans, min_size=BLOCKS, max_size=BLOCKS))
)


@pytest.mark.parametrize(
    ("few", "digests", "at_once"), [(0, 1, 1), (2, 2, 10), (1000, 1 << 48, 500)]
)
@settings(max_examples=400 if is_long() else 25)
@given(
    st.lists(plans, min_size=BLOCKS, max_size=BLOCKS),
    st.sampled_from((0, 0, 3, 5)),
    st.booleans(),
    st.lists(st.tuples(changes, asked), min_size=1, max_size=8),
)
def test_searches_find_what_was_stored(
    few: int,
    digests: int,
    at_once: int,
    plan: list[Planned],
    trusted: int,
    in_bulk: bool,
    steps: Steps,
) -> None:
    """Vary the number of digests, so that different values share one, the limit of places, and
    the number of attributes that are indexed at once."""
    real = index.digest
    with (
        TemporaryDirectory() as folder,
        closing(make_store(Path(folder) / "chain.db")) as store,
        patch.object(index, "digest", lambda value: real(value) % digests),
        patch.object(search, "_FEW_PLACES", few),
        patch.object(index_steps, "ATTRIBUTES_PER_STEP", at_once),
        patch.object(sql_store, "GENTLE", backfill.Pace(-1.0, 800, at_once)),
    ):
        model = Model(store, plan, trusted, in_bulk)
        for (change, *args), questions in steps:
            if change != "fill" or trusted:
                getattr(model, change)(*args)
            for each in questions:
                model.check(*each)
        if model.stored:
            assert store.verify() == len(model.stored)
