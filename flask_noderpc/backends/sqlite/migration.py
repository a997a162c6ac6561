"""Migration of a store of version 0.1: the highest block first, a few rows at a time.

What is copied is deleted in the same transaction. So it can end anywhere and go on later, and
the file grows little: the new rows take the pages of the old ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

from ...domain.abci import ExecTxResult
from ...domain.block import BlockMeta
from ...protocol.comet.hashes import tx_hash
from ...protocol.comet.validators import is_rescaled_next
from ..sql import block_writes, blocks, chain, evidence, index_steps, prune, state
from ..sql.packed import results as packed_results
from . import v1
from .engine import Connection

# Others that read the file wait no longer than for a transaction of a node.
_STEP_S = 0.02

# Rows of an old table that are deleted at once, and heights whose priorities are copied.
_ROWS, _HEIGHTS = 2_000, 64
# Of a large block: bytes that are copied at once, and transactions that are deleted.
_BYTES, _TXS = 400_000, 100

_OLD_INDEX = tuple(f"{kind}_{part}" for kind in ("tx", "block") for part in ("values", "hits"))


def begin(at: Connection) -> None:
    """Rename the old tables; the new ones can be made then."""
    for table in (*v1.RENAMED, *_OLD_INDEX):
        at.execute(f"ALTER TABLE {table} RENAME TO v1_{table}")


def count(at: Connection) -> int:
    """Return the number of blocks that are still to be copied."""
    # To count the rows would read an index, at each step.
    low, high = at.execute(
        "SELECT (SELECT min(height) FROM v1_blocks), (SELECT max(height) FROM v1_blocks)"
    ).fetchone()
    return 0 if low is None else int(high - low + 1)


def step(at: Connection) -> int | None:
    """Do the next part of the migration; return the number of blocks that are still to be
    copied, and ``None`` when everything is done."""
    deadline = time.monotonic() + _STEP_S
    for part in _parts(at, deadline):
        part()
        if time.monotonic() > deadline:
            return count(at)
    _end_pruned(at)
    _drop(at)
    return None


def _parts(at: Connection, deadline: float) -> Iterator[Callable[[], object]]:
    """Yield what is left to do, in small parts."""
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
    """Copy the priorities of the lowest heights, where they are stored from now on: each so
    many heights, where a set begins to hold or was rescaled, and below ``base``, which evidence
    needs."""
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
    """Copy a block, or the next part of a large one; delete it when it is copied."""
    row = at.execute("SELECT events FROM blocks WHERE height = ?", (height,)).fetchone()
    if row is None and not _copy_rows(at, height, chain_id):
        return
    if (row is None or row[0] is None) and not _copy_index(at, height, deadline):
        return
    _delete_from(at, height)


def _copy_rows(at: Connection, height: int, chain_id: str) -> bool:
    """Copy some transactions of a block; return true if the block itself is copied, as these
    were the last."""
    (first,) = at.execute(
        "SELECT count(*) FROM txs WHERE place BETWEEN ? AND ?", blocks.places(height, height)
    ).fetchone()
    found = v1.txs(at, height, first, _BYTES)
    txs, results = [tx for tx, _ in found], [result for _, result in found]
    block_writes.write_slices(at, packed_results.slices(height, txs, results, first))
    tx_hashes = [tx_hash(tx) for tx in txs]
    rows = block_writes.tx_rows(height, tx_hashes, results, first=first)
    block_writes.write_txs(at, rows)
    count = first + len(found)
    if count < v1.tx_count(at, height):
        return False
    block, block_results = v1.block(at, height, chain_id)
    meta = BlockMeta(*v1.block_id(at, height), block.header, count)
    # Their number is all that is stored of them there.
    block_results = replace(block_results, tx_results=(ExecTxResult(),) * count)
    block_writes.write_blocks(at, [block_writes.BlockRow(meta, block_results)])
    evidence.write(at, height, block.evidence)
    _copy_commit(at, height)
    return True


def _copy_index(at: Connection, height: int, deadline: float) -> bool:
    """Index some transactions of a block; return true if the block is indexed."""
    found = at.execute(
        "SELECT place FROM txs WHERE place BETWEEN ? AND ? AND events IS NULL ORDER BY place",
        blocks.places(height, height),
    )
    indexed = {packed_results.place(height, position) for position in v1.indexed(at, height)}
    left = [here for (here,) in found if here in indexed]
    return index_steps.more(at, height, deadline, left)


def _copy_commit(at: Connection, height: int) -> None:
    commit = v1.commit(at, height)
    if commit is not None:
        block_writes.write_commits(at, [commit])
    at.execute("DELETE FROM v1_commits WHERE height = ?", (height,))
    at.execute("DELETE FROM signatures WHERE height = ?", (height,))


def _delete_from(at: Connection, height: int) -> None:
    """Delete some transactions of a block, and with the last ones the block."""
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
    """Say of sets and parameters how long they held, where what followed was pruned."""
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
