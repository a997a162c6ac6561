"""Tests of values that PostgreSQL's text can't hold, or that are too long for its indexes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from flask_noderpc.backends.base.application import BlockExecution, BlockRequest
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.domain.abci import Event, EventAttribute
from flask_noderpc.domain.search import Bound, Page, Search, SearchLimits, Term
from flask_noderpc.errors import StoreError
from flask_noderpc.postgres.backend import PostgresBackend
from flask_noderpc.testing.chains import ChainMaker

LONG = "x" * 5_000
VALUES = ("a\0b", "\0", LONG, LONG + "y", "Ä€𝄞", "", "9" * 300, "12")


class Talkative(KVStore):
    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        made = super().finalize_block(block)
        attributes = tuple(EventAttribute(b"k", value.encode(), True) for value in VALUES)
        keys = tuple(EventAttribute(key.encode(), b"v", True) for key in ("z\0z", LONG))
        return BlockExecution(
            made.tx_results,
            made.app_hash,
            end_events=(*(Event("e", (each,)) for each in attributes), Event("e", keys)),
            changes={**made.changes, LONG.encode(): b"long", b"\0": b"zero"},
        )


@pytest.fixture
def filled(open_host: object) -> PostgresBackend:
    maker = ChainMaker((10,), application=Talkative)
    assert callable(open_host)
    store: PostgresBackend = open_host()
    store.init_chain(maker.genesis, maker.state)
    store.append_block(maker.block(b"a=1"), maker.block(b"a=2"))
    return store


def heights(store: PostgresBackend, term: Term) -> list[int]:
    found = store.reads.search_blocks(Search((term,)), Page(0, 10), SearchLimits())
    return list(found.heights)


@pytest.mark.parametrize("value", VALUES)
def test_any_value_is_found(filled: PostgresBackend, value: str) -> None:
    assert heights(filled, Term("e.k", equals=value)) == [1, 2]
    assert heights(filled, Term("e.k", equals=f"{value}?")) == []


def test_the_size_includes_partitions_and_indexes(filled: PostgresBackend) -> None:
    """The tables of an empty store have more than a page each."""
    assert filled.size_bytes() > 30 * 8192


def test_parts_of_values_are_found(filled: PostgresBackend) -> None:
    assert heights(filled, Term("e.k", contains="\0b")) == [1, 2]
    assert heights(filled, Term("e.k", contains="€𝄞")) == [1, 2]
    assert heights(filled, Term("e.k", contains="%")) == []


def test_any_key_is_found(filled: PostgresBackend) -> None:
    for key in ("e.z\0z", f"e.{LONG}"):
        assert heights(filled, Term(key)) == [1, 2]


def test_numbers_of_any_length_are_compared(filled: PostgresBackend) -> None:
    long = Decimal("9" * 300)
    for operator, bound, found in (
        (">", Decimal(12), [1, 2]),
        (">=", long, [1, 2]),
        (">", long, []),
        ("<", Decimal(12), []),
        ("<=", Decimal(12), [1, 2]),
    ):
        assert heights(filled, Term("e.k", within=(Bound(operator, bound),))) == found


def test_any_key_of_the_state_is_read(filled: PostgresBackend) -> None:
    assert filled.app_state.get(LONG.encode()) == b"long"
    assert filled.app_state.get(b"\0") == b"zero"
    assert filled.app_state.get(LONG.encode() + b"x") is None


def test_a_chain_of_such_values_verifies_and_can_be_pruned(filled: PostgresBackend) -> None:
    assert filled.verify() == 2
    assert filled.prune(1) == 1
    assert heights(filled, Term("e.k", equals=LONG)) == [2]


def test_a_number_beyond_64_bits_is_refused(filled: PostgresBackend) -> None:
    with pytest.raises(StoreError, match="at most 64 bits"):
        filled._open().readers.one("SELECT ?", 1 << 63)
