"""The mempool: a table that every process shares and that survives a restart.

Whether a transaction is let in is decided inside the store's transaction, so two
processes can't both take the last place.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from ...domain.responses import PendingCount, PendingTxs
from ...errors import MempoolFull, NonceTaken, TxInCache, TxRejected, TxTooLarge
from ...protocol.comet.chain_state import tx_bytes
from ...protocol.comet.hashes import tx_hash
from ..base.application import BlockLimits, SenderNonce
from ..base.capabilities import MempoolLimits
from . import blocks, state
from .connection import Connection


class Incoming:
    """Counts them beside those that wait for a block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hashes: Counter[bytes] = Counter()
        self._stored: dict[object, Callable[[], None]] = {}
        self._txs: dict[object, bytes] = {}
        self._size = 0

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._hashes

    def may_exceed(self, tx: bytes, limits: MempoolLimits) -> bool:
        """Return true if these alone might be why a transaction is refused."""
        is_full = len(self._stored) >= limits.max_txs or self._size >= limits.max_bytes
        return is_full or (bool(self._hashes) and tx_hash(tx) in self._hashes)

    @property
    def count(self) -> PendingCount:
        """Number of these transactions, and their bytes."""
        return PendingCount(len(self._stored), self._size)

    def add(self, tx: bytes, stored: Callable[[], None]) -> Callable[[], None]:
        """Count one until what is returned is called; ``stored`` waits for the store."""
        digest, size, key = tx_hash(tx), len(tx), object()

        def forget() -> None:
            with self._lock:
                del self._stored[key], self._txs[key]
                self._size -= size
                self._hashes[digest] -= 1
                if not self._hashes[digest]:
                    del self._hashes[digest]

        with self._lock:
            self._stored[key], self._txs[key] = stored, tx
            self._size += size
            self._hashes[digest] += 1
        return forget

    def txs(self) -> tuple[bytes, ...]:
        """Return these transactions, the oldest first."""
        with self._lock:
            return tuple(self._txs.values())

    def wait(self) -> None:
        """Wait until the store has accepted or refused those queued now."""
        for stored in tuple(self._stored.values()):
            # The sender gets the error.
            with suppress(Exception):
                stored()


# geth: how much more a replacement pays, in percent, and how many of a sender's may wait
# behind a gap.
_PRICE_BUMP = 10
_MAX_QUEUED = 64

_SEEN = (
    "SELECT 1 FROM tx_cache WHERE hash = ? UNION ALL SELECT 1 FROM mempool WHERE hash = ?"
    " LIMIT 1"
)

# EIP-2681 has one bit more, and nobody comes so far.
_LAST_NONCE = (1 << 63) - 2


def count(connection: Connection) -> PendingCount:
    """Return the number of pending transactions, and their bytes."""
    return PendingCount(*connection.execute("SELECT txs, bytes FROM mempool_totals").fetchone())


def pending(connection: Connection, limit: int) -> PendingTxs:
    """The oldest waiting transactions."""
    found = connection.execute("SELECT tx FROM mempool ORDER BY seq LIMIT ?", (limit,))
    txs = tuple(tx for (tx,) in found)
    total = count(connection)
    return PendingTxs(total.total, total.total_bytes, txs)


def refuse_unfit(
    connection: Connection,
    tx: bytes,
    limits: MempoolLimits,
    incoming: Incoming | None = None,
    gas_wanted: int = 0,
) -> None:
    """Raise why the mempool would not take this transaction, if so, beside those that come.

    CometBFT: first full, then too large, for the mempool and for a block, then seen
    before; the gas that its check reported comes last.
    """
    waiting = count(connection)
    coming = incoming.count if incoming else PendingCount(0, 0)
    total, size = waiting.total + coming.total, waiting.total_bytes + coming.total_bytes
    if total >= limits.max_txs or size + len(tx) > limits.max_bytes:
        raise MempoolFull(total, limits.max_txs, size, limits.max_bytes)
    if len(tx) > limits.max_tx_bytes:
        raise TxTooLarge(len(tx), limits.max_tx_bytes)
    max_size, max_gas = state.block_limits(connection)
    if _over(tx_bytes(tx), max_size):
        raise TxRejected(f"tx pre check: tx size is too big: {tx_bytes(tx)}, max: {max_size}")
    digest = tx_hash(tx)
    if connection.execute(_SEEN, (digest, digest)).fetchone():
        raise TxInCache
    if incoming and digest in incoming:
        raise TxInCache
    if _over(gas_wanted, max_gas):
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
    """Add a checked transaction; raise as :func:`refuse_unfit` does.

    With ``replaces`` it replaces a transaction of the same sender and nonce if it pays enough
    more.
    """
    connection.engine.lock_mempool(connection)
    if key is not None:
        _replace(connection, key, tx, replaces)
    refuse_unfit(connection, tx, limits, gas_wanted=gas_wanted)
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
    # Up to 256 bits, and SQLite's integers have 64.
    prices = key.fee_cap.to_bytes(32), key.tip.to_bytes(32)
    return key.hash, key.sender, key.nonce, *prices


