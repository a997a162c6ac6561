"""Mempool of SQL stores: the capability and its table, which all processes share and which
survives restarts.

A transaction is admitted inside the store's transaction, so two processes can't both take the
last free place.
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

# geth: minimum price increase of a replacement in percent, and maximum number of a sender's
# transactions after a nonce gap.
_PRICE_BUMP = 10
_MAX_QUEUED = 64

_FIND_SEEN = (
    "SELECT 1 FROM tx_cache WHERE hash = ? UNION ALL SELECT 1 FROM mempool WHERE hash = ?"
    " LIMIT 1"
)

# SQLite's limit; EIP-2681 allows one bit more, which no account reaches.
_LAST_NONCE = (1 << 63) - 2


def count(connection: Connection) -> PendingCount:
    """Return the number of pending transactions, and their bytes."""
    return PendingCount(*connection.execute("SELECT txs, bytes FROM mempool_totals").fetchone())


def pending(connection: Connection, limit: int) -> PendingTxs:
    """Return the oldest pending transactions."""
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
    """Raise the error for which the mempool refuses this transaction, if any; ``unstored`` are
    transactions that are being stored.

    CometBFT's order: mempool full, too large for the mempool or a block, seen before. The gas
    that its check reported is compared last.
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
    """Add a checked transaction; raise as :func:`check_admission` does.

    With ``replaces``, a pending transaction with the same sender and nonce is replaced if the
    new one pays enough more.
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
    # Stored as bytes: prices have up to 256 bits, SQLite's integers 64.
    prices = key.fee_cap.to_bytes(32), key.tip.to_bytes(32)
    return key.hash, key.sender, key.nonce, *prices


def _replace(connection: Connection, key: SenderNonce, new: bytes, replaces: bool) -> None:
    """Remove the transaction that the new one replaces; raise if the new one must not replace
    it."""
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
    # geth: --txpool.pricebump; at least 1 more in any case.
    return max(price + 1, price * (100 + _PRICE_BUMP) // 100)


def _refuse_gap(connection: Connection, key: SenderNonce) -> None:
    """Raise if the transaction follows a nonce gap after which enough of the sender's
    transactions are pending already."""
    if key.nonce <= key.next_nonce + _MAX_QUEUED:
        return
    found = connection.execute(
        "SELECT nonce FROM mempool WHERE sender = ? AND nonce >= ? ORDER BY nonce",
        (key.sender, key.next_nonce),
    ).fetchall()
    ready = sum(1 for at, (nonce,) in enumerate(found, key.next_nonce) if nonce == at)
    if key.nonce > key.next_nonce + ready and len(found) - ready >= _MAX_QUEUED:
        raise TxRejected(
            f"nonce too high: the sender's next is {key.next_nonce + ready}, and"
            f" {_MAX_QUEUED} transactions wait behind it already"
        )


def pending_by_other_hash(connection: Connection, other_hash: bytes) -> bytes | None:
    """Return the pending transaction with this alternative hash, or ``None``."""
    row = connection.execute(
        "SELECT tx FROM mempool WHERE other_hash = ?", (other_hash,)
    ).fetchone()
    return None if row is None else row[0]


def pending_by_sender(connection: Connection, sender: bytes, limit: int) -> tuple[bytes, ...]:
    """Return the pending transactions of a sender, in the order of their nonces."""
    found = connection.execute(
        "SELECT tx FROM mempool WHERE sender = ? ORDER BY nonce LIMIT ?", (sender, limit)
    )
    return tuple(tx for (tx,) in found)


def reap(connection: Connection, limits: BlockLimits) -> tuple[bytes, ...]:
    """Return the oldest transactions that fit a block together."""
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
    """Remove transactions that no longer fit the block limits, which were just changed."""
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
    """Return the oldest transactions after a cursor, each with its own cursor."""
    found = connection.execute(
        "SELECT seq, tx FROM mempool WHERE seq > ? ORDER BY seq LIMIT ?", (cursor, limit)
    )
    return tuple((seq, tx) for seq, tx in found)


def received_after(
    connection: Connection, cursor: int, limit: int
) -> tuple[tuple[int, bytes], ...]:
    """Return the same as :func:`pending_after`, including transactions that have been committed
    since, if the cache still has them."""
    waiting = pending_after(connection, cursor, limit)
    last = waiting[-1][0] if len(waiting) == limit else latest_cursor(connection)
    # CROSS JOIN makes SQLite join in this order. A transaction that failed at first may be in
    # two blocks.
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
    """Return the last cursor that was assigned, even if its transaction is no longer
    pending."""
    row = connection.execute(connection.engine.latest_pending).fetchone()
    return 0 if row is None else int(row[0])


def drop(connection: Connection, txs: Sequence[bytes]) -> None:
    """Remove transactions, so that they may be sent again."""
    connection.engine.lock_mempool(connection)
    gone = [(tx_hash(tx),) for tx in txs]
    connection.executemany("DELETE FROM mempool WHERE hash = ?", gone)
    connection.executemany("DELETE FROM tx_cache WHERE hash = ?", gone)


def flush(connection: Connection) -> None:
    """Remove all transactions, so that they may be sent again."""
    connection.engine.lock_mempool(connection)
    connection.execute("DELETE FROM mempool")
    connection.execute("DELETE FROM tx_cache")


class SQLMempool(Mempool):
    """Pending transactions in a table, checked by the store's application."""

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
            f"{cls.__name__}: derive your own mempool from Mempool, with a submit() that"
            " calls the store's: this one is not called for all transactions"
        )

    def check_limits(self, tx: bytes) -> None:
        self._check_limits(tx, self._limits)

    def _check_limits(self, tx: bytes, limits: MempoolLimits) -> None:
        # A full mempool still accepts replacements, so check the limits later.
        if not self._app().selects_txs:
            files = self._open()
            with files.readers.snapshot() as at:
                check_admission(at, tx, limits, files.unstored_txs)

    def submit(self, tx: bytes) -> ExecTxResult:
        return self.begin_submit(tx)[1].result()

    def begin_submit(self, tx: bytes) -> tuple[ExecTxResult, Pending[ExecTxResult]]:
        return self._submit(tx, self._app().check_tx, self._limits)

    def submit_local(self, tx: bytes, *, replaces: bool) -> ExecTxResult:
        # Loading a state is one transaction, which is only limited by the block size.
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
                # CometBFT reports exceeded limits rather than a failed check. Transactions that
                # pass the check are compared with the limits when they are added.
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
                # A new block contained the transactions that this one follows: check it again.
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
