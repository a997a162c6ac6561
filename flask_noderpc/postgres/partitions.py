"""Partitions of the tables that have a row for each block or transaction, by ranges of
heights.

The table ``partitions`` lists them, without a gap between their ranges; it only changes
together with the chain, in one transaction at a time. A new partition is created as a separate
table and then attached, which blocks neither reads nor writes. There is no default partition,
as each ATTACH would have to check its rows.

Pruning removes the blocks of a partition from ``blocks`` and from the index and its counts,
but leaves their transactions, hits and commits in place. These are not found, because reads of
transactions begin at the lowest block. Finally the whole partition is detached and dropped.
"""

from __future__ import annotations

import time

from psycopg import errors

from ..backends.sql.blocks import LAST_HEIGHT, places
from ..backends.sql.connection import Connection as AnyConnection
from ..backends.sql.packed.blocks import POSITION_BITS
from ..errors import StoreError

HEIGHTS = 1 << 18
"""Number of heights in a partition; 30 million blocks have 115 partitions. With more
partitions, a search of all heights would be slower: it plans over all of them, and locks each
with its indexes."""

TABLES = {
    "blocks": 0,
    "commits": 0,
    "results": 0,
    "missed_votes": 0,
    "block_hits": 0,
    "txs": POSITION_BITS,
    "tx_slices": POSITION_BITS,
    "tx_hits": POSITION_BITS,
}
"""Partitioned tables, with the number of low bits of their key that are not part of the
height."""

# The next partition is created when 1/8 of the heights of the last one are left.
_AHEAD = 8

LOCK_TIMEOUT = "15s"
"""Time for which a write waits for a lock, as PostgreSQL's ``lock_timeout``."""
# Lock timeout of a step that is not needed yet, and that the next block tries again.
_SHORT_TIMEOUT = "50ms"
# Lock timeout of DETACH, which waits for transactions that read the table; after a timeout,
# the next pruning continues.
_DETACH_TIMEOUT = "1s"

# Seconds to wait until older reads have ended, and seconds between two checks.
_PATIENCE_S, _POLL_S = 1.0, 0.005

# Key of the advisory lock for removing partitions; the value is arbitrary.
_LOCK = 0x6E6F64657271


def make_room(at: AnyConnection, low: int, high: int) -> None:
    """Add the missing partitions for a range of heights, and the next one if it is needed
    soon; raise :exc:`StoreError` if a partition in the range is being removed."""
    bottom, top, kept_from, base = at.execute(
        "SELECT min(low), max(high), (SELECT max(high) FROM partitions WHERE is_dropped),"
        " (SELECT min(height) FROM block_hashes) FROM partitions"
    ).fetchone()
    if kept_from is not None and low < kept_from:
        raise StoreError(
            f"the blocks below {kept_from} are being removed: prune again to finish that"
        )
    if bottom is None:
        bottom = top = _below(low + 1)
    while top <= high:
        _add(at, top, _above(top))
        top = _above(top)
    while low < bottom:
        _add(at, _below(bottom), bottom)
        bottom = _below(bottom)
    if top <= high + HEIGHTS // _AHEAD and top <= LAST_HEIGHT:
        _try_to_add(at, top, _above(top))
    if base is not None and high < base:
        _clear(at, low, high)
        if bottom > 0 and low < bottom + HEIGHTS // _AHEAD:
            _try_to_add(at, _below(bottom), bottom)


def _above(height: int) -> int:
    """Return the first height of the partition after the one of this height."""
    return height - height % HEIGHTS + HEIGHTS


def _below(height: int) -> int:
    """Return the first height of the partition that has the height below this one."""
    return (height - 1) - (height - 1) % HEIGHTS


