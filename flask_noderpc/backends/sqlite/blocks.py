"""Reads of blocks, their results and their transactions."""

from __future__ import annotations

import sqlite3
from typing import Any

from ...domain.abci import BlockResults
from ...domain.block import NO_COMMIT, Block, BlockID, BlockMeta
from ...domain.search import TxResult
from . import rows, state

Connection = sqlite3.Connection


def _row(at: Connection, columns: str, height: int) -> Any:
    return at.execute(f"SELECT {columns} FROM blocks WHERE height = ?", (height,)).fetchone()


def is_there(at: Connection, height: int) -> bool:
    """Return true if the block is stored."""
    return _row(at, "height", height) is not None


def block(at: Connection, height: int, chain_id: str) -> tuple[BlockID, Block] | None:
    """Return a block with its id."""
    row = _row(at, rows.META_COLUMNS, height)
    if row is None:
        return None
    txs = at.execute("SELECT tx FROM txs WHERE height = ? ORDER BY position", (height,))
    evidence = at.execute(
        "SELECT kind, body FROM evidence WHERE height = ? ORDER BY position", (height,)
    )
    meta = rows.meta_from(row, chain_id)
    return meta.block_id, Block(
        meta.header,
        tuple(tx for (tx,) in txs),
        tuple(rows.evidence_from(kind, body) for kind, body in evidence),
        state.commit(at, height - 1) or NO_COMMIT,
    )


def metas(at: Connection, low: int, high: int, chain_id: str) -> tuple[BlockMeta, ...]:
    """The metas of a range, highest first."""
    found = at.execute(
        f"SELECT {rows.META_COLUMNS} FROM blocks WHERE height BETWEEN ? AND ?"
        " ORDER BY height DESC",
        (low, high),
    )
    return tuple(rows.meta_from(row, chain_id) for row in found)


def lowest_meta(at: Connection, chain_id: str) -> BlockMeta | None:
    """Return the meta of the oldest stored block."""
    row = at.execute(
        f"SELECT {rows.META_COLUMNS} FROM blocks ORDER BY height LIMIT 1"
    ).fetchone()
    return None if row is None else rows.meta_from(row, chain_id)


def results(at: Connection, height: int) -> BlockResults | None:
    """Return the results of a block."""
    row = _row(at, rows.RESULT_COLUMNS, height)
    return None if row is None else rows.results_from(height, row, state.tx_results(at, height))


_TX = f"SELECT height, position, tx, {rows.TX_RESULT_COLUMNS} FROM txs"


def tx(at: Connection, tx_hash: bytes) -> TxResult | None:
    """The transaction of this hash."""
    row = at.execute(
        # CometBFT: a later failure does not hide an earlier success.
        f"{_TX} WHERE hash = ? ORDER BY code = 0 DESC, height DESC, position DESC LIMIT 1",
        (tx_hash,),
    ).fetchone()
    return None if row is None else rows.tx_result_from(row)


def latest_txs(at: Connection, limit: int) -> tuple[TxResult, ...]:
    """The newest transactions, newest first."""
    found = at.execute(f"{_TX} ORDER BY height DESC, position DESC LIMIT ?", (limit,))
    return tuple(rows.tx_result_from(row) for row in found)
