"""Migration of a store of version 0.1: the highest block first, a few rows at a time.

What is copied is deleted in the same transaction. So it can end anywhere and go on later, and
the file grows little: the new rows take the pages of the old ones.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import partial

from ...domain.block import Block, BlockMeta
from ...protocol.comet.hashes import tx_hash
from . import blocks, chain, evidence, index, state, v1

Connection = sqlite3.Connection

# Others that read the file wait no longer than for a transaction of a node.
_STEP_S = 0.03

# Rows of an old table that are deleted at once.
_ROWS = 2_000

_OLD_INDEX = tuple(f"{kind}_{part}" for kind in ("tx", "block") for part in ("values", "hits"))


def begin(at: Connection) -> None:
    """Rename the old tables; the new ones can be made then."""
    for table in (*v1.RENAMED, *_OLD_INDEX):
        at.execute(f"ALTER TABLE {table} RENAME TO v1_{table}")


def count(at: Connection) -> int:
    """Return the number of blocks that are still to be copied."""
    found: int = at.execute("SELECT count(*) FROM v1_blocks").fetchone()[0]
    return found


def step(at: Connection) -> int | None:
    """Do the next part of the migration; return the number of blocks that are still to be
    copied, and ``None`` when everything is done."""
    deadline = time.monotonic() + _STEP_S
    for part in _parts(at):
        part()
        if time.monotonic() > deadline:
            return count(at)
    _drop(at)
    return None


def _parts(at: Connection) -> Iterator[Callable[[], object]]:
    """Yield what is left to do, in small parts."""
    found = v1.chain(at)
    if found is None and not at.execute("SELECT 1 FROM chain").fetchone():
        return
    if found is not None:
        yield partial(_copy_chain, at)
    (base,) = at.execute(
        "SELECT coalesce(min((SELECT min(height) FROM v1_blocks),"
        " coalesce((SELECT min(height) FROM blocks), 1 << 62)), 0)"
    ).fetchone()
    while (since := v1.next_set(at)) is not None:
        yield partial(_copy_set, at, since, base)
    chain_id: str = at.execute("SELECT chain_id FROM chain").fetchone()[0]
    while (height := v1.highest(at)) is not None:
        yield partial(_copy_block, at, height, chain_id)
    for height in v1.commit_heights(at):
        yield partial(_copy_commit, at, height)
    for table in ("validator_heights", *(f"v1_{name}" for name in _OLD_INDEX)):
        while at.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():
            yield partial(_delete_some, at, table)


def _copy_chain(at: Connection) -> None:
    found = v1.chain(at)
    assert found is not None
    chain.write(at, *found)
    for since, params in v1.params(at):
        state.write_params(at, since, params)
    for piece in v1.pending_evidence(at):
        evidence.add(at, piece)
    at.execute("DELETE FROM v1_chain")


def _copy_set(at: Connection, since: int, base: int) -> None:
    members = v1.members(at, since)
    state.write_members(at, since, members)
    for height, priorities, proposer in v1.priorities(at, since, state.PRIORITIES_EACH, base):
        found = v1.with_priorities(members, priorities, proposer)
        state.write_priorities(at, height, found)
    at.execute("DELETE FROM v1_validators WHERE members_since = ?", (since,))


def _copy_block(at: Connection, height: int, chain_id: str) -> None:
    block, results, left_out = v1.block(at, height, chain_id)
    meta = BlockMeta(*v1.block_id(at, height), block.header, len(block.txs))
    events = index.write_block(at, height, results)
    blocks.write(at, meta, block.txs, results, events)
    hashes = [tx_hash(tx) for tx in block.txs]
    positions = [at for at in range(len(hashes)) if at not in left_out]
    tx_events = index.write_txs(at, height, results, positions)
    blocks.write_txs(at, height, hashes, results, tx_events)
    evidence.write(at, height, block.evidence)
    _copy_commit(at, height)
    _delete_block(at, height, block)


def _copy_commit(at: Connection, height: int) -> None:
    commit = v1.commit(at, height)
    if commit is not None:
        blocks.write_commit(at, commit)
    at.execute("DELETE FROM v1_commits WHERE height = ?", (height,))
    at.execute("DELETE FROM signatures WHERE height = ?", (height,))


def _delete_block(at: Connection, height: int, block: Block) -> None:
    if block.txs:
        at.execute(
            "DELETE FROM v1_tx_hits WHERE place BETWEEN"
            " (SELECT min(seq) FROM v1_txs WHERE height = ?)"
            " AND (SELECT max(seq) FROM v1_txs WHERE height = ?)",
            (height, height),
        )
    at.execute("DELETE FROM v1_block_hits WHERE place = ?", (height,))
    for table in ("v1_txs", "v1_evidence", "v1_blocks"):
        at.execute(f"DELETE FROM {table} WHERE height = ?", (height,))


def _delete_some(at: Connection, table: str) -> None:
    key = "height" if table == "validator_heights" else "id"
    if table.endswith("_hits"):
        at.execute(f"DELETE FROM {table}")
        return
    at.execute(
        f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} LIMIT ?)", (_ROWS,)
    )


def _drop(at: Connection) -> None:
    for table in (*v1.RENAMED, *_OLD_INDEX):
        at.execute(f"DROP TABLE v1_{table}")
    for table in ("signatures", "validator_heights"):
        at.execute(f"DROP TABLE {table}")
