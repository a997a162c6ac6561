"""Tests of queries as searches: the rules of CometBFT 0.38's indexer about heights and
hashes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from flask_noderpc.domain.search import HIGHEST, Bound, Search, Term
from flask_noderpc.errors import ValueNotAllowed
from flask_noderpc.events.query import parse
from flask_noderpc.events.search import block_search, hash_in, tx_search


def txs(text: str) -> Search | None:
    return tx_search(parse(text))


def blocks(text: str) -> Search | None:
    return block_search(parse(text))


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("tx.height = 5", 5, 5),
        ("tx.height > 5", 6, HIGHEST),
        ("tx.height >= 5 AND tx.height < 9", 5, 8),
        ("tx.height > 1.5 AND tx.height <= 3.5", 2, 3),
        ("tx.height >= 1.5 AND tx.height < 3.5", 2, 3),
        ("tx.height > 3 AND tx.height > 7", 8, HIGHEST),
        ("tx.height EXISTS", 0, HIGHEST),
        # The first equality counts, and none counts together with a range.
        ("tx.height = 5 AND tx.height = 6", 5, 5),
        ("tx.height = 5 AND tx.height > 6", 7, HIGHEST),
        ("tx.height > 6 AND tx.height = 5", 7, HIGHEST),
    ],
)
def test_heights_of_transactions(text: str, low: int, high: int) -> None:
    assert txs(text) == Search((), low, high)
    if "EXISTS" not in text:
        assert blocks(text.replace("tx.", "block.")) == Search((), low, high)


@pytest.mark.parametrize(
    "text",
    [
        "tx.height > 5 AND tx.height < 6",
        "tx.height = 5.5",
        "tx.height = 99999999999999999999",
        "tx.height = '5'",
        "tx.height > TIME 2020-01-01T00:00:00Z",
        "app.key > DATE 2020-01-01",
    ],
)
def test_contradictory_transaction_queries_have_no_plan(text: str) -> None:
    assert txs(text) is None


@pytest.mark.parametrize("text", ["block.height EXISTS", "block.height CONTAINS '5'"])
def test_contradictory_block_queries_have_no_plan(text: str) -> None:
    assert blocks(text) is None


def test_a_quoted_height_is_found_among_blocks() -> None:
    assert blocks("block.height = '5'") == Search((), 5, 5)


def test_conditions_become_terms() -> None:
    assert txs("a.b = 'x' AND a.c = 5 AND a.d CONTAINS 'y' AND a.e EXISTS") == Search(
        (
            Term("a.b", equals="x"),
            Term("a.c", equals="5"),
            Term("a.d", contains="y"),
            Term("a.e"),
        )
    )


def test_both_ends_of_a_range_are_about_one_value() -> None:
    found = txs("a.b > 5 AND a.c < 1 AND a.b <= 10.5")

    assert found == Search(
        (
            Term("a.b", within=(Bound(">", Decimal(5)), Bound("<=", Decimal("10.5")))),
            Term("a.c", within=(Bound("<", Decimal(1)),)),
        )
    )


def test_a_hash_is_enough() -> None:
    assert hash_in(parse("a.b = 'x' AND tx.hash = 'aBcD'")) == b"\xab\xcd"
    assert hash_in(parse("a.b = 'x'")) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tx.hash = 'zz'", "encoding/hex: invalid byte: U\\+007A 'z'"),
        ("tx.hash = 'abc'", "encoding/hex: odd length hex string"),
        ("tx.hash EXISTS", "a whole hash"),
        ("tx.hash CONTAINS 'ab'", "a whole hash"),
    ],
)
def test_a_hash_that_is_none(text: str, reason: str) -> None:
    with pytest.raises(ValueNotAllowed, match=reason):
        hash_in(parse(text))


def test_containing_a_height_is_refused() -> None:
    with pytest.raises(ValueNotAllowed, match=r"tx\.height: expected an operator"):
        txs("tx.height CONTAINS '5'")
