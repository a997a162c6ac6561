"""SQL of PostgreSQL for the SQL stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from ..backends.sql.connection import Connection, Engine
from . import partitions

CHANNEL = "noderpc"
"""Notification channel for changes of the chain."""


class Postgres(Engine):
    """PostgreSQL's SQL. Write transactions run concurrently in READ COMMITTED, and lock rows
    that other transactions must not change meanwhile."""

    integrity_error = psycopg.IntegrityError
    for_update = " FOR UPDATE"
    counts_rows = True
    heights = "block_hashes"
    lowest_kept = (
        "(SELECT coalesce(min(height), 0) FROM block_hashes"
        " WHERE EXISTS (SELECT 1 FROM partitions WHERE has_leftovers))"
    )
    tx_hashes = "tx_hashes"
    hits = "all_hits"
    # A row of hits and its index entry take about 110 bytes, and most values occur only once.
    keeps_first_hits = True
    # Call functions with two statements: in a single statement, a height from another table
    # would be looked up in all partitions.
    header_by_hash = "SELECT * FROM noderpc_header(?)"
    tx_by_hash = "SELECT * FROM noderpc_tx(:hash)"
    latest_pending = "SELECT last_seq FROM mempool_totals WHERE last_seq > 0"

    def text(self, value: str) -> object:
        # Store event keys and values as bytea, because PostgreSQL's text has no U+0000.
        return value.encode()

    def to_text(self, stored: Any) -> str:
        text: str = stored.decode()
        return text

    def unique_key(self, value: str) -> str:
        # Index a hash, because an entry of a B-tree has at most 2,704 bytes.
        return f"sha256({value})"

    def prefix_key(self, value: str) -> str:
        return f"substring({value}, 1, 500)"

    def integers_param(self, values: Sequence[int]) -> object:
        return list(values)

    def is_one_of(self, column: str) -> str:
        return f"{column} = ANY(CAST(? AS bigint[]))"

    def contains(self, column: str) -> str:
        return f"position(CAST(? AS bytea) IN {column}) > 0"

    def each_event(self, events: str) -> str:
        return f"generate_series(0, json_array_length({events}::json) - 1) AS e(key)"

    def each_value(self, events: str) -> str:
        return f"json_array_elements({events}::json) AS e(value), {_ids('e.value')} AS i"

    def values_of(self, events: str, event: str) -> str:
        return f"{_ids(f'{events}::json -> CAST({event} AS integer)')} AS i"

    def hit_indexes(self, at: Connection) -> list[str]:
        found = at.execute(
            "SELECT relname FROM pg_class WHERE right(relname, 10) = '_unindexed'"
            " AND relkind = 'r' AND pg_table_is_visible(oid)"
        )
        return [name.removesuffix("_unindexed") for (name,) in found]

    def make_hit_tables(self, at: Connection, name: str) -> None:
        at.execute(
            f"CREATE TABLE {name}_hits (key bigint NOT NULL, place bigint NOT NULL,"
            " PRIMARY KEY (key, place))"
        )
        at.execute(f"CREATE TABLE {name}_unindexed (height bigint PRIMARY KEY)")

    def now(self, at: Connection) -> int:
        # Use the database's clock, because the clocks of the hosts differ.
        microseconds: int = at.execute(
            "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)"
        ).fetchone()[0]
        return microseconds * 1000

    def data_version(self, at: Connection) -> object:
        # The revision also changes when a backfill adds the results of a trusted block.
        return at.execute(
            "SELECT (SELECT revision FROM chain), (SELECT max(number) FROM rewinds),"
            f" (SELECT min(height) FROM {self.heights})"
        ).fetchone()

    def prepare_range(self, at: Connection, low: int, high: int) -> None:
        partitions.make_room(at, low, high)

    def dropped_below(self, at: Connection, base: int) -> int:
        return partitions.dropped_below(at, base)

    def lock_mempool(self, at: Connection) -> None:
        # With this lock, transactions become visible in the order of their numbers, and the
        # limits hold over all hosts.
        at.execute("SELECT 1 FROM mempool_totals FOR UPDATE")

    def announce(self, at: Connection) -> None:
        # PostgreSQL sends the notification at the commit, once per transaction.
        at.execute(f"NOTIFY {CHANNEL}")


def _ids(array: str) -> str:
    return f"LATERAL (SELECT CAST(value AS bigint) FROM json_array_elements_text({array}))"


POSTGRES = Postgres()
