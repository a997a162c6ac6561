"""Removal of blocks: the oldest, a few at a time (pruning), and the latest (revert)."""

from __future__ import annotations

import sqlite3

from ...errors import NotSupported
from ..base.application import Changes
from . import evm_index, index
from .ledger import stored_genesis, write_changes

Connection = sqlite3.Connection

# What one transaction forgets: others wait for it, if they write.
_MAX_BLOCKS, _MAX_TXS = 20, 200

# What each table is still asked for below the lowest block: that carries the commit of its
# parent, and the set that signed this says the weight of each vote.
_BELOW = (
    ("blocks", 0),
    ("txs", 0),
    ("evidence", 0),
    ("evm_unindexed", 0),
    ("commits", 1),
    ("signatures", 1),
)


def prune_some(at: Connection, base: int) -> int:
    """Remove a few blocks below a height, the oldest first; return how many.

    The last block stays, whatever the height.
    """
    heights = _oldest(at, base)
    if not heights:
        return 0
    last = heights[-1]
    for height in heights:
        evm_index.forget(at, height)
    index.forget_up_to(at, last)
    for table, still in _BELOW:
        at.execute(f"DELETE FROM {table} WHERE height <= ?", (last - still,))
    _forget_sets(at, last)
    _forget_params(at, last + 1)
    return len(heights)


def _oldest(at: Connection, base: int) -> list[int]:
    found = at.execute(
        "SELECT height, tx_count FROM blocks"
        " WHERE height < min(?, (SELECT max(height) FROM blocks)) ORDER BY height LIMIT ?",
        (base, _MAX_BLOCKS),
    )
    heights: list[int] = []
    remaining_txs = _MAX_TXS
    for height, tx_count in found.fetchall():
        remaining_txs -= tx_count
        # One that is larger than that goes alone.
        if heights and remaining_txs < 0:
            break
        heights.append(height)
    return heights


def _forget_sets(at: Connection, below: int) -> None:
    """Remove the validators of the heights below one.

    Those whom the evidence in a block accuses are looked up where they offended.
    """
    at.execute(
        "DELETE FROM validator_heights WHERE height < ?"
        " AND height NOT IN (SELECT offence FROM evidence)",
        (below,),
    )
    # Members are stored where they change, and may hold for long.
    at.execute(
        "DELETE FROM validators WHERE members_since <"
        " (SELECT members_since FROM validator_heights WHERE height = ?) AND members_since"
        " NOT IN (SELECT members_since FROM validator_heights WHERE height < ?)",
        (below, below),
    )


def _forget_params(at: Connection, base: int) -> None:
    """Remove the parameters that held before a height, except those of the genesis: block 0
    of the EVM layer is made with them."""
    at.execute(
        "DELETE FROM consensus_params"
        " WHERE since > (SELECT min(since) FROM consensus_params)"
        " AND since < (SELECT max(since) FROM consensus_params WHERE since <= ?)",
        (base,),
    )


# What each table knows beyond the height of the last block: a validator set is known two
# blocks ahead, parameters one.
_BEYOND = (
    ("blocks", "height", 0),
    ("commits", "height", 0),
    ("signatures", "height", 0),
    ("txs", "height", 0),
    ("evidence", "height", 0),
    ("evm_unindexed", "height", 0),
    ("consensus_params", "since", 1),
    ("validators", "members_since", 2),
    ("validator_heights", "height", 2),
)


def rewind(at: Connection, height: int, changes: Changes) -> None:
    """Remove the blocks above a height; ``changes`` undo what they wrote into the state."""
    _refuse_pruned(at, height)
    at.execute(
        "DELETE FROM tx_cache WHERE hash IN (SELECT hash FROM txs WHERE height > ?)", (height,)
    )
    index.forget_above(at, height)
    at.execute("DELETE FROM evm_hits WHERE place > ?", (evm_index.last_place(height),))
    for table, column, ahead in _BEYOND:
        at.execute(f"DELETE FROM {table} WHERE {column} > ?", (height + ahead,))
    at.execute(
        "UPDATE filters SET cursor = ? WHERE cursor > ? AND kind IN ('logs', 'blocks')",
        (height, height),
    )
    at.execute("INSERT INTO rewinds (height) VALUES (?)", (height,))
    write_changes(at, changes)


def _refuse_pruned(at: Connection, height: int) -> None:
    genesis = stored_genesis(at)
    (base,) = at.execute("SELECT min(height) FROM blocks").fetchone()
    if genesis and base and base > max(height, genesis.initial_height):
        raise NotSupported(
            f"the blocks below height {base} are pruned, and the chain can't go back there",
            "NODERPC_RETAIN_BLOCKS keeps more",
        )
