"""Capabilities of SQL stores: application state, evidence pool, indexes of features, and
filters that survive restarts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...domain.block import Evidence
from ...domain.search import FilterKind, PolledFilter, SearchLimits
from ...domain.time import SECOND
from ...errors import FilterNotFound, StoreError
from ...protocol.comet.hashes import evidence_hash_of
from ..base.application import Application, Waiting
from ..base.capabilities import Capability
from ..base.evidence import EvidencePool, check_evidence
from ..base.filters import DEADLINE, Filters, filters_to_evict
from ..base.reads import ChainReads
from . import evidence, hits, mempool, values
from .connection import Connection, Engine
from .handles import StoreHandles
from .packed.blocks import DamagedRow


class SQLAppState:
    """Read access to an application's committed state and to pending transactions."""

    def __init__(self, files: StoreHandles, engine: Engine) -> None:
        self._files = files
        self._select_one = (
            "SELECT content, checksum FROM app_state"
            f" WHERE {engine.unique_key('key')} = {engine.unique_key('?')}"
        )

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or ``None``."""
        row = self._files().readers.one(self._select_one, key)
        if row is None:
            return None
        try:
            return bytes(values.app_value(key, *row))
        except DamagedRow as error:
            raise StoreError(str(error), self._files.location.display_name) from None

    def range(
        self, prefix: bytes, after: bytes | None = None, limit: int = 1000
    ) -> tuple[tuple[bytes, bytes], ...]:
        """Return up to ``limit`` pairs of key and value whose keys start with the prefix and
        sort after ``after``, in the order of keys."""
        with self._files().readers.snapshot() as at:
            return values.app_range(at, prefix, after, limit)

    def waiting(self, cursor: int = 0, limit: int = 1000) -> Waiting:
        """Return up to ``limit`` stored pending transactions after a cursor, oldest first, and
        those not stored yet."""
        files = self._files()
        # Read unstored transactions before the snapshot: one that is stored in between is then
        # in both, and not missed.
        incoming = files.unstored_txs.txs()
        with files.readers.snapshot() as at:
            stored = mempool.pending_after(at, cursor, limit)
            return Waiting(stored, incoming, mempool.count(at).total)


class SQLEvidencePool(EvidencePool):
    """Evidence pool in the table ``pending_evidence``."""

    def __init__(
        self,
        open_store: StoreHandles,
        application: Callable[[], Application],
        reads: ChainReads,
    ) -> None:
        self._open, self._app, self._reads = open_store, application, reads

    def submit(self, piece: Evidence) -> bytes:
        self._app()
        files, evidence_hash = self._open(), evidence_hash_of(piece)
        with files.readers.snapshot() as at:
            known = evidence.is_known(at, evidence_hash)
        if not known:
            check_evidence(self._reads, piece)
            files.mempool_writer.run(lambda at: evidence.add(at, piece))
            files.changes.notify()
        return evidence_hash


class SQLHits:
    """Searches of the indexes that features declare."""

    def __init__(self, open_store: StoreHandles) -> None:
        self._open = open_store
        self._kept: set[str] = set()

    def _is_kept(self, at: Connection, name: str) -> bool:
        # A store that is only read may lack the tables of indexes that were declared later.
        if name not in self._kept:
            self._kept |= set(at.engine.hit_indexes(at))
        return name in self._kept

    def newest_heights(self, name: str, key: int) -> tuple[tuple[int, ...], bool]:
        """Return the heights of blocks that have a hit for a key, newest first, and true if
        every block is indexed."""

        def work(at: Connection) -> tuple[tuple[int, ...], bool]:
            if not self._is_kept(at, name):
                return (), False
            return hits.newest_heights(at, name, key), hits.is_complete(at, name)

        return self._open().read(work)

    def heights(
        self, name: str, terms: Sequence[hits.Term], low: int, high: int, limits: SearchLimits
    ) -> Sequence[int]:
        """Return the heights in a range of blocks that may match: a place in the block has a
        hit for each term, or the block is not indexed; lowest first. Raise
        :exc:`~flask_noderpc.errors.SearchTooCostly`."""

        def work(at: Connection) -> Sequence[int]:
            if not self._is_kept(at, name):
                return range(low, high + 1)
            return hits.heights(at, name, terms, low, high)

        return self._open().search_pool.run(work, limits, high)


HITS: Capability[SQLHits] = Capability("the backend keeps no indexes of features")


# Extra lifetime of filters: a poll without new results only has to write the new deadline
# every 30 seconds.
_SLACK = 30 * SECOND


class SQLFilters(Filters):
    """Filters in the table ``filters``, written by the mempool's writer with other queued
    writes."""

    def __init__(self, open_store: StoreHandles) -> None:
        self._open = open_store

    def add(self, added: PolledFilter, cap: int) -> None:
        self._open().mempool_writer.run(lambda at: _add(at, added, cap, self.clock()))

    def get(self, filter_id: str) -> PolledFilter:
        row = self._open().readers.one(
            "SELECT id, kind, cursor, criteria, owner FROM filters"
            " WHERE id = ? AND expires >= ?",
            filter_id,
            self.clock(),
        )
        if row is None:
            raise FilterNotFound
        filter_id, kind, cursor, criteria, owner = row
        return PolledFilter(filter_id, FilterKind(kind), cursor, criteria, owner)

    def move(self, polled: PolledFilter, cursor: int) -> bool:
        if cursor == polled.cursor and self._is_fresh(polled):
            return True
        return self._open().mempool_writer.run(
            lambda at: _move(at, polled, cursor, self.clock())
        )

    def _is_fresh(self, polled: PolledFilter) -> bool:
        found = self._open().readers.one(
            "SELECT 1 FROM filters WHERE id = ? AND cursor = ? AND expires >= ?",
            polled.id,
            polled.cursor,
            self.clock() + DEADLINE,
        )
        return found is not None

    def drop(self, filter_id: str) -> bool:
        return self._open().mempool_writer.run(lambda at: _drop(at, filter_id, self.clock()))


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
