"""psycopg connections that run the statements of SQL stores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.pq import TransactionStatus
from psycopg.types.array import ListBinaryDumper
from psycopg.types.numeric import Int8BinaryDumper

from ..backends.sql.connection import Engine, Rows
from .engine import POSTGRES

RawConnection = psycopg.Connection[tuple[Any, ...]]

# Tokens to translate to psycopg's placeholders. Literals and quoted names stay unchanged,
# except that percent signs are escaped.
_TOKENS = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|::|\?|:([a-z_]+)|%")

# From this many rows on, COPY or one statement over arrays is faster than one statement per
# row.
_MIN_TOGETHER = 8
_INSERT = re.compile(r"INSERT INTO (\w+) \(([\w, ]+)\) VALUES \([?, ]+\)")
_INSERT_NEW = re.compile(
    r"(INSERT INTO \w+ \([\w, ]+\)) VALUES \([?, ]+\) ON CONFLICT DO NOTHING"
)
_DELETE = re.compile(r"DELETE FROM (\w+) WHERE (\w+) = \?")
_ADD = re.compile(r"UPDATE (\w+) SET (\w+) = \2 ([+-]) \? WHERE id = \?")


ADAPTERS = AdaptersMap(psycopg.adapters)
# Send every integer as a bigint, so that a statement has one plan for all values.
ADAPTERS.register_dumper(int, Int8BinaryDumper)
# Send lists in binary: by default they are text, with a type that depends on the largest
# number.
ADAPTERS.register_dumper(list, ListBinaryDumper)


@lru_cache(maxsize=1024)
def translate_placeholders(sql: str) -> str:
    """Return a statement with psycopg's placeholders: ``%s`` instead of ``?``, and
    ``%(name)s`` instead of ``:name``."""

    def replace(found: re.Match[str]) -> str:
        token = found[0]
        if token == "?":
            return "%s"
        if found[1]:
            return f"%({found[1]})s"
        return token.replace("%", "%%")

    return _TOKENS.sub(replace, sql)


class Connection:
    """A connection for one thread at a time."""

    engine: Engine = POSTGRES

    def __init__(self, raw: RawConnection) -> None:
        self.raw = raw

    @property
    def in_transaction(self) -> bool:
        """True within a transaction."""
        return self.raw.info.transaction_status in (
            TransactionStatus.INTRANS,
            TransactionStatus.INERROR,
        )

    def execute(self, sql: str, parameters: Any = (), /) -> Rows:
        """Execute one statement."""
        # Request binary results, because bytea as text is twice as long.
        return self.raw.execute(translate_placeholders(sql), parameters, binary=True)

    def script(self, sql: str) -> Rows:
        """Execute several statements without parameters in one round trip; return the result
        of the last statement."""
        cursor = self.raw.execute(sql)
        while cursor.nextset():
            pass
        return cursor

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> None:
        """Execute a statement once for each parameter set; combine many into one statement if
        possible."""
        rows = list(parameters)
        if rows and (len(rows) < _MIN_TOGETHER or not self._execute_batch(sql, rows)):
            with self.raw.cursor() as cursor:
                # psycopg sends all executions in one round trip, as a pipeline.
                cursor.executemany(translate_placeholders(sql), rows)

    def _execute_batch(self, sql: str, rows: Sequence[Sequence[object]]) -> bool:
        """Execute a statement for all rows at once; return false for a kind of statement that
        can't be combined."""
        if insert := _INSERT.fullmatch(sql):
            self._copy(insert[1], insert[2], rows)
        elif insert := _INSERT_NEW.fullmatch(sql):
            arrays = ", ".join("?" for _ in rows[0])
            self._on_arrays(
                f"{insert[1]} SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING", rows
            )
        elif delete := _DELETE.fullmatch(sql):
            self._on_arrays(f"DELETE FROM {delete[1]} WHERE {delete[2]} = ANY(?)", rows)
        elif add := _ADD.fullmatch(sql):
            table, column, sign = add.groups()
            self._on_arrays(
                f"UPDATE {table} AS t SET {column} = t.{column} {sign} d.number"
                " FROM unnest(?, ?) AS d(number, id) WHERE t.id = d.id",
                rows,
            )
        else:
            return False
        return True

    def _on_arrays(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        self.execute(sql, [list(column) for column in zip(*rows, strict=True)])

    def each(self, sql: str, parameters: Iterable[Any], /) -> Iterator[list[Any]]:
        """Execute a statement once for each parameter set; yield the rows of each
        execution."""
        rows = list(parameters)
        if not rows:
            return
        with self.raw.cursor(binary=True) as cursor:
            # All executions take one round trip.
            cursor.executemany(translate_placeholders(sql), rows, returning=True)
            yield cursor.fetchall()
            while cursor.nextset():
                yield cursor.fetchall()

    def _copy(self, table: str, columns: str, rows: Sequence[Sequence[object]]) -> None:
        statement = f"COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)"
        with self.raw.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def rollback(self) -> None:
        """End the transaction, if one is open and the connection is not lost."""
        self.close_if_busy()
        if not self.raw.closed:
            self.raw.rollback()

    def close_if_busy(self) -> None:
        """Close a connection that was interrupted within a statement, for example because the
        greenlet was killed: the next statement would get the result of this one."""
        if self.raw.info.transaction_status == TransactionStatus.ACTIVE:
            self.raw.close()

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()