def add_existing(at: AnyConnection) -> None:
    """Make the renamed tables of an earlier version (``blocks_0`` and so on) the first
    partitions of the new tables."""
    lowest, highest = at.execute(
        "SELECT least((SELECT min(height) FROM blocks_0), (SELECT min(height) FROM commits_0)),"
        " greatest((SELECT max(height) FROM blocks_0), (SELECT max(height) FROM commits_0))"
    ).fetchone()
    low, high = 0, _above(highest or 0)
    if lowest is not None:
        low = _below(lowest + 1)
    at.execute("INSERT INTO partitions (low, high) VALUES (?, ?)", (low, high))
    for table in TABLES:
        if low:
            at.execute(f"ALTER TABLE {name(table, 0)} RENAME TO {name(table, low)}")
        # This reads each row once.
        attach(at, table, low, high)


def _add(at: AnyConnection, low: int, high: int) -> None:
    """Add the partition of a range of heights, whose end is exclusive."""
    at.execute("INSERT INTO partitions (low, high) VALUES (?, ?)", (low, high))
    for table in TABLES:
        at.execute(f"CREATE TABLE {name(table, low)} (LIKE {table} INCLUDING ALL)")
        attach(at, table, low, high)


def attach(at: AnyConnection, table: str, low: int, high: int) -> None:
    """Attach the partition from ``low`` to ``high`` to a table."""
    bits = TABLES[table]
    # Above the last height, there is no place that fits 64 bits.
    above = "MAXVALUE" if high > LAST_HEIGHT else str(high << bits)
    at.execute(
        f"ALTER TABLE {table} ATTACH PARTITION {name(table, low)}"
        f" FOR VALUES FROM ({low << bits}) TO ({above})"
    )


def name(table: str, low: int) -> str:
    """Return the name of a table's partition that begins at height ``low``."""
    return f"{table}_{low}"


def _try_to_add(at: AnyConnection, low: int, high: int) -> None:
    """Add a partition that is not needed yet, unless other transactions lock the tables."""
    at.execute("SAVEPOINT ahead")
    at.execute(f"SET LOCAL lock_timeout = '{_SHORT_TIMEOUT}'")
    try:
        _add(at, low, high)
    except errors.LockNotAvailable:
        at.execute("ROLLBACK TO ahead")
    else:
        at.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    at.execute("RELEASE ahead")


# Pruning removes whole partitions.


def dropped_below(at: AnyConnection, base: int) -> int:
    """Return the end of the highest partition that can be dropped once the blocks below
    ``base`` are removed, and mark these partitions; 0 if no partition can be dropped."""
    # Keep a partition that ends at ``base``, as the lowest block needs its parent's commit,
    # and one that has the last block, which is never removed.
    (found,) = at.execute(
        "SELECT max(high) FROM partitions WHERE high <"
        " least(CAST(? AS bigint), (SELECT max(height) FROM block_hashes))",
        (base,),
    ).fetchone()
    if found is None:
        return 0
    at.execute(
        "UPDATE partitions SET has_leftovers = true WHERE high <= ? AND NOT has_leftovers",
        (found,),
    )
    return int(found)


def _clear(at: AnyConnection, low: int, high: int) -> None:
    """Delete rows of transactions and hits that an interrupted pruning has left at heights
    without a block; commits need not be deleted, as writes replace them."""
    has_leftovers = at.execute(
        "SELECT 1 FROM partitions WHERE low <= ? AND high > ? AND has_leftovers", (high, low)
    ).fetchone()
    if not has_leftovers:
        return
    args = (*places(low, high), *places(low, high))
    at.execute(
        "DELETE FROM tx_hits AS h USING (SELECT t.place, i.value FROM txs AS t,"
        f" {at.engine.each_value('t.events')} WHERE t.place BETWEEN ? AND ?) AS gone"
        " WHERE h.value_id = gone.value AND h.place = gone.place AND h.place BETWEEN ? AND ?",
        args,
    )
    for table in ("txs", "tx_slices"):
        at.execute(f"DELETE FROM {table} WHERE place BETWEEN ? AND ?", places(low, high))


UNUSED = "SELECT low FROM partitions WHERE high < (SELECT min(height) FROM block_hashes)"
"""SELECT of the first heights of partitions that have no block and can be dropped."""


