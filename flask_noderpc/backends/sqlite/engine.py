"""SQL of SQLite for the SQL stores."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from ... import jsoncodec
from ..sql.connection import Connection as AnyConnection
from ..sql.connection import Engine

# Free pages that are kept for the next blocks: at least 1,000 and 1/10 of all pages. A
# transaction returns up to 1,000 further pages to the file system.
_KEPT_PAGES, _KEPT_SHARE, _FREED_PAGES = 1_000, 10, 1_000


# Number of rows that one statement inserts.
_ROWS = 64


class SQLite(Engine):
    """SQLite's SQL. It needs no locks, because only one transaction writes at a time."""

    integrity_error = sqlite3.IntegrityError
    # SQLite stores the last AUTOINCREMENT value in this table.
    latest_pending = "SELECT seq FROM sqlite_sequence WHERE name = 'mempool'"

    def integers_param(self, values: Sequence[int]) -> object:
        # Pass one JSON array, so that the same statement works for any number of integers.
        return jsoncodec.encode(values).decode()

    def is_one_of(self, column: str) -> str:
        return f"{column} IN (SELECT value FROM json_each(?))"

    def contains(self, column: str) -> str:
        return f"instr({column}, ?) > 0"

    def each_event(self, events: str) -> str:
        return f"json_each({events}) AS e"

    def each_value(self, events: str) -> str:
        return f"json_each({events}) AS e, json_each(e.value) AS i"

    def values_of(self, events: str, event: str) -> str:
        return f"json_each({events}, '$[' || {event} || ']') AS i"

    def hit_indexes(self, at: AnyConnection) -> list[str]:
        found = at.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB '?*_unindexed'"
        )
        return [name.removesuffix("_unindexed") for (name,) in found]

    def make_hit_tables(self, at: AnyConnection, name: str) -> None:
        at.execute(
            f"CREATE TABLE {name}_hits (key INTEGER NOT NULL, place INTEGER NOT NULL,"
            " PRIMARY KEY (key, place)) STRICT, WITHOUT ROWID"
        )
        at.execute(f"CREATE TABLE {name}_unindexed (height INTEGER PRIMARY KEY) STRICT")

    def now(self, at: AnyConnection) -> int:
        return time.time_ns()

    def data_version(self, at: AnyConnection) -> object:
        return at.execute("PRAGMA data_version").fetchone()[0]

    def free_space(self, at: AnyConnection) -> None:
        # Return surplus free pages to the file system; the next blocks reuse the rest.
        (free,) = at.execute("PRAGMA freelist_count").fetchone()
        (pages,) = at.execute("PRAGMA page_count").fetchone()
        kept = max(_KEPT_PAGES, pages // _KEPT_SHARE)
        for _ in range(min(free - kept, _FREED_PAGES)):
            # Call the pragma once per page: it frees a page with each row that it returns, and
            # Python's sqlite3 stops after the first row, as the rows have no columns.
            at.execute("PRAGMA incremental_vacuum")


class Connection(sqlite3.Connection):
    """A SQLite connection for the statements of :mod:`flask_noderpc.backends.sql`."""

    engine: Engine = SQLite()

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        """Execute a statement for each parameter set; insert many rows with each execution, as
        every execution lets other threads run, and then waits for its turn again. Each set has
        as many parameters as the statement, which is not checked."""
        start, values, rest = sql.partition(" VALUES ")
        marks, _, end = rest.partition(")")
        if not (values and sql.startswith("INSERT ")) or "?" in start + end:
            return super().executemany(sql, parameters)
        rows = list(parameters)
        whole = len(rows) - len(rows) % _ROWS
        if whole:
            super().executemany(
                f"{start}{values}{', '.join([f'{marks})'] * _ROWS)}{end}",
                (
                    list(chain.from_iterable(rows[first : first + _ROWS]))
                    for first in range(0, whole, _ROWS)
                ),
            )
        return super().executemany(sql, rows[whole:])

    def each(self, sql: str, parameters: Iterable[Any], /) -> Iterator[list[Any]]:
        """Execute a statement once for each parameter set; yield the rows of each execution."""
        for each in parameters:
            yield self.execute(sql, each).fetchall()
