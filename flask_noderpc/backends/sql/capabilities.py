"""Capabilities of SQL stores: evidence pool, EVM index, and filters that survive."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...domain.block import Evidence
from ...domain.search import FilterKind, PolledFilter, SearchLimits
from ...domain.time import SECOND
from ...errors import FilterNotFound
from ...ethereum.domain.records import LogSearch
from ...ethereum.index import ADDRESS, ANY_LOG, TOPICS, TX, height_sql, key, last_place, place
from ...protocol.comet.hashes import evidence_hash_of
from ..base.application import Application
from ..base.capabilities import EvmIndex
from ..base.evidence import EvidencePool, check_evidence
from ..base.filters import DEADLINE, Clock, Filters, filters_to_evict
from ..base.reads import ChainReads, SearchedChain
from . import evidence
from .connection import Connection
from .opened_store import ProcessHandles


class SQLEvidencePool(EvidencePool):
    """Pending evidence in a table."""

    def __init__(
        self,
        open_store: Callable[[], ProcessHandles],
        application: Callable[[], Application],
        chain: ChainReads,
    ) -> None:
        self._open, self._app, self._chain = open_store, application, chain

    def submit(self, piece: Evidence) -> bytes:
        self._app()
        files, evidence_hash = self._open(), evidence_hash_of(piece)
        with files.readers.snapshot() as at:
            known = evidence.is_known(at, evidence_hash)
        if not known:
            check_evidence(self._chain, piece)
            files.mempool_writer.run(lambda at: evidence.add(at, piece))
            files.changes.notify()
        return evidence_hash


# How far hits are counted to find the rarest: first so far, then so many times further.
_FIRST_COUNT, _FURTHER, _LAST_COUNT = 64, 16, 1 << 20


class SQLEvmIndex(EvmIndex):
    """Heights from the table of Ethereum transactions and logs."""

    def __init__(self, open_store: Callable[[], ProcessHandles], chain: SearchedChain) -> None:
        super().__init__(chain)
        self._open = open_store

    def tx_heights(self, tx_hash: bytes, limits: SearchLimits) -> Sequence[int]:
        found, complete = self._open().read(
            lambda at: (tx_heights(at, tx_hash), is_complete(at))
        )
        return found if complete else (*found, *super().tx_heights(tx_hash, limits))

    def log_heights(self, search: LogSearch, limits: SearchLimits) -> Sequence[int]:
        if search.low == search.high:
            return super().log_heights(search, limits)
        return self._open().search_pool.run(
            lambda at: log_heights(at, search), limits, search.high
        )


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


def log_heights(at: Connection, search: LogSearch) -> tuple[int, ...]:
    """Return heights that may have such logs, lowest first."""
    between = (place(search.low), last_place(search.high))
    hits, first, rest = _rarest_first(at, _terms(search), between)
    also = [_also(at, term, hits, between) for term in rest]
    found = at.execute(
        f"SELECT {height_sql('d.place')} FROM evm_hits AS d"
        f" WHERE {at.engine.is_one_of('d.key')} AND d.place BETWEEN ? AND ?"
        f"{''.join(sql for sql, _ in also)}"
        " UNION SELECT height FROM evm_unindexed WHERE height BETWEEN ? AND ? ORDER BY 1",
        (
            at.engine.numbers(first),
            *between,
            *(arg for _, args in also for arg in args),
            search.low,
            search.high,
        ),
    )
    return tuple(height for (height,) in found)


_Term = Sequence[int]
"""The keys of a demand, any of which meets it."""


def _terms(search: LogSearch) -> list[_Term]:
    kinds = ((ADDRESS, search.addresses), *zip(TOPICS, search.topics, strict=False))
    terms = [tuple(key(kind, value) for value in set(values)) for kind, values in kinds]
    return [term for term in terms if term] or [(key(ANY_LOG),)]


def _rarest_first(
    at: Connection, terms: Sequence[_Term], between: tuple[int, int]
) -> tuple[int, _Term, Sequence[_Term]]:
    """Return the number of hits of the rarest term, that term, and the others."""
    limit = _FIRST_COUNT
    counts = [0]
    while len(terms) > 1:
        counts = [_count(at, term, between, limit) for term in terms]
        if min(counts) < limit or limit >= _LAST_COUNT:
            break
        limit *= _FURTHER
    hits = min(counts)
    rarest = counts.index(hits)
    return hits, terms[rarest], (*terms[:rarest], *terms[rarest + 1 :])


def _also(
    at: Connection, term: _Term, hits: int, between: tuple[int, int]
) -> tuple[str, tuple[object, ...]]:
    """That the same log meets this demand too: looked up for each hit, or listed once.

    With many alternatives and many hits the list is the shorter way.
    """
    lookups, is_one = hits * len(term), at.engine.is_one_of("key")
    if len(term) == 1 or _count(at, term, between, lookups) == lookups:
        sql = f" AND EXISTS (SELECT 1 FROM evm_hits WHERE {is_one} AND place = d.place)"
        return sql, (at.engine.numbers(term),)
    sql = (
        f" AND d.place IN (SELECT place FROM evm_hits WHERE {is_one} AND place BETWEEN ? AND ?)"
    )
    return sql, (at.engine.numbers(term), *between)


def _count(at: Connection, term: _Term, between: tuple[int, int], limit: int) -> int:
    """Return the number of hits, counted up to a limit."""
    row = at.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM evm_hits WHERE {at.engine.is_one_of('key')}"
        " AND place BETWEEN ? AND ? LIMIT ?) AS counted",
        (at.engine.numbers(term), *between, limit),
    ).fetchone()
    return int(row[0])


# A filter lives so much longer, and a poll that finds nothing writes only within that time.
_SLACK = 30 * SECOND


class SQLFilters(Filters):
    """Filters in a table. The writer's thread writes them, together with what else waits."""

    def __init__(self, files: ProcessHandles, clock: Clock) -> None:
        self._files, self._clock = files, clock

    def add(self, added: PolledFilter, cap: int) -> None:
        self._files.mempool_writer.run(lambda at: _add(at, added, cap, self._clock()))

    def get(self, filter_id: str) -> PolledFilter:
        row = self._files.readers.one(
            "SELECT id, kind, cursor, criteria, owner FROM filters"
            " WHERE id = ? AND expires >= ?",
            filter_id,
            self._clock(),
        )
        if row is None:
            raise FilterNotFound
        filter_id, kind, cursor, criteria, owner = row
        return PolledFilter(filter_id, FilterKind(kind), cursor, criteria, owner)

    def move(self, polled: PolledFilter, cursor: int) -> bool:
        if cursor == polled.cursor and self._is_fresh(polled):
            return True
        return self._files.mempool_writer.run(
            lambda at: _move(at, polled, cursor, self._clock())
        )

    def _is_fresh(self, polled: PolledFilter) -> bool:
        found = self._files.readers.one(
            "SELECT 1 FROM filters WHERE id = ? AND cursor = ? AND expires >= ?",
            polled.id,
            polled.cursor,
            self._clock() + DEADLINE,
        )
        return found is not None

    def drop(self, filter_id: str) -> bool:
        return self._files.mempool_writer.run(lambda at: _drop(at, filter_id, self._clock()))