def begin_to_drop(at: AnyConnection) -> list[int]:
    """Mark the partitions without a block as dropped, so that no process writes to them;
    return their first heights."""
    found = at.execute(f"{UNUSED} ORDER BY low").fetchall()
    lows = [low for (low,) in found]
    at.execute(
        "UPDATE partitions SET is_dropped = true"
        f" WHERE NOT is_dropped AND {at.engine.is_one_of('low')}",
        (at.engine.integers_param(lows),),
    )
    return lows


def drop(at: AnyConnection, low: int, *, at_once: bool) -> bool:
    """Detach and drop a marked partition, or continue an interrupted drop; return false if
    another process drops or reads it.

    ``at`` must not be in a transaction; with ``at_once``, each table is dropped in a single
    transaction. Raise :exc:`psycopg.Error` if other transactions block this for long.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while _is_read(at, low):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    # Make replicas wait here for snapshots that see the partition, while they hold no lock:
    # removing the old row of the mark conflicts with these snapshots.
    at.execute("VACUUM (TRUNCATE false) partitions")
    for table in TABLES:
        if at_once:
            is_dropped = _drop_at_once(at, table, name(table, low))
        else:
            is_dropped = _drop_concurrently(at, table, name(table, low))
        if not is_dropped:
            return False
    return True


# Finds a snapshot from before the partition was marked, which may still see its blocks.
_OLD_SNAPSHOT = (
    "SELECT 1 FROM pg_stat_activity AS s, partitions AS p WHERE low = ?"
    " AND datname = current_database() AND pid <> pg_backend_pid()"
    " AND age(backend_xmin) >= age(p.xmin) LIMIT 1"
)


def _is_read(at: AnyConnection, low: int) -> bool:
    """Return true while other transactions may still read the blocks of a marked partition."""
    return at.execute(_OLD_SNAPSHOT, (low,)).fetchone() is not None


# Returns true if DETACH of a partition has begun; no row if the table does not exist or is not
# attached.
_IS_DETACHING = (
    "SELECT {pending} FROM pg_inherits WHERE inhrelid = to_regclass(?)"
    " AND inhparent = to_regclass(?)"
)


def _drop_at_once(at: AnyConnection, table: str, partition: str) -> bool:
    # If a statement fails, the caller closes the connection, which ends the transaction.
    at.execute("BEGIN")
    at.execute(f"SET LOCAL lock_timeout = '{_DETACH_TIMEOUT}'")
    (is_first,) = at.execute("SELECT pg_try_advisory_xact_lock(?)", (_LOCK,)).fetchone()
    if is_first:
        attached = _IS_DETACHING.format(pending="false")
        if at.execute(attached, (partition, table)).fetchone():
            at.execute(f"ALTER TABLE {table} DETACH PARTITION {partition}")
        at.execute(f"DROP TABLE IF EXISTS {partition}")
    at.execute("COMMIT")
    return bool(is_first)


def _drop_concurrently(at: AnyConnection, table: str, partition: str) -> bool:
    """Detach a partition without blocking reads, and drop it."""
    (is_first,) = at.execute("SELECT pg_try_advisory_lock(?)", (_LOCK,)).fetchone()
    if not is_first:
        return False
    try:
        at.execute(f"SET lock_timeout = '{_DETACH_TIMEOUT}'")
        detaching = _IS_DETACHING.format(pending="inhdetachpending")
        found = at.execute(detaching, (partition, table)).fetchone()
        if found is not None:
            how = "FINALIZE" if found[0] else "CONCURRENTLY"
            at.execute(f"ALTER TABLE {table} DETACH PARTITION {partition} {how}")
        at.execute(f"DROP TABLE IF EXISTS {partition}")
    finally:
        at.execute("SELECT pg_advisory_unlock(?)", (_LOCK,))
    return True


def forget(at: AnyConnection, low: int) -> None:
    """Remove a dropped partition from the list."""
    at.execute("DELETE FROM partitions WHERE low = ? AND is_dropped", (low,))