def _replace(connection: Connection, key: SenderNonce, new: bytes, replaces: bool) -> None:
    """Remove the transaction that the new one replaces; raise if it may not replace it."""
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
    # geth: --txpool.pricebump, and more than before in any case.
    return max(price + 1, price * (100 + _PRICE_BUMP) // 100)


def _refuse_gap(connection: Connection, key: SenderNonce) -> None:
    """Refuse one more behind a gap where enough wait there already."""
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


def with_hash(connection: Connection, other_hash: bytes) -> bytes | None:
    """The waiting transaction that others know by this hash."""
    row = connection.execute(
        "SELECT tx FROM mempool WHERE other_hash = ?", (other_hash,)
    ).fetchone()
    return None if row is None else row[0]


def of_sender(connection: Connection, sender: bytes, limit: int) -> tuple[bytes, ...]:
    """The waiting transactions of a sender, in the order of their nonces."""
    found = connection.execute(
        "SELECT tx FROM mempool WHERE sender = ? ORDER BY nonce LIMIT ?", (sender, limit)
    )
    return tuple(tx for (tx,) in found)


def reap(connection: Connection, limits: BlockLimits) -> tuple[bytes, ...]:
    """The oldest transactions that fit a block."""
    taken: list[bytes] = []
    size = gas = 0
    for tx, gas_wanted in connection.execute("SELECT tx, gas_wanted FROM mempool ORDER BY seq"):
        if not limits.fits(tx_bytes(tx), gas_wanted):
            # No block takes this one, since the limits sank: it must not hold up the rest.
            continue
        size += tx_bytes(tx)
        gas += gas_wanted
        if not limits.fits(size, gas):
            break
        taken.append(tx)
    return tuple(taken)


def _over(value: int, limit: int) -> bool:
    return 0 <= limit < value


def drop_unfit(connection: Connection) -> None:
    """Remove transactions that no longer fit the block limits, which have just changed."""
    max_bytes, max_gas = state.block_limits(connection)
    found = connection.execute("SELECT tx, gas_wanted FROM mempool")
    drop(
        connection,
        [tx for tx, gas in found if _over(tx_bytes(tx), max_bytes) or _over(gas, max_gas)],
    )


def after(connection: Connection, cursor: int, limit: int) -> tuple[tuple[int, bytes], ...]:
    """The oldest transactions behind a cursor, each with its own."""
    found = connection.execute(
        "SELECT seq, tx FROM mempool WHERE seq > ? ORDER BY seq LIMIT ?", (cursor, limit)
    )
    return tuple((seq, tx) for seq, tx in found)


def arrived(connection: Connection, cursor: int, limit: int) -> tuple[tuple[int, bytes], ...]:
    """The same with those that are in a block by now, as far as they are remembered."""
    waiting = after(connection, cursor, limit)
    last = waiting[-1][0] if len(waiting) == limit else latest(connection)
    # SQLite: by CROSS JOIN in this order. A transaction that failed first may be in two blocks.
    in_blocks = connection.execute(
        "SELECT arrival, max(place) FROM tx_cache CROSS JOIN txs"
        " WHERE txs.hash = tx_cache.hash AND arrival > ? AND arrival <= ?"
        " GROUP BY arrival ORDER BY arrival LIMIT ?",
        (cursor, last, limit),
    ).fetchall()
    stored = blocks.txs_at(connection, [place for _, place in in_blocks])
    committed = ((seq, found.tx) for (seq, _), found in zip(in_blocks, stored, strict=True))
    return tuple(sorted((*waiting, *committed))[:limit])


def latest(connection: Connection) -> int:
    """The last cursor that was given out, whether its transaction still waits or not."""
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
