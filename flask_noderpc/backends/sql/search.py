"""Search the event index; each search is one SQL statement.

The statement looks up the term that has the fewest hits, and checks the other terms for each
matching event. Drivers release Python's GIL during a statement, so other threads can run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ...domain.block import TxProof
from ...domain.search import (
    FoundHeights,
    FoundTxs,
    Page,
    Search,
    SearchLimits,
    Term,
    TxResult,
)
from ...errors import SearchTooCostly
from ...protocol.comet import hashes
from ...protocol.comet.hashes import tx_hash
from . import blocks, index
from .connection import Connection, Engine
from .packed.blocks import POSITION_BITS

# A search scans all transactions or blocks in its range, instead of reading the index, if
# there are fewer than 1,000, or fewer than 50,000 and a quarter of the index entries to read.
_FEW_PLACES, _MAX_PLACES, _RATIO = 1000, 50_000, 4
# Estimated events with one value per place; searches whose estimate is below the limit of rows
# run without counting their rows first.
_EVENTS_A_PLACE = 8


class _SQL(NamedTuple):
    text: str
    args: tuple[object, ...] = ()


def txs(
    at: Connection, search: Search, page: Page, limits: SearchLimits, prove: bool
) -> FoundTxs:
    """Return a page of the matching transactions, and their total number."""
    (lowest,) = at.execute(f"SELECT {at.engine.lowest_kept}").fetchone()
    low, high = blocks.places(max(search.low, lowest), search.high)
    total, places = _find_places(at, index.TX, search, low, high, page, limits.rows)
    records = _records(at, places, limits.size)
    if prove:
        records = _add_proofs(at, records)
    return FoundTxs(total, tuple(records))


def heights(at: Connection, search: Search, page: Page, limits: SearchLimits) -> FoundHeights:
    """Return a page of the matching heights, and their total number."""
    heights = at.engine.heights
    # Two subqueries, because with both aggregates in one SELECT SQLite would scan all blocks.
    first, last = at.execute(
        f"SELECT (SELECT min(height) FROM {heights}), (SELECT max(height) FROM {heights})"
    ).fetchone()
    low, high = max(search.low, first or 0), min(search.high, last or -1)
    total, found = _find_places(at, index.BLOCK, search, low, high, page, limits.rows)
    return FoundHeights(total, tuple(found))


def _find_places(
    at: Connection, kind: str, search: Search, low: int, high: int, page: Page, most: int
) -> tuple[int, Sequence[int]]:
    """Return the number of matching places, and the page of them; a place is the key of a
    transaction or block in the index."""
    terms = search.terms
    if low > high:
        return 0, ()
    if not terms:
        return _page_of_all(at, kind, low, high, page, most)
    keys = {term: index.key_row(at, kind, term.key) for term in terms}
    values = {
        term: index.value_row(at, kind, keys[term][0], term.equals)
        for term in terms
        if term.equals is not None
    }
    if (0, 0) in keys.values() or None in values.values():
        return 0, ()
    plan = _Plan(
        at.engine,
        kind,
        low,
        high,
        keys,
        {term: row for term, row in values.items() if row},
        most,
    )
    if len(terms) == 1 and plan.values and (search.is_any_height or not page.wants_total):
        return _page_of_value(at, plan, *plan.values[terms[0]], page)
    if len(terms) == 1 and search.is_any_height and terms[0].is_existence:
        return _page_of_key(at, plan, terms[0], page)
    return _run(at, plan, terms, page)


# Number of indexed transactions at a few heights: all transactions, minus transactions of
# blocks without results, minus transactions that are not indexed.
_COUNT_FEW = """
SELECT (SELECT coalesce(sum(tx_count), 0) FROM blocks
        WHERE tx_count > 0 AND height BETWEEN :first AND :last)
     - (SELECT coalesce(sum(tx_count), 0) FROM results CROSS JOIN blocks
        WHERE blocks.height = results.height AND results.results IS NULL AND tx_count > 0
        AND results.height BETWEEN :first AND :last)
     - (SELECT count(*) FROM txs WHERE events IS NULL AND place BETWEEN :low AND :high)
