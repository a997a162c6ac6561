"""Mempool of SQL stores: a table that all processes share and that survives restarts.

The limits are checked inside the database transaction that adds a transaction, so that two
processes can't both take the last free slot.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from ...concurrency import Pending
from ...domain.abci import ExecTxResult
from ...domain.responses import PendingCount, PendingTxs
from ...errors import MempoolFull, NonceTaken, TxInCache, TxRejected, TxTooLarge
from ...protocol.comet.chain_state import MAX_BLOCK_BYTES, tx_bytes
from ...protocol.comet.hashes import tx_hash
from ..base.application import Application, BlockLimits, SenderNonce
from ..base.capabilities import Mempool, MempoolLimits
from . import blocks, state
from .connection import Connection
from .handles import StoreHandles
from .writer import UnstoredTxs

# As in geth: minimum price increase of a replacement in percent, and maximum number of a
# sender's transactions after a nonce gap.
_PRICE_BUMP = 10
_MAX_QUEUED = 64

_FIND_SEEN = (
    "SELECT 1 FROM tx_cache WHERE hash = ? UNION ALL SELECT 1 FROM mempool WHERE hash = ?"
    " LIMIT 1"
)

# Highest nonce that SQLite's integers can store. EIP-2681 allows one bit more, which no
# account reaches.
_LAST_NONCE = (1 << 63) - 2


def count(connection: Connection) -> PendingCount:
    """Return the number of pending transactions, and their total bytes."""
    return PendingCount(*connection.execute("SELECT txs, bytes FROM mempool_totals").fetchone())


def pending(connection: Connection, limit: int) -> PendingTxs:
    """Return up to ``limit`` pending transactions, oldest first, with the totals of all."""
    found = connection.execute("SELECT tx FROM mempool ORDER BY seq LIMIT ?", (limit,))
    txs = tuple(tx for (tx,) in found)
    total = count(connection)
    return PendingTxs(total.total, total.total_bytes, txs)


def check_admission(
    connection: Connection,
    tx: bytes,
    limits: MempoolLimits,
    unstored: UnstoredTxs | None = None,
    gas_wanted: int = 0,
) -> None:
    """Raise an error if the mempool must refuse this transaction; ``unstored`` are
    transactions that are being stored.

    The order of the checks is CometBFT's: mempool full, transaction too large for the mempool
    or a block, seen before, and last too much gas.
    """
    waiting = count(connection)
    coming = unstored.count if unstored else PendingCount(0, 0)
    total, size = waiting.total + coming.total, waiting.total_bytes + coming.total_bytes
    if total >= limits.max_txs or size + len(tx) > limits.max_bytes:
        raise MempoolFull(total, limits.max_txs, size, limits.max_bytes)
    if len(tx) > limits.max_tx_bytes:
        raise TxTooLarge(len(tx), limits.max_tx_bytes)
    max_size, max_gas = state.block_limits(connection)
    if _exceeds(tx_bytes(tx), max_size):
        raise TxRejected(f"tx pre check: tx size is too big: {tx_bytes(tx)}, max: {max_size}")
    digest = tx_hash(tx)
    if connection.execute(_FIND_SEEN, (digest, digest)).fetchone():
        raise TxInCache
    if unstored and digest in unstored:
        raise TxInCache
    if _exceeds(gas_wanted, max_gas):
        raise TxRejected(f"gas wanted {gas_wanted} is greater than max gas {max_gas}")


def add(
    connection: Connection,
    tx: bytes,
    gas_wanted: int,
    limits: MempoolLimits,
    key: SenderNonce | None = None,
    *,
    replaces: bool = True,
) -> None:
    """Add a checked transaction; raise the errors of :func:`check_admission`.

    With ``replaces``, a pending transaction with the same sender and nonce is replaced if the
    new one pays at least 10 % more.
    """
    connection.engine.lock_mempool(connection)
    if key is not None:
        _replace(connection, key, tx, replaces)
    check_admission(connection, tx, limits, gas_wanted=gas_wanted)
    digest = tx_hash(tx)
    added = connection.execute(
        "INSERT INTO mempool"
        " (hash, size, gas_wanted, tx, other_hash, sender, nonce, fee_cap, tip)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq",
        (digest, len(tx), gas_wanted, tx, *_columns(key)),
    )
    (seq,) = added.fetchone()
    connection.execute("INSERT INTO tx_cache (hash, arrival) VALUES (?, ?)", (digest, seq))


def _columns(key: SenderNonce | None) -> tuple[bytes | int | None, ...]:
    if key is None:
        return (None,) * 5
    # Store prices as bytes, because they have up to 256 bits and SQLite's integers only 64.
    prices = key.fee_cap.to_bytes(32), key.tip.to_bytes(32)
    return key.hash, key.sender, key.nonce, *prices


def _replace(connection: Connection, key: SenderNonce, new: bytes, replaces: bool) -> None:
    """Remove the pending transaction with the same sender and nonce; raise an error if the new
    one must not replace it."""
    if key.nonce > _LAST_NONCE:
        raise TxRejected("nonce has max value")
    row = connection.execute(
        "SELECT tx, fee_cap, tip FROM mempool WHERE sender = ? AND nonce = ?",
        (key.sender, key.nonce),
    ).fetchone()
    if row is None:
        _refuse_gap(connection, key)
        return
    if row[0] == new:
        raise TxInCache
    if not replaces:
        raise NonceTaken
    tx, fee_cap, tip = row[0], int.from_bytes(row[1]), int.from_bytes(row[2])
    if key.fee_cap < _raised(fee_cap) or key.tip < _raised(tip):
        raise TxRejected("replacement transaction underpriced")
    drop(connection, [tx])


def _raised(price: int) -> int:
    # As in geth: raised by --txpool.pricebump percent, and at least by 1, as the percentage of
    # a small price rounds down to 0.
    return max(price + 1, price * (100 + _PRICE_BUMP) // 100)


def _refuse_gap(connection: Connection, key: SenderNonce) -> None:
    """Raise an error for a nonce gap if the sender has too many pending transactions after a
    gap."""
    if key.nonce <= key.next_nonce + _MAX_QUEUED:
        return
    found = connection.execute(
        "SELECT nonce FROM mempool WHERE sender = ? AND nonce >= ? ORDER BY nonce",
        (key.sender, key.next_nonce),
    ).fetchall()
    ready = sum(1 for at, (nonce,) in enumerate(found, key.next_nonce) if nonce == at)
    if key.nonce > key.next_nonce + ready and len(found) - ready >= _MAX_QUEUED:
        raise TxRejected(
            f"nonce too high: expected {key.next_nonce + ready}, the sender's next nonce, as"
            f" {_MAX_QUEUED} transactions with higher nonces are pending already"
        )


def pending_by_other_hash(connection: Connection, other_hash: bytes) -> bytes | None:
    """Return the pending transaction with this alternative hash (such as Ethereum's), or
    ``None``."""
    row = connection.execute(
        "SELECT tx FROM mempool WHERE other_hash = ?", (other_hash,)
    ).fetchone()
    return None if row is None else row[0]


def pending_by_sender(connection: Connection, sender: bytes, limit: int) -> tuple[bytes, ...]:
    """Return up to ``limit`` pending transactions of a sender, in the order of their
    nonces."""
    found = connection.execute(
        "SELECT tx FROM mempool WHERE sender = ? ORDER BY nonce LIMIT ?", (sender, limit)
    )
    return tuple(tx for (tx,) in found)


def reap(connection: Connection, limits: BlockLimits) -> tuple[bytes, ...]:
    """Return the oldest pending transactions that fit one block."""
    taken: list[bytes] = []
    size = gas = 0
    for tx, gas_wanted in connection.execute("SELECT tx, gas_wanted FROM mempool ORDER BY seq"):
        if not limits.fits(tx_bytes(tx), gas_wanted):
            # The transaction exceeds a limit that was lowered: skip it, so that it does not
            # block the others.
            continue
        size += tx_bytes(tx)
        gas += gas_wanted
        if not limits.fits(size, gas):
            break
        taken.append(tx)
    return tuple(taken)


def _exceeds(value: int, limit: int) -> bool:
    return 0 <= limit < value


def drop_unfit(connection: Connection) -> None:
    """Remove pending transactions that exceed the block limits, after these were changed."""
    max_bytes, max_gas = state.block_limits(connection)
    found = connection.execute("SELECT tx, gas_wanted FROM mempool")
    drop(
        connection,
        [
            tx
            for tx, gas in found
            if _exceeds(tx_bytes(tx), max_bytes) or _exceeds(gas, max_gas)
        ],
    )


def pending_after(
    connection: Connection, cursor: int, limit: int
) -> tuple[tuple[int, bytes], ...]:
    """Return up to ``limit`` pending transactions after a cursor, oldest first, each with its
    own cursor."""
    found = connection.execute(
        "SELECT seq, tx FROM mempool WHERE seq > ? ORDER BY seq LIMIT ?", (cursor, limit)
    )
    return tuple((seq, tx) for seq, tx in found)


def received_after(
    connection: Connection, cursor: int, limit: int
) -> tuple[tuple[int, bytes], ...]:
    """Return the transactions that arrived after a cursor: pending ones, and committed ones
    that are still in the cache of seen transactions. The result is like that of
    :func:`pending_after`."""
    waiting = pending_after(connection, cursor, limit)
    last = waiting[-1][0] if len(waiting) == limit else latest_cursor(connection)
    # CROSS JOIN makes SQLite join in this order. max(place) is needed because a transaction
    # that failed at first may be in two blocks.
    in_blocks = connection.execute(
        "SELECT arrival, max(place) FROM tx_cache CROSS JOIN txs"
        " WHERE txs.hash = tx_cache.hash AND arrival > ? AND arrival <= ?"
        " GROUP BY arrival ORDER BY arrival LIMIT ?",
        (cursor, last, limit),
    ).fetchall()
    stored = blocks.txs_at(connection, [place for _, place in in_blocks])
    committed = ((seq, found.tx) for (seq, _), found in zip(in_blocks, stored, strict=True))
    return tuple(sorted((*waiting, *committed))[:limit])


def latest_cursor(connection: Connection) -> int:
    """Return the cursor of the transaction that arrived last, even if it is no longer pending;
    0 if none ever arrived."""
    row = connection.execute(connection.engine.latest_pending).fetchone()
    return 0 if row is None else int(row[0])


def drop(connection: Connection, txs: Sequence[bytes]) -> None:
    """Remove transactions from the mempool and the cache, so that they may be sent again."""
    connection.engine.lock_mempool(connection)
    gone = [(tx_hash(tx),) for tx in txs]
    connection.executemany("DELETE FROM mempool WHERE hash = ?", gone)
    connection.executemany("DELETE FROM tx_cache WHERE hash = ?", gone)


def flush(connection: Connection) -> None:
    """Empty the mempool and the cache of seen transactions."""
    connection.engine.lock_mempool(connection)
    connection.execute("DELETE FROM mempool")
    connection.execute("DELETE FROM tx_cache")


class SQLMempool(Mempool):
    """Mempool in the table ``mempool``; the store's application checks transactions."""

    def __init__(
        self,
        open_store: StoreHandles,
        application: Callable[[], Application],
        limits: MempoolLimits,
    ) -> None:
        self._open, self._app, self._limits = open_store, application, limits
        self._turn = threading.Lock()

    def __init_subclass__(cls) -> None:
        raise TypeError(
            f"{cls.__name__}: expected a subclass of Mempool, got one of SQLMempool, whose"
            " submit() is not called for all transactions; derive it from Mempool, and call the"
            " store's submit()"
        )

    def check_limits(self, tx: bytes) -> None:
        self._check_limits(tx, self._limits)

    def _check_limits(self, tx: bytes, limits: MempoolLimits) -> None:
        # If the application selects transactions, skip this: a full mempool still accepts
        # replacements, so the limits are only checked when the transaction is added.
        if not self._app().selects_txs:
            files = self._open()
            with files.readers.snapshot() as at:
                check_admission(at, tx, limits, files.unstored_txs)

    def submit(self, tx: bytes) -> ExecTxResult:
        return self.begin_submit(tx)[1].result()

    def begin_submit(self, tx: bytes) -> tuple[ExecTxResult, Pending[ExecTxResult]]:
        return self._submit(tx, self._app().check_tx, self._limits)

    def submit_local(self, tx: bytes, *, replaces: bool) -> ExecTxResult:
        # Allow a transaction as large as a block: a loaded state is one transaction.
        limits = dataclasses.replace(self._limits, max_tx_bytes=MAX_BLOCK_BYTES)
        return self._submit(tx, self._app().recheck_tx, limits, replaces=replaces)[1].result()

    def _submit(
        self,
        tx: bytes,
        check: Callable[[bytes], ExecTxResult],
        limits: MempoolLimits,
        *,
        replaces: bool = True,
    ) -> tuple[ExecTxResult, Pending[ExecTxResult]]:
        files, app = self._open(), self._app()
        if files.unstored_txs.may_cause_refusal(tx, limits):
            self._check_limits(tx, limits)
        with self._turn if app.checks_in_turn else nullcontext():
            result = check(tx)
            if result.code != 0:
                # As CometBFT does, report an exceeded limit rather than the failed check.
                # After a successful check, `add` compares the limits.
                self._check_limits(tx, limits)
                return result, Pending(lambda: result)
            gas, sender_nonce = result.gas_wanted, app.sender_nonce(tx)
            write = files.mempool_writer.begin(
                lambda at: add(at, tx, gas, limits, sender_nonce, replaces=replaces)
            )
            forget = files.unstored_txs.add(tx, write.result)

        def wait() -> ExecTxResult:
            try:
                write.result()
            except TxRejected:
                if app.sender_nonce(tx) == sender_nonce:
                    raise
                # A new block has changed the sender's next nonce meanwhile: check it again.
                return self._submit(tx, check, limits, replaces=replaces)[1].result()
            finally:
                forget()
            files.changes.notify()
            return result

        return result, Pending(wait, write.is_done)

    def pending(self, limit: int) -> PendingTxs:
        self._open().unstored_txs.wait()
        with self._open().readers.snapshot() as at:
            return pending(at, limit)

    def pending_by_other_hash(self, other_hash: bytes) -> bytes | None:
        with self._open().readers.snapshot() as at:
            return pending_by_other_hash(at, other_hash)

    def pending_by_sender(self, sender: bytes, limit: int) -> tuple[bytes, ...]:
        with self._open().readers.snapshot() as at:
            return pending_by_sender(at, sender, limit)

    def pending_count(self) -> PendingCount:
        self._open().unstored_txs.wait()
        with self._open().readers.snapshot() as at:
            return count(at)

    def pending_after(self, cursor: int, limit: int) -> tuple[tuple[int, bytes], ...]:
        with self._open().readers.snapshot() as at:
            return pending_after(at, cursor, limit)

    def arrived_after(self, cursor: int, limit: int) -> tuple[tuple[int, bytes], ...]:
        with self._open().readers.snapshot() as at:
            return received_after(at, cursor, limit)

    def wait_for_pending_after(self, cursor: int, timeout: float) -> bool:
        return self._open().changes.wait_until(lambda: self.latest_pending() > cursor, timeout)

    def latest_pending(self) -> int:
        with self._open().readers.snapshot() as at:
            return latest_cursor(at)

    def flush(self) -> None:
        self._open().mempool_writer.run(flush)
