"""Indexes that features declare, each in a table ``NAME_hits`` with one row per hit.

A hit is the key of a value in a block, such as an address, and the place where the value
occurs: the height and a number in the block, packed into one integer. Keys have 48 bits, to
make small rows. A separate table of values, as the event index has, would take more space,
because most values occur only a few times.

Blocks that were stored while the feature or its packages were missing are listed in
``NAME_unindexed``, and count as hits for every key. They are indexed when the store is next
opened with the feature installed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from ...domain.abci import ExecTxResult
from ...feature import HitIndex, features, load
from . import blocks
from .connection import Connection
from .packed.blocks import LAST_POSITION, POSITION_BITS

log = logging.getLogger("flask_noderpc.store")

_SLICE = 200


class BlockTxs(NamedTuple):
    """Transactions of a block with their results."""

    height: int
    txs: Sequence[bytes]
    results: Sequence[ExecTxResult]


def place(height: int, number: int = 0) -> int:
    """Return the place of a hit: its height and its number in the block, packed into one
    integer.

    All numbers above ``LAST_POSITION`` share one place, so a search may also return a block
    that does not match.
    """
    return min(height, blocks.LAST_HEIGHT) << POSITION_BITS | min(number, LAST_POSITION)


def last_place(height: int) -> int:
    """Return the last place in a block."""
    return place(height, LAST_POSITION)


@cache
def _declared() -> dict[str, HitIndex]:
    return {name: each for feature in features() for name, each in feature.hit_indexes.items()}


@cache
def _reader(name: str) -> Callable[..., Iterable[tuple[int, int]]] | None:
    """Return the feature's function that computes hits; ``None`` if the feature or its
    packages are missing."""
    declared = _declared().get(name)
    if declared is None:
        return None
    try:
        found: Callable[..., Iterable[tuple[int, int]]] = load(declared.hits)
    except ModuleNotFoundError:
        return None
    return found


def has_hits(result: ExecTxResult) -> bool:
    """Return true if a transaction may have hits in any index."""
    types = _event_types()
    return any(event.type in types for event in result.events)


@cache
def _event_types() -> frozenset[str]:
    return frozenset(kind for each in _declared().values() for kind in each.event_types)


# Writing.


def new_indexes(at: Connection) -> set[str]:
    """Return the names of declared indexes that the store has no tables for."""
    return _declared().keys() - set(at.engine.hit_indexes(at))


def make_tables(at: Connection) -> None:
    """Create the tables of indexes that are new to the store; all stored blocks count as not
    indexed."""
    for name in new_indexes(at):
        at.engine.make_hit_tables(at, name)
        at.execute(f"INSERT INTO {name}_unindexed SELECT height FROM {at.engine.heights}")


def write(at: Connection, found: Sequence[BlockTxs]) -> None:
    """Add blocks to all indexes."""
    for name in at.engine.hit_indexes(at):
        for block in found:
            _write(at, name, block)


def _write(at: Connection, name: str, block: BlockTxs) -> None:
    relevant = _relevant(name, block)
    if not relevant:
        return
    if _reader(name) is None:
        at.execute(
            f"INSERT INTO {name}_unindexed (height) VALUES (?) ON CONFLICT DO NOTHING",
            (block.height,),
        )
        return
    at.executemany(
        f"INSERT INTO {name}_hits (key, place) VALUES (?, ?) ON CONFLICT DO NOTHING",
        _rows(name, block),
    )


def _relevant(name: str, block: BlockTxs) -> list[tuple[bytes, ExecTxResult]]:
    """Return the transactions that may have hits, each with its result."""
    declared, pairs = _declared().get(name), zip(block.txs, block.results, strict=False)
    if declared is None:
        return list(pairs)
    types = declared.event_types
    return [pair for pair in pairs if any(event.type in types for event in pair[1].events)]


def _rows(name: str, block: BlockTxs) -> list[tuple[int, int]]:
    """Return the pairs of key and place of a block's hits; empty if the feature is missing."""
    relevant, hits = _relevant(name, block), _reader(name)
    if not relevant or hits is None:
        return []
    return sorted({(key, place(block.height, number)) for key, number in hits(relevant)})


def forget(at: Connection, height: int) -> None:
    """Remove a block from the indexes; to find its rows, the block's hits are computed again.

    If hits can't be computed, their rows remain, and a search skips them as the block is
    missing.
    """
    for name in at.engine.hit_indexes(at):
        if at.execute(f"SELECT 1 FROM {name}_hits LIMIT 1").fetchone() is None:
            continue
        found = _rows(name, BlockTxs(height, *blocks.txs_with_results(at, height)))
        at.executemany(f"DELETE FROM {name}_hits WHERE key = ? AND place = ?", found)


def forget_heights(at: Connection, low: int, high: int) -> None:
    """Remove the entries of a range of heights from ``NAME_unindexed``."""
    for name in at.engine.hit_indexes(at):
        at.execute(f"DELETE FROM {name}_unindexed WHERE height BETWEEN ? AND ?", (low, high))


def forget_above(at: Connection, height: int) -> None:
    """Remove all blocks above a height from the indexes."""
    for name in at.engine.hit_indexes(at):
        at.execute(f"DELETE FROM {name}_hits WHERE place > ?", (last_place(height),))
        at.execute(f"DELETE FROM {name}_unindexed WHERE height > ?", (height,))


# Blocks that were stored without the feature.


def announce(at: Connection) -> None:
    """Log how many blocks are about to be indexed."""
    for name in _readable(at):
        (count,) = at.execute(f"SELECT count(*) FROM {name}_unindexed").fetchone()
        log.warning("building the index %s from %s blocks, which is done once", name, count)


def has_unindexed(at: Connection) -> bool:
    """Return true if there are unindexed blocks whose feature is installed now."""
    return bool(_readable(at))


