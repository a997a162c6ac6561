"""Searching the index of Ethereum transactions and logs."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ... import json
from ...domain.ethereum import LogSearch
from .evm_index import ADDRESS, ANY_LOG, TOPICS, TX, height_sql, key, last_place, place

Connection = sqlite3.Connection

# How far hits are counted to find the rarest: first so far, then so many times further.
_FIRST_COUNT, _FURTHER, _LAST_COUNT = 64, 16, 1 << 20

# Alternatives come as one value, so that there is one statement for any number of them.
_OF = "key IN (SELECT value FROM json_each(?))"


def tx_heights(at: Connection, tx_hash: bytes) -> tuple[int, ...]:
    """Where a transaction of this hash may be, newest first."""
    found = at.execute(
        f"SELECT {height_sql('place')} FROM evm_hits WHERE key = ? ORDER BY place DESC",
        (key(TX, tx_hash),),
    )
    return tuple(height for (height,) in found)


def is_complete(at: Connection) -> bool:
    """Whether every block is indexed."""
    return at.execute("SELECT 1 FROM evm_unindexed LIMIT 1").fetchone() is None


def log_heights(at: Connection, wanted: LogSearch) -> tuple[int, ...]:
    """Where such logs may be, lowest first."""
    between = (place(wanted.low), last_place(wanted.high))
    first, *rest = _rarest_first(at, _terms(wanted), between)
    also = f" AND EXISTS (SELECT 1 FROM evm_hits WHERE {_OF} AND place = d.place)"
    found = at.execute(
        f"SELECT {height_sql('d.place')} FROM evm_hits AS d"
        f" WHERE d.{_OF} AND d.place BETWEEN ? AND ?{also * len(rest)}"
        " UNION SELECT height FROM evm_unindexed WHERE height BETWEEN ? AND ? ORDER BY 1",
        (first, *between, *rest, wanted.low, wanted.high),
    )
    return tuple(height for (height,) in found)


def _terms(wanted: LogSearch) -> list[str]:
    """The keys of each demand, any of which meets it."""
    kinds = ((ADDRESS, wanted.addresses), *zip(TOPICS, wanted.topics, strict=False))
    terms = [[key(kind, value) for value in values] for kind, values in kinds if values]
    return [json.encode(term).decode() for term in terms or [[key(ANY_LOG)]]]


def _rarest_first(
    at: Connection, terms: Sequence[str], between: tuple[int, int]
) -> Sequence[str]:
    """The demands, that with the fewest hits at its head: the others are asked of each."""
    most = _FIRST_COUNT
    while len(terms) > 1:
        counts = {term: _count(at, term, between, most) for term in terms}
        if min(counts.values()) < most or most >= _LAST_COUNT:
            return sorted(terms, key=counts.__getitem__)
        most *= _FURTHER
    return terms


def _count(at: Connection, term: str, between: tuple[int, int], most: int) -> int:
    """How many hits there are, counted up to a bound."""
    row = at.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM evm_hits WHERE {_OF}"
        " AND place BETWEEN ? AND ? LIMIT ?)",
        (term, *between, most),
    ).fetchone()
    return int(row[0])
