"""``PostgresBackend``: a backend whose chain is in a PostgreSQL database that many hosts
share."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from functools import partial

import psycopg

from ..backends.base.application import Application, AppState
from ..backends.base.capabilities import MempoolLimits
from ..backends.base.verify import Scope
from ..backends.sql.lease import LeaseState
from ..backends.sql.store import ChainStore
from ..errors import NotSupported
from . import partitions, schema
from .connection import Connection
from .database import Database
from .engine import POSTGRES
from .green import allow_time
from .handles import PostgresHandles
from .partitions import UNUSED
from .settings import DatabaseURL

log = logging.getLogger("flask_noderpc.postgres")

# Seconds until partitions are dropped again after an attempt that other transactions blocked.
_DROP_AGAIN_S = 60.0
# Seconds for a statement of a verification, which may read whole tables.
_MAX_VERIFY_S = 86_400.0


class PostgresBackend(ChainStore):
    """A chain in one PostgreSQL database: blocks, results, state, index and mempool.

    ``url`` is a ``postgresql://`` URL with libpq's options, and ``read_url`` is the URL of one
    or several replicas: blocks that a replica has are read there, everything else is read from
    the primary. Each process connects at its first use, and creates missing tables.
    ``application``, ``limits`` and ``poll_s`` are those of
    :class:`~flask_noderpc.SQLiteBackend`; a process may also take ``poll_s`` to notice a
    change by another one. Every error of the database is raised as a
    :exc:`~flask_noderpc.errors.StoreError`.
    """

    def __init__(
        self,
        url: str | DatabaseURL,
        *,
        read_url: str | DatabaseURL | None = None,
        read_only: bool = False,
        application: Callable[[AppState], Application] | None = None,
        limits: MempoolLimits | None = None,
        poll_s: float = 0.05,
    ) -> None:
        location = DatabaseURL(url) if isinstance(url, str) else url
        location.read_only = location.read_only or read_only
        self._database = Database(location, "any" if location.read_only else "read-write")
        self._replica: Database | None = None
        if read_url is not None:
            replica = DatabaseURL(read_url) if isinstance(read_url, str) else read_url
            self._replica = Database(replica, "prefer-standby")
        self._drops_after = 0.0
        interval = location.poll_s or poll_s
        super().__init__(
            location,
            POSTGRES,
            lambda: PostgresHandles(self._database, self._replica, interval),
            application,
            limits,
        )

    def lease_state(self) -> LeaseState:
        found = super().lease_state()
        if not found.expires:
            return found
        with self._open().readers.snapshot() as at:
            # Convert the expiry, which is by the database's clock, to this host's clock.
            ahead = POSTGRES.now(at) - time.time_ns()
        return LeaseState(found.owner, found.expires - ahead, found.last_error)

    def verify_blocks(
        self, progress: Callable[[int], None] | None = None, scope: Scope | None = None
    ) -> int:
        with allow_time(_MAX_VERIFY_S):
            return super().verify_blocks(progress, scope)

    def verify_state(self) -> None:
        with allow_time(_MAX_VERIFY_S):
            super().verify_state()

    def prune_some(self, base: int, *, in_bulk: bool = False) -> int:
        removed = super().prune_some(base, in_bulk=in_bulk)
        self._drop_partitions()
        return removed

    def _drop_partitions(self) -> None:
        """Drop partitions that have no blocks; if other transactions block this, try again
        later."""
        files = self._open()
        if time.monotonic() < self._drops_after or files.readers.one(UNUSED) is None:
            return
        self._drops_after = time.monotonic() + _DROP_AGAIN_S
        try:
            with self._database.connect() as raw:
                at = Connection(raw)
                # Drop in one transaction behind PgBouncer, where settings and locks only last
                # for a transaction, and before version 14, which lacks DETACH CONCURRENTLY.
                at_once = self._database.url.is_pooled or raw.info.server_version < 140_000
                for low in files.writer.run(partitions.begin_to_drop):
                    if not partitions.drop(at, low, at_once=at_once):
                        return
                    files.writer.run(partial(partitions.forget, low=low))
        except psycopg.Error as error:
            log.info(
                "%s: pruned partitions are dropped later: %s",
                self._database.display_name,
                error,
            )
        else:
            self._drops_after = 0.0

    def is_made(self) -> bool:
        if not self._open.is_open():
            with self._database.connect() as raw:
                return schema.is_made(Connection(raw))
        return True

    def size_bytes(self) -> int:
        # Partitions are tables of their own; a partitioned table itself has no size.
        (size,) = self._open().readers.one(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relkind IN ('r', 'm') AND relnamespace = current_schema()::regnamespace"
        )
        return int(size)

    def risk_of_loss(self) -> str:
        names, level, standbys = self._open().readers.one(
            "SELECT current_setting('synchronous_standby_names'),"
            " current_setting('synchronous_commit'),"
            " (SELECT count(*) FROM pg_stat_replication)"
        )
        has_standbys = standbys or self._replica or self._database.url.has_several_hosts
        if not has_standbys or (names and level not in ("off", "local")):
            return ""
        return (
            f"{self._database.display_name} has standbys, but no synchronous one, so a failover"
            " may lose the last blocks; to prevent that, set synchronous_standby_names on the"
            " primary, and leave synchronous_commit on"
        )

    def backup(
        self,
        target: str | os.PathLike[str],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        raise NotSupported("a store in PostgreSQL can't be copied to a file", "use pg_dump")

    def compact(self, progress: Callable[[int, int], None] | None = None) -> tuple[int, int]:
        raise NotSupported(
            "a store in PostgreSQL frees space by itself", "VACUUM FULL frees it at once"
        )
