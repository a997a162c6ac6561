"""Indexing of backfilled blocks in bounded steps, each in a transaction of its own.

The first step of a large block is in the transaction that stores it. Until the last one the
block counts as not indexed (``blocks.events``), and some of its transactions are. So what was
interrupted goes on with the next backfill.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence

from ...domain.abci import BlockResults
from . import blocks, index
from .packed.results import LAST_POSITION, place

Connection = sqlite3.Connection

# Transactions that are indexed, or taken out, between two looks at the clock.
TXS = 32


def finish(at: Connection, deadline: float) -> bool:
    """Go on with the lowest block, if it is indexed in part; return false if the time is over
    before its end."""
    height, events = at.execute(
        "SELECT height, events FROM blocks ORDER BY height LIMIT 1"
    ).fetchone() or (0, "")
    return (
        events is not None or not _is_indexed_in_part(at, height) or more(at, height, deadline)
    )


def _is_indexed_in_part(at: Connection, height: int) -> bool:
    found = at.execute(
        "SELECT 1 FROM txs WHERE place BETWEEN ? AND ? AND events IS NOT NULL LIMIT 1",
        blocks.places(height, height),
    )
    return found.fetchone() is not None


def more(at: Connection, height: int, deadline: float) -> bool:
    """Index some transactions of a block, at least one if any is left; return true when all
    are, and the block itself is."""
    left = _left(at, height)
    for first in range(0, len(left), TXS):
        if first and time.monotonic() > deadline:
            changed(at)
            return False
        here = left[first : first + TXS]
        found = [(each.height, each.index, each.result) for each in blocks.txs_at(at, here)]
        texts = index.write_results(at, found)
        at.executemany(
            "UPDATE txs SET events = ? WHERE place = ?", zip(texts, here, strict=True)
        )
    events = index.write_block(at, height, blocks.events(at, height))
    at.execute("UPDATE blocks SET events = ? WHERE height = ?", (events, height))
    changed(at)
    return True


def _left(at: Connection, height: int) -> list[int]:
    found = at.execute(
        "SELECT place, hash, code FROM txs WHERE place BETWEEN ? AND ? AND events IS NULL"
        " ORDER BY place",
        blocks.places(height, height),
    )
    return [
        here
        for here, tx_hash, code in found.fetchall()
        if code == 0 or not index.has_succeeded(at, tx_hash, here)
    ]


def leave_out_repeats(
    at: Connection,
    height: int,
    tx_hashes: Sequence[bytes],
    results: BlockResults,
    deadline: float,
) -> bool:
    """Take failures out of the index whose transactions succeed at this lower height; return
    false if the time is over before the last."""
    for tx_hash, result in zip(tx_hashes, results.tx_results, strict=True):
        while result.code == 0 and _leave_out_some(at, tx_hash, place(height, LAST_POSITION)):
            if time.monotonic() > deadline:
                changed(at)
                return False
    return True


def _leave_out_some(at: Connection, tx_hash: bytes, above: int) -> bool:
    found = at.execute(
        "SELECT place FROM txs WHERE hash = ? AND code <> 0 AND events IS NOT NULL"
        " AND place > ? LIMIT ?",
        (tx_hash, above, TXS),
    ).fetchall()
    for (here,) in found:
        index.leave_out(at, here)
    return bool(found)


def changed(at: Connection) -> None:
    """Let caches know of a change that no block and no rewind shows."""
    at.execute("UPDATE chain SET revision = revision + 1")
