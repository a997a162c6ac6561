"""Takes the last blocks back, as if they had never been made; for chains of tests."""

from __future__ import annotations

import sqlite3

from ...errors import NotSupported
from ..base.application import Changes
from . import evm_index, index
from .ledger import stored_genesis, write_changes

Connection = sqlite3.Connection

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
    """Forget the blocks above a height; ``changes`` undo what they wrote into the state."""
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