def index_some(at: Connection) -> bool:
    """Index the next few unindexed blocks; return false when all are indexed."""
    names = _readable(at)
    for name in names:
        found = at.execute(
            f"SELECT height FROM {name}_unindexed ORDER BY height LIMIT ?", (_SLICE,)
        ).fetchall()
        for (height,) in found:
            _write(at, name, BlockTxs(height, *blocks.txs_with_results(at, height)))
            at.execute(f"DELETE FROM {name}_unindexed WHERE height = ?", (height,))
    return bool(names)


def _readable(at: Connection) -> list[str]:
    return [
        name
        for name in at.engine.hit_indexes(at)
        # Load the reader last: it takes time, and few stores have unindexed blocks.
        if not is_complete(at, name) and _reader(name)
    ]


# Reading.


def is_complete(at: Connection, name: str) -> bool:
    """Return true if an index contains every block."""
    return at.execute(f"SELECT 1 FROM {name}_unindexed LIMIT 1").fetchone() is None


def indexes_lacking(at: Connection, block: BlockTxs) -> list[str]:
    """Return the names of indexes that lack a hit of a block; indexes of missing features are
    skipped."""
    return [name for name in at.engine.hit_indexes(at) if _lacks_hit(at, name, block)]


def _lacks_hit(at: Connection, name: str, block: BlockTxs) -> bool:
    expected = _rows(name, block)
    if not expected or _has(at, f"{name}_unindexed WHERE height = ?", (block.height,)):
        return False
    return not all(
        _has(at, f"{name}_hits WHERE key = ? AND place = ?", row) for row in expected
    )


def _has(at: Connection, table: str, args: Sequence[Any]) -> bool:
    return at.execute(f"SELECT 1 FROM {table}", args).fetchone() is not None


def unreadable_indexes(at: Connection) -> tuple[str, ...]:
    """Return the names of indexes that have rows, but whose feature is not installed."""
    return tuple(
        name
        for name in at.engine.hit_indexes(at)
        if _reader(name) is None
        and (not is_complete(at, name) or _has(at, f"{name}_hits LIMIT 1", ()))
    )


def newest_heights(at: Connection, name: str, key: int) -> tuple[int, ...]:
    """Return the heights of blocks that have a hit for a key, newest first."""
    found = at.execute(
        f"SELECT place >> {POSITION_BITS} FROM {name}_hits WHERE key = ? ORDER BY place DESC",
        (key,),
    )
    return tuple(height for (height,) in found)


Term = Sequence[int]
"""Keys of a search term, any of which matches."""

# To find the term with the fewest hits, count up to 64 hits of each term, and up to 16 times
# more in each further round.
_FIRST_COUNT, _FURTHER, _LAST_COUNT = 64, 16, 1 << 20


def heights(
    at: Connection, name: str, terms: Sequence[Term], low: int, high: int
) -> tuple[int, ...]:
    """Return the heights of blocks that may match: one place in the block has a hit for each
    term, or the block is not indexed; lowest first."""
    between = (place(low), last_place(high))
    hits, first, rest = _rarest_first(at, name, terms, between)
    also = [_same_place_condition(at, name, term, hits, between) for term in rest]
    found = at.execute(
        f"SELECT d.place >> {POSITION_BITS} FROM {name}_hits AS d"
        f" WHERE {at.engine.is_one_of('d.key')} AND d.place BETWEEN ? AND ?"
        f"{''.join(sql for sql, _ in also)}"
        f" UNION SELECT height FROM {name}_unindexed WHERE height BETWEEN ? AND ? ORDER BY 1",
        (
            at.engine.integers_param(first),
            *between,
            *(arg for _, args in also for arg in args),
            low,
            high,
        ),
    )
    return tuple(height for (height,) in found)


def _rarest_first(
    at: Connection, name: str, terms: Sequence[Term], between: tuple[int, int]
) -> tuple[int, Term, Sequence[Term]]:
    """Find the term with the fewest hits; return the number of hits, this term, and the other
    terms."""
    limit = _FIRST_COUNT
    counts = [0]
    while len(terms) > 1:
        counts = [_count(at, name, term, between, limit) for term in terms]
        if min(counts) < limit or limit >= _LAST_COUNT:
            break
        limit *= _FURTHER
    hits = min(counts)
    rarest = counts.index(hits)
    return hits, terms[rarest], (*terms[:rarest], *terms[rarest + 1 :])


def _same_place_condition(
    at: Connection, name: str, term: Term, hits: int, between: tuple[int, int]
) -> tuple[str, tuple[object, ...]]:
    """Return an SQL condition, that the same place also has a hit for this term, and its
    parameters.

    The condition looks up each of ``hits`` places, or lists the term's places once, which is
    faster for many keys and many hits.
    """
    lookups, is_one = hits * len(term), at.engine.is_one_of("key")
    if len(term) == 1 or _count(at, name, term, between, lookups) == lookups:
        sql = f" AND EXISTS (SELECT 1 FROM {name}_hits WHERE {is_one} AND place = d.place)"
        return sql, (at.engine.integers_param(term),)
    sql = (
        f" AND d.place IN (SELECT place FROM {name}_hits WHERE {is_one}"
        " AND place BETWEEN ? AND ?)"
    )
    return sql, (at.engine.integers_param(term), *between)


def _count(at: Connection, name: str, term: Term, between: tuple[int, int], limit: int) -> int:
    """Return the number of a term's hits in a range of places, counted up to ``limit``."""
    row = at.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM {name}_hits WHERE {at.engine.is_one_of('key')}"
        " AND place BETWEEN ? AND ? LIMIT ?) AS counted",
        (at.engine.integers_param(term), *between, limit),
    ).fetchone()
    return int(row[0])
