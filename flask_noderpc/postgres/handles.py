"""Handles of an open PostgreSQL store, one set per process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ..backends.base.reads import ChainVersion
from ..backends.sql import hits
from ..backends.sql.connection import Connection as SQLConnection
from ..backends.sql.handles import ProcessHandles
from ..domain.search import HIGHEST
from . import schema
from .change_watcher import ChangeWatcher
from .connection import Connection
from .database import Database
from .heads import LatestHeight
from .readers import Readers
from .replica import Replica
from .search_pool import SearchPool
from .writer import CHAIN, MEMPOOL, Writer

# Seconds that os.fork() waits for reads in progress.
_FORK_PATIENCE_S = 5.0

T = TypeVar("T")


class PostgresHandles(ProcessHandles):
    """The open connections of one process to the database.

    Blocks and the mempool have separate writers, so that transactions are accepted while a
    block is stored. A database transaction that needs the locks of both takes the chain's lock
    first.
    """

    def __init__(self, database: Database, replica: Database | None, poll_s: float) -> None:
        self._database = database
        self.readers: Readers = Readers(database, poll_s)
        self._heads = LatestHeight(self.readers)
        self._replica = Replica(replica, self.readers, poll_s) if replica else None
        announce, forget = self.readers.announce_change, self.readers.forget_version
        self.writer: Writer = Writer(database, "noderpc-writer", CHAIN, announce)
        self.mempool_writer: Writer = Writer(database, "noderpc-mempool", MEMPOOL, forget)
        self.search_pool: SearchPool = SearchPool(self.read)
        self.changes: ChangeWatcher = ChangeWatcher(database, self.readers, poll_s)
        super().__init__()

    def read(self, work: Callable[[SQLConnection], T], height: int = HIGHEST) -> T:
        if self._replica is not None and not self.readers.holds_view:
            answer = self._replica.read(work, height)
            if answer is not None:
                return answer.value
        return super().read(work, height)

    def latest_height(self) -> int:
        return self._heads.latest()

    @contextmanager
    def read_view(self) -> Iterator[ChainVersion | None]:
        reader = None
        if self._replica is not None and not self.readers.holds_view:
            reader = self._replica.take(HIGHEST)
        if self._replica is None or reader is None:
            with self.readers.shared_read_view() as version:
                yield version
            return
        try:
            with self.readers.share(reader) as version:
                yield version
        finally:
            self._replica.give_back(reader)

    def open(self) -> None:
        with self._database.connect() as raw:
            prepare = schema.check if self._database.url.read_only else schema.prepare
            prepare(Connection(raw))
            is_indexed = not hits.has_unindexed(Connection(raw))
        # Index blocks that were stored while a feature or its packages were missing.
        while not (is_indexed or self._database.url.read_only):
            is_indexed = not self.writer.run(hits.index_some)

    def suspend(self) -> None:
        for writer in (self.writer, self.mempool_writer):
            writer.between_writes.__enter__()
            writer.disconnect()
        self.changes.suspend()
        self.quiet = self.readers.suspend(_FORK_PATIENCE_S)
        if self._replica is not None:
            self.quiet &= self._replica.suspend(_FORK_PATIENCE_S)

    def resume(self) -> None:
        self.readers.resume()
        if self._replica is not None:
            self._replica.resume()
        self.changes.resume()
        for writer in (self.writer, self.mempool_writer):
            writer.between_writes.__exit__(None, None, None)

    def close(self) -> None:
        self.changes.close()
        self.writer.close()
        self.mempool_writer.close()
        self.readers.close()
        if self._replica is not None:
            self._replica.close()