"""


def _count_txs(at: Connection, first: int, last: int) -> int:
    """Return the number of indexed transactions in a range of heights."""
    if first >> index.COUNT_BUCKET_BITS == last >> index.COUNT_BUCKET_BITS:
        low, high = blocks.places(first, last)
        args = {"first": first, "last": last, "low": low, "high": high}
        return int(at.execute(_COUNT_FEW, args).fetchone()[0])
    within = at.execute(
        "SELECT coalesce(sum(txs), 0) FROM tx_counts WHERE heights > ? AND heights < ?",
        (first >> index.COUNT_BUCKET_BITS, last >> index.COUNT_BUCKET_BITS),
    )
    few = (1 << index.COUNT_BUCKET_BITS) - 1
    ends = (first, first | few), (last & ~few, last)
    return int(within.fetchone()[0]) + sum(_count_txs(at, *end) for end in ends)


def _page_of_all(
    at: Connection, kind: str, low: int, high: int, page: Page, most: int
) -> tuple[int, Sequence[int]]:
    """Find all blocks of a range of heights, or all their indexed transactions; return their
    number and the places of the page."""
    if kind == index.BLOCK:
        every = range(low, high + 1)
        ordered = every[::-1] if page.newest_first else every
        return len(every), ordered[page.offset : page.offset + page.limit]
    total = _count_txs(at, low >> POSITION_BITS, high >> POSITION_BITS)
    plan = _Plan(at.engine, kind, low, high, {}, {}, most)
    plan.check(min(page.offset, total))
    return total, [place for (place,) in at.execute(*plan.page_query("true", (), page))]


def _page_of_value(
    at: Connection, plan: _Plan, value_id: int, total: int, page: Page
) -> tuple[int, Sequence[int]]:
    """Find all places with one value; return their number, which is stored, and the page."""
    plan.check(min(page.offset, total))
    found = at.execute(
        f"SELECT DISTINCT place FROM {plan.hits} WHERE value_id = ?"
        f" AND place BETWEEN ? AND ? ORDER BY place {_order(page)} LIMIT ? OFFSET ?",
        (value_id, plan.low, plan.high, page.limit, page.offset),
    ).fetchall()
    return total, [place for (place,) in found]


def _page_of_key(
    at: Connection, plan: _Plan, term: Term, page: Page
) -> tuple[int, Sequence[int]]:
    """Find all places with a key; return their number, which is stored, and the page."""
    key_id, total = plan.keys[term]
    plan.check(min(page.offset, total))
    has_key = (
        f"EXISTS (SELECT 1 FROM {at.engine.each_value('t.events')}"
        f" CROSS JOIN {plan.kind}_values AS w WHERE w.id = i.value AND w.key_id = ?)"
    )
    rows = max(0, min(page.limit, total - page.offset))
    # Most keys are frequent, so first scan the places at that end of the range where the page
    # begins; if too few of them match, use the index.
    for most in (_FEW_PLACES, min(total // _RATIO, _MAX_PLACES)):
        if total >= _FEW_PLACES:
            near = plan.limited_to(at, page, most)
            found = at.execute(*near.page_query(has_key, (key_id,), page)).fetchall()
            if len(found) == rows:
                return total, [place for (place,) in found]
    return _run(at, plan, (term,), page)


def _order(page: Page) -> str:
    return "DESC" if page.newest_first else "ASC"


class _Plan(NamedTuple):
    engine: Engine
    kind: str
    low: int
    high: int
    keys: dict[Term, tuple[int, int]]
    values: dict[Term, tuple[int, int]]
    max_rows: int
    """Maximum number of rows that the search may read."""

    @property
    def hits(self) -> str:
        """Table or view of all hits."""
        return f"{self.kind}_{self.engine.hits}"

    def check(self, rows: int) -> None:
        """Raise :exc:`SearchTooCostly` for too many rows, if the engine does not limit them by
        itself."""
        if self.engine.counts_rows and rows > self.max_rows:
            raise SearchTooCostly.by_rows(self.max_rows)

    def check_first(self, term: Term, begin: _SQL, at: Connection) -> None:
        """Raise :exc:`SearchTooCostly` if a search that begins with this term would read too
        many rows."""
        _, places = self.values.get(term) or self.keys[term]
        if not self.engine.counts_rows or places * _EVENTS_A_PLACE <= self.max_rows:
            return
        if term.contains is not None:
            # This search reads all values of the key.
            values = _SQL(f"{self.kind}_values WHERE key_id = ?", (self.keys[term][0],))
            self.check(self._count(values, at))
        self.check(self._count(begin, at))

    def _count(self, rows: _SQL, at: Connection) -> int:
        """Return the number of rows, counted up to one more than the limit."""
        (count,) = at.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {rows.text} LIMIT ?) AS counted",
            (*rows.args, self.max_rows + 1),
        ).fetchone()
        return int(count)

    def first_term(self, terms: Sequence[Term], at: Connection) -> Term | None:
        """Return the term to look up first; ``None`` to scan all places of the range
        instead."""
        if self.values:
            return min(self.values, key=lambda term: self.values[term][1])
        table, key = index.ROWS[self.kind]
        entries = min(self.keys[term][1] for term in terms)
        few = max(_FEW_PLACES, min(entries // _RATIO, _MAX_PLACES))
        (places,) = at.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {key} BETWEEN ? AND ? LIMIT ?)"
            " AS counted",
            (self.low, self.high, few),
        ).fetchone()
        if places < few:
            self.check(places)
            return None
        return min(terms, key=lambda term: (not term.within, self.keys[term][1]))

    def limited_to(self, at: Connection, page: Page, most: int) -> _Plan:
        """Return a plan whose range only has the first ``most`` places in the order of the
        page."""
        table, key = index.ROWS[self.kind]
        row = at.execute(
            f"SELECT {key} FROM {table} WHERE {key} BETWEEN ? AND ?"
            f" ORDER BY {key} {_order(page)} LIMIT 1 OFFSET ?",
            (self.low, self.high, most),
        ).fetchone()
        if row is None:
            return self
        return self._replace(low=row[0]) if page.newest_first else self._replace(high=row[0])

    def page_query(
        self, condition: str, args: tuple[object, ...], page: Page
    ) -> tuple[str, tuple[object, ...]]:
        """Return the SELECT of a page of places in page order, and its arguments."""
        table, key = index.ROWS[self.kind]
        return (
            f"SELECT {key} FROM {table} AS t WHERE {key} BETWEEN ? AND ?"
            f" AND events IS NOT NULL AND {condition}"
            f" ORDER BY {key} {_order(page)} LIMIT ? OFFSET ?",
            (self.low, self.high, *args, page.limit, page.offset),
        )

    def from_clause(self, term: Term | None) -> _SQL:
        """Return the FROM and WHERE clauses that yield the places and events to check."""
        between = (self.low, self.high)
        if term is None:
            table, key = index.ROWS[self.kind]
            return _SQL(
                f"(SELECT {key} AS place, e.key AS event"
                f" FROM {table}, {self.engine.each_event('events')}"
                f" WHERE {key} BETWEEN ? AND ? AND events IS NOT NULL) AS d WHERE true",
                between,
            )
        if term in self.values:
            return _SQL(
                f"{self.hits} AS d WHERE d.value_id = ? AND d.place BETWEEN ? AND ?",
                (self.values[term][0], *between),
            )
        demand = self._demand(term, "v")
        return _SQL(
            f"{self.kind}_values AS v CROSS JOIN {self.hits} AS d"
            f" WHERE d.value_id = v.id AND {demand.text} AND d.place BETWEEN ? AND ?",
            (*demand.args, *between),
        )

    def same_event_condition(self, term: Term) -> _SQL:
        """Return an SQL condition: the same event also matches this term."""
        if term in self.values:
            return _SQL(
                f" AND EXISTS (SELECT 1 FROM {self.hits} WHERE value_id = ?"
                " AND place = d.place AND event = d.event)",
                (self.values[term][0],),
            )
        table, key = index.ROWS[self.kind]
        demand = self._demand(term, "w")
        events = f"(SELECT events FROM {table} WHERE {key} = d.place)"
        return _SQL(
            f" AND EXISTS (SELECT 1 FROM {self.engine.values_of(events, 'd.event')}"
            f" CROSS JOIN {self.kind}_values AS w WHERE w.id = i.value AND {demand.text})",
            demand.args,
        )

    def _demand(self, term: Term, name: str) -> _SQL:
        """Return the SQL condition, on the values table ``name``, of a term that is not an
        equality."""
        text = f"{name}.key_id = ?"
        args: list[object] = [self.keys[term][0]]
        if term.contains is not None:
            contains = self.engine.contains(f"{name}.value")
            return _SQL(f"{text} AND {contains}", (*args, self.engine.text(term.contains)))
        for bound in term.within:
            text += f" AND {name}.number {bound.operator} ?"
            args.append(index.sortable(bound.number))
        return _SQL(text, tuple(args))


def _run(
    at: Connection, plan: _Plan, terms: Sequence[Term], page: Page
) -> tuple[int, Sequence[int]]:
    first = plan.first_term(terms, at)
    begin = plan.from_clause(first)
    if first is not None:
        plan.check_first(first, begin, at)
    rest = [plan.same_event_condition(term) for term in terms if term != first]
    text = begin.text + "".join(sql.text for sql in rest)
    args = sum((sql.args for sql in rest), begin.args)
    # The first row is the total, so that total and page come from one read of the index.
    found = at.execute(
        f"WITH found AS MATERIALIZED (SELECT DISTINCT d.place FROM {text})"
        " SELECT count(*) FROM found UNION ALL SELECT place FROM"
        f" (SELECT place FROM found ORDER BY place {_order(page)} LIMIT ? OFFSET ?) AS page",
        (*args, page.limit, page.offset),
    ).fetchall()
    total, *places = (row[0] for row in found)
    return total, places


def _records(at: Connection, places: Sequence[int], size: int) -> list[TxResult]:
    records = []
    remaining_bytes = size
    for record in blocks.txs_at(at, places):
        remaining_bytes -= _size(record)
        if remaining_bytes < 0:
            raise SearchTooCostly.by_size(size)
        records.append(record)
    return records


def _size(record: TxResult) -> int:
    result = record.result
    attributes = (each for event in result.events for each in event.attributes)
    return (
        len(record.tx)
        + len(result.data)
        + len(result.log)
        + len(result.info)
        + sum(len(each.key) + len(each.value) for each in attributes)
    )


def _add_proofs(at: Connection, records: list[TxResult]) -> list[TxResult]:
    trees: dict[int, hashes.Tree] = {}
    proven = []
    for record in records:
        if record.height not in trees:
            txs = blocks.txs_with_results(at, record.height)[0]
            trees[record.height] = hashes.Tree([tx_hash(tx) for tx in txs])
        tree = trees[record.height]
        proof = TxProof(tree.root, record.tx, tree.proof(record.index))
        proven.append(replace(record, proof=proof))
    return proven
