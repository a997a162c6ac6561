"""Create or migrate the tables of a store when it is opened, or refuse the store.

A store of version 0.1 is migrated from the highest block downwards, a few rows at a time. A
transaction both copies rows and deletes the old ones, so a migration can be interrupted and
continue later. The file grows little, because new rows reuse the pages of deleted rows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

from sqlite_utils import Database

from ...domain.abci import ExecTxResult
from ...domain.block import BlockMeta
from ...errors import StoreError
from ...protocol.comet.hashes import tx_hash
from ...protocol.comet.validators import is_rescaled_next
from ..sql import block_writes, blocks, chain, evidence, index_steps, prune, state
from ..sql.packed.blocks import place, slices
from . import v1
from .engine import Connection
from .tables import CORE, OWNERS, create_new

log = logging.getLogger("flask_noderpc.store")

# Name of the step that is recorded while the blocks of a version 0.1 store are being copied.
_COPYING = "m100_copying_blocks"

# A store with more blocks is not migrated when it is opened, because that takes longer than a
# few seconds.
_MAX_BLOCKS_WHEN_OPENED = 10_000

# Seconds per transaction, as long as a transaction of a node, so that other writers don't wait
# longer than usual.
_STEP_S = 0.02

# Number of rows of an old table deleted per step, and of heights whose priorities are copied.
_ROWS, _HEIGHTS = 2_000, 64
# For large blocks: bytes of transactions copied per step, and transactions deleted per step.
_BYTES, _TXS = 400_000, 100

_OLD_INDEX = tuple(f"{kind}_{part}" for kind in ("tx", "block") for part in ("values", "hits"))


def refuse_foreign(connection: Connection) -> None:
    """Raise :exc:`StoreError` if the database belongs to another program, without writing to
    it."""
    # Check in this order, because another process may create all tables, in one transaction,
    # between the two checks.
    if not is_empty(connection) and not CORE.applied(connection):
        raise StoreError(
            "expected a flask-noderpc store, got a database of another program: name another"
            " file (NODERPC_DATABASE)"
        )


def is_empty(connection: Connection) -> bool:
    """Return true if the database has no tables."""
    found = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    return found is None


def prepare(connection: Connection) -> bool:
    """Create the tables of a new store, or migrate tables of an earlier version; return true
    if another call in a new transaction must continue.

    Raise :exc:`StoreError` for a store that can't be opened.
    """
    if _is_v1(connection):
        if _COPYING in CORE.applied(connection) or _is_large(connection):
            raise _unmigrated()
        log.warning("migrating the store of flask-noderpc 0.1 to the tables of this version")
        remaining = begin_migration(connection)
        while remaining is not None:
            remaining = migrate_some(connection)
    return _go_on(connection)


def announce(connection: Connection) -> None:
    """Log the migration steps that are about to run on a store of an earlier version."""
    if CORE.applied(connection) and not _is_v1(connection) and (names := _missing(connection)):
        log.warning("migrating the store of an earlier version: %s", ", ".join(names))


def _missing(connection: Connection) -> list[str]:
    return [step.name for owner in OWNERS for step in owner.missing(connection)]


def check(connection: Connection) -> None:
    """Raise :exc:`StoreError` if a store that is opened read-only has tables of another
    version."""
    if _is_v1(connection):
        raise _unmigrated()
    if missing := _missing(connection):
        raise StoreError(
            f"the store was created by an earlier flask-noderpc, and lacks the migrations"
            f" {', '.join(missing)}: start its node, or run `noderpc migrate`"
        )


def _go_on(connection: Connection) -> bool:
    return any(owner.apply_missing(connection) for owner in OWNERS)


def _unmigrated() -> StoreError:
    return StoreError(
        "the store was created by flask-noderpc 0.1: run `noderpc migrate`, which can be"
        " interrupted and then continues at the next call"
    )


def begin_migration(connection: Connection) -> int | None:
    """Begin or continue the migration of a version 0.1 store; return the number of remaining
    blocks, ``None`` if all are copied. Raise :exc:`StoreError` for a store that can't be
    migrated."""
    if not _is_v1(connection):
        if not CORE.applied(connection):
            raise StoreError("not a flask-noderpc database; name the file of a chain")
        return None
    if _COPYING not in CORE.applied(connection):
        v1.complete(connection)
        for table in (*v1.RENAMED, *_OLD_INDEX):
            connection.execute(f"ALTER TABLE {table} RENAME TO v1_{table}")
        create_new(Database(connection))
        CORE.record(connection, _COPYING)
    return _blocks_left(connection)


def migrate_some(connection: Connection) -> int | None:
    """Continue the migration of a version 0.1 store for 20 ms; return the number of remaining
    blocks, ``None`` if all are copied."""
    deadline = time.monotonic() + _STEP_S
    for part in _parts(connection, deadline):
        part()
        if time.monotonic() > deadline:
            return _blocks_left(connection)
    _end_pruned(connection)
    _drop(connection)
    CORE.forget(connection)
    CORE.record(connection, CORE.names[0])
    return None


def _is_v1(connection: Connection) -> bool:
    """Return true for a version 0.1 store, including one whose blocks are being copied."""
    return v1.is_applied([step for step in CORE.applied(connection) if step != _COPYING])


def _is_large(connection: Connection) -> bool:
    (count,) = connection.execute("SELECT count(*) FROM blocks").fetchone()
    return bool(count > _MAX_BLOCKS_WHEN_OPENED)


def _blocks_left(at: Connection) -> int:
    """Return the number of blocks that are not copied yet."""
    # Compute the number from the heights: counting the rows would read an index at each step.
    low, high = at.execute(
        "SELECT (SELECT min(height) FROM v1_blocks), (SELECT max(height) FROM v1_blocks)"
    ).fetchone()
    return 0 if low is None else int(high - low + 1)


def _parts(at: Connection, deadline: float) -> Iterator[Callable[[], object]]:
    """Yield functions that do the remaining work of the migration in small parts."""
    if v1.chain(at) is not None:
        yield partial(_copy_chain, at)
    elif not at.execute("SELECT 1 FROM chain").fetchone():
        return
    yield from _set_parts(at)
    chain_id: str = at.execute("SELECT chain_id FROM chain").fetchone()[0]
    while (height := v1.highest(at)) is not None:
        yield partial(_copy_block, at, height, chain_id, deadline)
    for height in v1.commit_heights(at):
        yield partial(_copy_commit, at, height)
    for table in (f"v1_{name}" for name in _OLD_INDEX):
        while _has_rows(at, table):
            yield partial(_delete_some, at, table)


def _set_parts(at: Connection) -> Iterator[Callable[[], object]]:
    (base,) = at.execute(
        "SELECT coalesce(min((SELECT min(height) FROM v1_blocks),"
        " coalesce((SELECT min(height) FROM blocks), 1 << 62)), 0)"
    ).fetchone()
    while _has_rows(at, "validator_heights"):
        yield partial(_copy_priorities, at, base)
    while (since := v1.next_set(at)) is not None:
        yield partial(_copy_set, at, since)


def _has_rows(at: Connection, table: str) -> bool:
    return at.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None


def _copy_chain(at: Connection) -> None:
    found = v1.chain(at)
    assert found is not None
    chain.write(at, *found)
    for since, params in v1.params(at):
        state.write_params(at, since, params)
    for piece in v1.pending_evidence(at):
        evidence.add(at, piece)
    at.execute("DELETE FROM v1_chain")


def _copy_priorities(at: Connection, base: int) -> None:
    """Copy priorities of the next heights, lowest first, where this version stores them: at
    multiples of ``PRIORITIES_EACH``, where a set begins or was rescaled, and up to ``base``,
    as evidence may need them."""
    found, members_of = v1.priorities(at, _HEIGHTS), cache(partial(v1.members, at))
    is_rescaled = True
    for height, since, priorities, proposer in found:
        members = v1.with_priorities(members_of(since), priorities, proposer)
        if (
            is_rescaled
            or height % state.PRIORITIES_EACH == 0
            or height == since
            or height <= base
        ):
            state.write_priorities(at, height, members)
        is_rescaled = is_rescaled_next(members)
    at.execute("DELETE FROM validator_heights WHERE height <= ?", (found[-1][0],))


def _copy_set(at: Connection, since: int) -> None:
    state.write_members(at, since, v1.members(at, since))
    at.execute("DELETE FROM v1_validators WHERE members_since = ?", (since,))


def _copy_block(at: Connection, height: int, chain_id: str, deadline: float) -> None:
    """Copy a block, or the next part of a large block; delete the old rows once all is
    copied."""
    row = at.execute("SELECT events FROM blocks WHERE height = ?", (height,)).fetchone()
    if row is None and not _copy_rows(at, height, chain_id):
        return
    if (row is None or row[0] is None) and not _copy_index(at, height, deadline):
        return
    _delete_from(at, height)


def _copy_rows(at: Connection, height: int, chain_id: str) -> bool:
    """Copy some transactions of a block, and after the last one the block itself; return true
    if all is copied."""
    (first,) = at.execute(
        "SELECT count(*) FROM txs WHERE place BETWEEN ? AND ?", blocks.places(height, height)
    ).fetchone()
    found = v1.txs(at, height, first, _BYTES)
    txs, results = [tx for tx, _ in found], [result for _, result in found]
    block_writes.write_slices(at, slices(height, txs, results, first))
    tx_hashes = [tx_hash(tx) for tx in txs]
    rows = block_writes.tx_rows(height, tx_hashes, results, first=first)
    block_writes.write_txs(at, rows)
    blocks_left = first + len(found)
    if blocks_left < v1.tx_count(at, height):
        return False
    block, block_results = v1.block(at, height, chain_id)
    meta = BlockMeta(*v1.block_id(at, height), block.header, blocks_left)
    # Use empty transaction results: the row of the block only contains their number.
    block_results = replace(block_results, tx_results=(ExecTxResult(),) * blocks_left)
    block_writes.write_blocks(at, [block_writes.BlockRow(meta, block_results)])
    evidence.write(at, height, block.evidence)
    _copy_commit(at, height)
    return True


def _copy_index(at: Connection, height: int, deadline: float) -> bool:
    """Index transactions of a block until the deadline; return true if all are indexed."""
    found = at.execute(
        "SELECT place FROM txs WHERE place BETWEEN ? AND ? AND events IS NULL ORDER BY place",
        blocks.places(height, height),
    )
    indexed = {place(height, position) for position in v1.indexed(at, height)}
    left = [here for (here,) in found if here in indexed]
    return index_steps.continue_indexing(at, height, deadline, left)


def _copy_commit(at: Connection, height: int) -> None:
    commit = v1.commit(at, height)
    if commit is not None:
        block_writes.write_commits(at, [commit])
    at.execute("DELETE FROM v1_commits WHERE height = ?", (height,))
    at.execute("DELETE FROM signatures WHERE height = ?", (height,))


def _delete_from(at: Connection, height: int) -> None:
    """Delete some transactions of a block, and after the last one the block itself."""
    first, last, position = at.execute(
        "SELECT min(seq), max(seq), max(position) FROM"
        " (SELECT seq, position FROM v1_txs WHERE height = ? ORDER BY position LIMIT ?)",
        (height, _TXS),
    ).fetchone()
    at.execute("DELETE FROM v1_tx_hits WHERE place BETWEEN ? AND ?", (first, last))
    at.execute("DELETE FROM v1_txs WHERE height = ? AND position <= ?", (height, position))
    if v1.tx_count(at, height):
        return
    at.execute("DELETE FROM v1_block_hits WHERE place = ?", (height,))
    for table in ("v1_evidence", "v1_blocks"):
        at.execute(f"DELETE FROM {table} WHERE height = ?", (height,))


def _delete_some(at: Connection, table: str) -> None:
    if table.endswith("_hits"):
        at.execute(f"DELETE FROM {table}")
        return
    at.execute(f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} LIMIT ?)", (_ROWS,))


def _end_pruned(at: Connection) -> None:
    """In a pruned store, set the last height of validator sets and parameters whose following
    rows were pruned."""
    base, initial = at.execute(
        "SELECT (SELECT min(height) FROM blocks), (SELECT initial_height FROM chain)"
    ).fetchone()
    if base is not None and base > initial:
        prune.forget_state(at, base)


def _drop(at: Connection) -> None:
    for table in (*v1.RENAMED, *_OLD_INDEX):
        at.execute(f"DROP TABLE v1_{table}")
    for table in ("signatures", "validator_heights"):
        at.execute(f"DROP TABLE {table}")
