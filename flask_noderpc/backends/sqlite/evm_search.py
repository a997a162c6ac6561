"""Searching the index of Ethereum transactions and logs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from ... import jsoncodec
from ...domain.ethereum import LogSearch
from ...domain.search import SearchLimits
from ..base.capabilities import EvmIndex
from ..base.reads import SearchedChain
from .evm_index import ADDRESS, ANY_LOG, TOPICS, TX, height_sql, key, last_place, place
from .process_handles import ProcessHandles

Connection = sqlite3.Connection

# How far hits are counted to find the rarest: first so far, then so many times further.
_FIRST_COUNT, _FURTHER, _LAST_COUNT = 64, 16, 1 << 20

# Alternatives come as one value, so that there is one statement for any number of them.
_OF = "key IN (SELECT value FROM json_each(?))"


class SQLiteEvmIndex(EvmIndex):
    """Heights from the table of Ethereum transactions and logs."""

    def __init__(self, open_store: Callable[[], ProcessHandles], chain: SearchedChain) -> None:
        super().__init__(chain)
        self._open = open_store

    def tx_heights(self, tx_hash: bytes, limits: SearchLimits) -> Sequence[int]:
        with self._open().readers.snapshot() as at:
            found = tx_heights(at, tx_hash)
            complete = is_complete(at)
        return found if complete else (*found, *super().tx_heights(tx_hash, limits))

    def log_heights(self, wanted: LogSearch, limits: SearchLimits) -> Sequence[int]:
        if wanted.low == wanted.high:
            return super().log_heights(wanted, limits)
        return self._open().search_pool.run(lambda at: log_heights(at, wanted), limits)


def tx_heights(at: Connection, tx_hash: bytes) -> tuple[int, ...]:
    """Return heights that may have a transaction of this hash, newest first."""
    found = at.execute(
        f"SELECT {height_sql('place')} FROM evm_hits WHERE key = ? ORDER BY place DESC",
        (key(TX, tx_hash),),
    )
    return tuple(height for (height,) in found)


def is_complete(at: Connection) -> bool:
    """Return true if every block is indexed."""
    return at.execute("SELECT 1 FROM evm_unindexed LIMIT 1").fetchone() is None


def log_heights(at: Connection, wanted: LogSearch) -> tuple[int, ...]:
    """Return heights that may have such logs, lowest first."""
    between = (place(wanted.low), last_place(wanted.high))
    hits, first, rest = _rarest_first(at, _terms(wanted), between)
    also = [_also(at, term, hits, between) for term in rest]
    found = at.execute(
        f"SELECT {height_sql('d.place')} FROM evm_hits AS d"
        f" WHERE d.{_OF} AND d.place BETWEEN ? AND ?{''.join(sql for sql, _ in also)}"
        " UNION SELECT height FROM evm_unindexed WHERE height BETWEEN ? AND ? ORDER BY 1",
        (
            _listed(first),
            *between,
            *(arg for _, args in also for arg in args),
            wanted.low,
            wanted.high,
        ),
    )
    return tuple(height for (height,) in found)


_Term = Sequence[int]
"""The keys of a demand, any of which meets it."""


def _terms(wanted: LogSearch) -> list[_Term]:
    kinds = ((ADDRESS, wanted.addresses), *zip(TOPICS, wanted.topics, strict=False))
    terms = [tuple(key(kind, value) for value in set(values)) for kind, values in kinds]
    return [term for term in terms if term] or [(key(ANY_LOG),)]


def _rarest_first(
    at: Connection, terms: Sequence[_Term], between: tuple[int, int]
) -> tuple[int, _Term, Sequence[_Term]]:
    """The demand with the fewest hits, how many these are, and the others."""
    most = _FIRST_COUNT
    counts = [0]
    while len(terms) > 1:
        counts = [_count(at, term, between, most) for term in terms]
        if min(counts) < most or most >= _LAST_COUNT:
            break
        most *= _FURTHER
    hits = min(counts)
    rarest = counts.index(hits)
    return hits, terms[rarest], (*terms[:rarest], *terms[rarest + 1 :])


def _also(
    at: Connection, term: _Term, hits: int, between: tuple[int, int]
) -> tuple[str, tuple[object, ...]]:
    """That the same log meets this demand too: looked up for each hit, or listed once.

    With many alternatives and many hits the list is the shorter way.
    """
    lookups = hits * len(term)
    if len(term) == 1 or _count(at, term, between, lookups) == lookups:
        sql = f" AND EXISTS (SELECT 1 FROM evm_hits WHERE {_OF} AND place = d.place)"
        return sql, (_listed(term),)
    sql = f" AND d.place IN (SELECT place FROM evm_hits WHERE {_OF} AND place BETWEEN ? AND ?)"
    return sql, (_listed(term), *between)


def _count(at: Connection, term: _Term, between: tuple[int, int], most: int) -> int:
    """Return the number of hits, counted up to a limit."""
    row = at.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM evm_hits WHERE {_OF}"
        " AND place BETWEEN ? AND ? LIMIT ?)",
        (_listed(term), *between, most),
    ).fetchone()
    return int(row[0])


def _listed(term: _Term) -> str:
    return jsoncodec.encode(term).decode()
