"""The mempool: a table that every process shares and that survives a restart.

Whether a transaction is let in is decided inside the store's transaction, so two
processes can't both take the last place.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from ...canonical.hashes import tx_hash
from ...domain.answers import PendingCount, PendingTxs
from ...errors import MempoolFull, TxInCache, TxTooLarge

Connection = sqlite3.Connection

# Tag and length in front of a transaction in the serialised block, at their longest.
_FRAME = 6


@dataclass(frozen=True, slots=True)
class MempoolLimits:
    """How much may wait; the defaults are CometBFT's."""

    max_tx_bytes: int = 1_048_576
    max_txs: int = 5_000
    max_bytes: int = 1_073_741_824
    cache_size: int = 10_000


def count(connection: Connection) -> PendingCount:
    """How many transactions wait, and their bytes."""
    total, size = connection.execute(
        "SELECT count(*), coalesce(sum(size), 0) FROM mempool"
    ).fetchone()
    return PendingCount(total, size)


def pending(connection: Connection, limit: int) -> PendingTxs:
    """The oldest waiting transactions."""
    found = connection.execute("SELECT tx FROM mempool ORDER BY seq LIMIT ?", (limit,))
    txs = tuple(tx for (tx,) in found)
    total = count(connection)
    return PendingTxs(total.total, total.total_bytes, txs)


def refuse_unfit(connection: Connection, tx: bytes, limits: MempoolLimits) -> None:
    """Raise why the mempool would not take this transaction, if so.

    CometBFT: first full, then too large, then seen before.
    """
    waiting = count(connection)
    if waiting.total >= limits.max_txs or waiting.total_bytes + len(tx) > limits.max_bytes:
        raise MempoolFull(waiting.total, limits.max_txs, waiting.total_bytes, limits.max_bytes)
    if len(tx) > limits.max_tx_bytes:
        raise TxTooLarge(len(tx), limits.max_tx_bytes)
    own = (tx_hash(tx),)
    for table in ("tx_cache", "mempool"):
        if connection.execute(f"SELECT 1 FROM {table} WHERE hash = ?", own).fetchone():
            raise TxInCache


def add(connection: Connection, tx: bytes, gas_wanted: int, limits: MempoolLimits) -> None:
    """Let a checked transaction wait; raise as :func:`refuse_unfit` does."""
    refuse_unfit(connection, tx, limits)
    own = tx_hash(tx)
    connection.execute(
        "INSERT INTO mempool (hash, size, gas_wanted, tx) VALUES (?, ?, ?, ?)",
        (own, len(tx), gas_wanted, tx),
    )
    connection.execute("INSERT INTO tx_cache (hash) VALUES (?)", (own,))


def reap(connection: Connection, max_bytes: int, max_gas: int) -> tuple[bytes, ...]:
    """The oldest transactions that fit a block; -1 is no limit."""
    taken: list[bytes] = []
    size = gas = 0
    for tx, wanted in connection.execute("SELECT tx, gas_wanted FROM mempool ORDER BY seq"):
        size += len(tx) + _FRAME
        gas += wanted
        if (0 <= max_bytes < size) or (0 <= max_gas < gas):
            break
        taken.append(tx)
    return tuple(taken)


def drop(connection: Connection, txs: Sequence[bytes]) -> None:
    """Forget transactions, so that they may be sent again."""
    gone = [(tx_hash(tx),) for tx in txs]
    connection.executemany("DELETE FROM mempool WHERE hash = ?", gone)
    connection.executemany("DELETE FROM tx_cache WHERE hash = ?", gone)
