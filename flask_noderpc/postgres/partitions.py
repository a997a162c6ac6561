"""Partitions, by height, of the tables with a row for each block or transaction.

The table ``partitions`` lists them, in ranges of heights without a gap; it only changes in
transactions that change the chain, so one at a time. A new partition is made standalone and
then attached, which blocks neither reads nor writes. There is no default partition, as each
ATTACH would have to check its rows.

Pruning removes the blocks of a partition from ``blocks``, the index and its counts, and leaves
their transactions, hits and commits in place. Reads of transactions begin at the lowest block,
so they do not find these. Then the partition is detached and dropped.
"""

from __future__ import annotations

import time

from psycopg import errors

from ..backends.sql.blocks import LAST_HEIGHT, places
from ..backends.sql.connection import Connection as AnyConnection
from ..backends.sql.packed.blocks import POSITION_BITS
from ..errors import StoreError

HEIGHTS = 1 << 18
"""Number of heights in a partition: 115 partitions are 30 million blocks. A search of all
heights plans with all partitions, and locks each with its indexes."""

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
"""Tables, with the number of bits by which their key is longer than a height."""

# The next partition is made when the last one has this many heights left.
_AHEAD = 8

LOCK_TIMEOUT = "15s"
"""Time for which a write waits for a lock."""
# Time to wait for a lock for an optional step, which the next block tries again.
_SHORT_TIMEOUT = "50ms"
# DETACH waits for transactions that read the table; if it times out, the next pruning
# continues.
_DETACH_TIMEOUT = "1s"

# Seconds to wait for older reads, and between two checks.
_PATIENCE_S, _POLL_S = 1.0, 0.005

# Number of the advisory lock for removing partitions; the value is arbitrary.
_LOCK = 0x6E6F64657271


def make_room(at: AnyConnection, low: int, high: int) -> None:
    """Add the missing partitions of a range of heights, and soon the next one; raise
    :exc:`StoreError` if one of them is being removed."""
    bottom, top, kept_from, base = at.execute(
        "SELECT min(low), max(high), (SELECT max(high) FROM partitions WHERE is_dropped),"
        " (SELECT min(height) FROM block_hashes) FROM partitions"
    ).fetchone()
    if kept_from is not None and low < kept_from:
        raise StoreError(
            f"the blocks below {kept_from} are being removed: prune again, which ends that"
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
    """Return the height at which the next partition begins."""
    return height - height % HEIGHTS + HEIGHTS


def _below(height: int) -> int:
    """Return the first height of the partition of the height below."""
    return (height - 1) - (height - 1) % HEIGHTS


def add_existing(at: AnyConnection) -> None:
    """Give the only partition of tables that were renamed the name of a partition; see
    :func:`name`."""
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
        # Attaching reads each row once.
        attach(at, table, low, high)


def _add(at: AnyConnection, low: int, high: int) -> None:
    """Add the partition of a range of heights, whose end is exclusive."""
    at.execute("INSERT INTO partitions (low, high) VALUES (?, ?)", (low, high))
    for table in TABLES:
        at.execute(f"CREATE TABLE {name(table, low)} (LIKE {table} INCLUDING ALL)")
        attach(at, table, low, high)


def attach(at: AnyConnection, table: str, low: int, high: int) -> None:
    """Attach the partition of a table."""
    bits = TABLES[table]
    # No height is above the last one, whose places are the highest of 64 bits.
    above = "MAXVALUE" if high > LAST_HEIGHT else str(high << bits)
    at.execute(
        f"ALTER TABLE {table} ATTACH PARTITION {name(table, low)}"
        f" FOR VALUES FROM ({low << bits}) TO ({above})"
    )


def name(table: str, low: int) -> str:
    """Return the name of a table's partition."""
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
    """Return the end of the last partition that can be dropped if the blocks below a height are
    removed; 0 if none can be."""
    # The lowest block needs its parent's commit. The last block is never removed.
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
    """Delete rows that an interrupted pruning has left for heights without a block; commits are
    replaced when they are written."""
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
"""SELECT statement for the partitions without a block, which can be dropped."""


def begin_to_drop(at: AnyConnection) -> list[int]:
    """Mark these partitions, so that no process writes to them; return their first heights."""
    found = at.execute(f"{UNUSED} ORDER BY low").fetchall()
    lows = [low for (low,) in found]
    at.execute(
        "UPDATE partitions SET is_dropped = true"
        f" WHERE NOT is_dropped AND {at.engine.is_one_of('low')}",
        (at.engine.integers_param(lows),),
    )
    return lows


def drop(at: AnyConnection, low: int, *, at_once: bool) -> bool:
    """Detach a marked partition and drop it, or continue after an interruption; return false if
    another process drops or reads it.

    ``at`` must not be in a transaction; with ``at_once`` the drop happens in one. Raises
    :exc:`psycopg.Error` if other transactions read the tables for long.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while _is_read(at, low):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    for table in TABLES:
        if at_once:
            is_dropped = _drop_at_once(at, table, name(table, low))
        else:
            is_dropped = _drop_concurrently(at, table, name(table, low))
        if not is_dropped:
            return False
    return True


# Snapshots from before the partition was marked, which may see its blocks.
_OLD_SNAPSHOT = (
    "SELECT 1 FROM pg_stat_activity AS s, partitions AS p WHERE low = ?"
    " AND datname = current_database() AND pid <> pg_backend_pid()"
    " AND age(backend_xmin) >= age(p.xmin) LIMIT 1"
)


def _is_read(at: AnyConnection, low: int) -> bool:
    """Return true while other transactions may read the blocks of a marked partition."""
    return at.execute(_OLD_SNAPSHOT, (low,)).fetchone() is not None


# True if the DETACH of a partition has begun; no row if the table is not a partition or does
# not exist.
_IS_DETACHING = (
    "SELECT {pending} FROM pg_inherits WHERE inhrelid = to_regclass(?)"
    " AND inhparent = to_regclass(?)"
)


def _drop_at_once(at: AnyConnection, table: str, partition: str) -> bool:
    # If this fails, the caller closes the connection, which ends the transaction.
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
    """Detach and drop without a lock that reads would wait for."""
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
