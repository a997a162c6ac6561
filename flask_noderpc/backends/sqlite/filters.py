"""Filters in the store: any process answers a poll, and a restart loses none."""

from __future__ import annotations

import sqlite3

from ...domain.search import FilterKind, PolledFilter
from ...domain.time import SECOND
from ...errors import FilterNotFound
from ..base.filters import DEADLINE, Clock, Filters, filters_to_evict
from .process_handles import ProcessHandles

Connection = sqlite3.Connection

# A filter lives so much longer, and a poll that finds nothing writes only within that time.
_SLACK = 30 * SECOND


class SQLiteFilters(Filters):
    """Filters in a table. The writer's thread writes them, together with what else waits."""

    def __init__(self, files: ProcessHandles, clock: Clock) -> None:
        self._files, self._clock = files, clock

    def add(self, added: PolledFilter, cap: int) -> None:
        self._files.writer.run(lambda at: _add(at, added, cap, self._clock()))

    def get(self, filter_id: str) -> PolledFilter:
        row = self._files.readers.one(
            "SELECT id, kind, cursor, criteria, owner FROM filters"
            " WHERE id = ? AND expires >= ?",
            filter_id,
            self._clock(),
        )
        if row is None:
            raise FilterNotFound
        own, kind, cursor, criteria, owner = row
        return PolledFilter(own, FilterKind(kind), cursor, criteria, owner)

    def move(self, polled: PolledFilter, cursor: int) -> bool:
        if cursor == polled.cursor and self._is_fresh(polled):
            return True
        return self._files.writer.run(lambda at: _move(at, polled, cursor, self._clock()))

    def _is_fresh(self, polled: PolledFilter) -> bool:
        found = self._files.readers.one(
            "SELECT 1 FROM filters WHERE id = ? AND cursor = ? AND expires >= ?",
            polled.id,
            polled.cursor,
            self._clock() + DEADLINE,
        )
        return found is not None

    def drop(self, filter_id: str) -> bool:
        return self._files.writer.run(lambda at: _drop(at, filter_id, self._clock()))


def _add(at: Connection, added: PolledFilter, cap: int, now: int) -> None:
    at.execute("DELETE FROM filters WHERE expires < ?", (now,))
    (live,) = at.execute("SELECT count(*) FROM filters").fetchone()
    if live >= cap:
        _make_room(at, added.owner, cap)
    expires = now + DEADLINE + _SLACK
    at.execute(
        "INSERT INTO filters (id, kind, cursor, criteria, owner, expires)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (added.id, added.kind.value, added.cursor, added.criteria, added.owner, expires),
    )


def _make_room(at: Connection, newcomer: str, cap: int) -> None:
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
