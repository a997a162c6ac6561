"""Searches of the event index, each one SQL statement.

SQLite releases Python's lock during a statement, so other threads run. The statement begins
with the term that has the fewest hits, and checks the other terms for each of its events.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
from ...protocol.comet import merkle
from . import index, rows

Connection = sqlite3.Connection

# What SQLite's engine does for one row, about, and how often it asks whether to go on.
_STEPS_A_ROW = 12
_STEPS_A_LOOK = 20_000

# CometBFT's kvstore and most applications give a place some ten hits.
_HITS_A_PLACE = 10


class _SQL(NamedTuple):
    text: str
    args: tuple[object, ...] = ()


@contextmanager
def bounded(at: Connection, limits: SearchLimits, deadline: float) -> Iterator[None]:
    """Raise :exc:`SearchTooCostly` for whatever takes more steps or time than allowed."""
    allowed = limits.rows * _STEPS_A_ROW
    interval = min(allowed, _STEPS_A_LOOK)
    steps = 0

    def is_too_much() -> bool:
        nonlocal steps
        steps += interval
        return steps > allowed or time.monotonic() > deadline

    at.set_progress_handler(is_too_much, interval)
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        if steps > allowed:
            raise SearchTooCostly.by_rows(limits.rows) from None
    finally:
        at.set_progress_handler(None, 0)
    if time.monotonic() > deadline:
        raise SearchTooCostly.by_time(limits.seconds)


def txs(
    at: Connection, search: Search, page: Page, limits: SearchLimits, prove: bool
) -> FoundTxs:
    """The transactions found in a page."""
    low, high = _numbers(at, search)
    total, numbers = _found(at, index.TX, search, low, high, page)
    records = _records(at, numbers, limits.size)
    if prove:
        records = _proven(at, records)
    return FoundTxs(total, tuple(records))


def heights(at: Connection, search: Search, page: Page) -> FoundHeights:
    """The heights found in a page."""
    # In one SELECT without others in it, SQLite would look at each block.
    first, last = at.execute(
        "SELECT (SELECT min(height) FROM blocks), (SELECT max(height) FROM blocks)"
    ).fetchone()
    low, high = max(search.low, first or 0), min(search.high, last or -1)
    total, found = _found(at, index.BLOCK, search, low, high, page)
    return FoundHeights(total, tuple(found))


def _numbers(at: Connection, search: Search) -> tuple[int, int]:
    """The first and the last number of the transactions in the range of heights."""
    first = at.execute(
        "SELECT seq FROM txs WHERE height >= ? AND seq IS NOT NULL"
        " ORDER BY height, position LIMIT 1",
        (search.low,),
    ).fetchone()
    last = at.execute(
        "SELECT seq FROM txs WHERE height <= ? AND seq IS NOT NULL"
        " ORDER BY height DESC, position DESC LIMIT 1",
        (search.high,),
    ).fetchone()
    return (first[0], last[0]) if first and last else (0, -1)


def _found(
    at: Connection, kind: str, search: Search, low: int, high: int, page: Page
) -> tuple[int, Sequence[int]]:
    """Return the number of places found, and those of the page."""
    terms = search.terms
    if low > high:
        return 0, ()
    if not terms:
        # Places have no gaps.
        every = range(low, high + 1)
        ordered = every[::-1] if page.newest_first else every
        return len(every), ordered[page.offset : page.offset + page.limit]
    known = {term: _value(at, kind, term) for term in terms if term.equals is not None}
    if None in known.values():
        return 0, ()
    plan = _Plan(kind, low, high, {term: row for term, row in known.items() if row})
    if len(terms) == 1 and plan.values and search.is_any_height:
        return _all_of(at, kind, *plan.values[terms[0]], page)
    return _run(at, plan, terms, page)


def _all_of(
    at: Connection, kind: str, value_id: int, total: int, page: Page
) -> tuple[int, Sequence[int]]:
    """All places of one value, which are counted as they are written."""
    order = "DESC" if page.newest_first else "ASC"
    found = at.execute(
        f"SELECT DISTINCT place FROM {kind}_hits WHERE value_id = ?"
        f" ORDER BY place {order} LIMIT ? OFFSET ?",
        (value_id, page.limit, page.offset),
    ).fetchall()
    return total, [place for (place,) in found]


def _value(at: Connection, kind: str, term: Term) -> tuple[int, int] | None:
    """The id of the value that a term names, and how many places have it."""
    row = at.execute(
        f"SELECT id, places FROM {kind}_values WHERE key = ? AND value = ?",
        (term.key, term.equals),
    ).fetchone()
    return None if row is None else (row[0], row[1])


class _Plan(NamedTuple):
    kind: str
    low: int
    high: int
    values: dict[Term, tuple[int, int]]

    def first(self, terms: Sequence[Term], at: Connection) -> Term | None:
        """The term to begin with; ``None`` to begin with the places."""
        if self.values:
            return min(self.values, key=lambda term: self.values[term][1])
        highest = at.execute(f"SELECT max(place) FROM {self.kind}_hits").fetchone()[0] or 0
        if (self.high - self.low + 1) * _HITS_A_PLACE < highest:
            return None
        return max(terms, key=lambda term: (bool(term.within), term.contains is not None))

    def begin(self, term: Term | None) -> _SQL:
        """The places, and in them the events, to look at."""
        between = (self.low, self.high)
        if term is None:
            return _SQL(
                f"(SELECT DISTINCT place, event FROM {self.kind}_hits"
                " WHERE place BETWEEN ? AND ?) AS d WHERE 1",
                between,
            )
        if term in self.values:
            return _SQL(
                f"{self.kind}_hits AS d WHERE d.value_id = ? AND d.place BETWEEN ? AND ?",
                (self.values[term][0], *between),
            )
        demand = _demand(term, "v")
        return _SQL(
            f"{self.kind}_values AS v CROSS JOIN {self.kind}_hits AS d ON d.value_id = v.id"
            f" WHERE {demand.text} AND d.place BETWEEN ? AND ?",
            (*demand.args, *between),
        )

    def also(self, term: Term) -> _SQL:
        """That the same event has this term as well."""
        if term in self.values:
            return _SQL(
                f" AND EXISTS (SELECT 1 FROM {self.kind}_hits WHERE value_id = ?"
                " AND place = d.place AND event = d.event)",
                (self.values[term][0],),
            )
        demand = _demand(term, "w")
        return _SQL(
            f" AND EXISTS (SELECT 1 FROM {self.kind}_hits AS h CROSS JOIN {self.kind}_values"
            " AS w ON w.id = h.value_id WHERE h.place = d.place AND h.event = d.event"
            f" AND {demand.text})",
            demand.args,
        )


def _demand(term: Term, name: str) -> _SQL:
    """Return the SQL condition of a term that is no equality."""
    if term.contains is not None:
        return _SQL(f"{name}.key = ? AND instr({name}.value, ?) > 0", (term.key, term.contains))
    text, args = f"{name}.key = ?", [term.key]
    for bound in term.within:
        text += f" AND {name}.number {bound.operator} ?"
        args.append(index.sortable(bound.number))
    return _SQL(text, tuple(args))


def _run(
    at: Connection, plan: _Plan, terms: Sequence[Term], page: Page
) -> tuple[int, Sequence[int]]:
    first = plan.first(terms, at)
    begin = plan.begin(first)
    rest = [plan.also(term) for term in terms if term != first]
    text = begin.text + "".join(sql.text for sql in rest)
    args = sum((sql.args for sql in rest), begin.args)
    order = "DESC" if page.newest_first else "ASC"
    # The count comes first: both are of one look at the index.
    found = at.execute(
        f"WITH found AS MATERIALIZED (SELECT DISTINCT d.place FROM {text})"
        " SELECT count(*) FROM found UNION ALL SELECT place FROM"
        f" (SELECT place FROM found ORDER BY place {order} LIMIT ? OFFSET ?)",
        (*args, page.limit, page.offset),
    ).fetchall()
    total, *places = (row[0] for row in found)
    return total, places


def _records(at: Connection, numbers: Sequence[int], size: int) -> list[TxResult]:
    records = []
    remaining_bytes = size
    for number in numbers:
        row = at.execute(
            f"SELECT height, position, tx, {rows.TX_RESULT_COLUMNS} FROM txs WHERE seq = ?",
            (number,),
        ).fetchone()
        remaining_bytes -= sum(len(cell) for cell in row if isinstance(cell, bytes | str))
        if remaining_bytes < 0:
            raise SearchTooCostly.by_size(size)
        records.append(rows.tx_result_from(row))
    return records


def _proven(at: Connection, records: list[TxResult]) -> list[TxResult]:
    trees: dict[int, merkle.Tree] = {}
    proven = []
    for record in records:
        if record.height not in trees:
            trees[record.height] = _tree(at, record.height)
        tree = trees[record.height]
        proof = TxProof(tree.root, record.tx, tree.proof(record.index))
        proven.append(replace(record, proof=proof))
    return proven


def _tree(at: Connection, height: int) -> merkle.Tree:
    found = at.execute("SELECT hash FROM txs WHERE height = ? ORDER BY position", (height,))
    return merkle.Tree([tx_hash for (tx_hash,) in found])