def _add(at: Connection, added: PolledFilter, cap: int, now: int) -> None:
    at.execute("DELETE FROM filters WHERE expires < ?", (now,))
    (live,) = at.execute("SELECT count(*) FROM filters").fetchone()
    if live >= cap:
        _evict_above(at, added.owner, cap)
    expires = now + DEADLINE + _SLACK
    at.execute(
        "INSERT INTO filters (id, kind, cursor, criteria, owner, expires)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (added.id, added.kind.value, added.cursor, added.criteria, added.owner, expires),
    )


def _evict_above(at: Connection, newcomer: str, cap: int) -> None:
    owned = dict(at.execute("SELECT owner, count(*) FROM filters GROUP BY owner"))
    at.execute(
        "DELETE FROM filters WHERE rowid ="
        " (SELECT rowid FROM filters WHERE owner = ? ORDER BY expires, rowid LIMIT 1)",
        (filters_to_evict(owned, newcomer, cap),),
    )


def _move(at: Connection, polled: PolledFilter, cursor: int, now: int) -> bool:
    moved = at.execute(
        "UPDATE filters SET cursor = ?, expires = ?"
        " WHERE id = ? AND cursor = ? AND expires >= ?",
        (cursor, now + DEADLINE + _SLACK, polled.id, polled.cursor, now),
    )
    return moved.rowcount > 0


def _drop(at: Connection, filter_id: str, now: int) -> bool:
    dropped = at.execute("DELETE FROM filters WHERE id = ? RETURNING expires", (filter_id,))
    return any(expires >= now for (expires,) in dropped.fetchall())
