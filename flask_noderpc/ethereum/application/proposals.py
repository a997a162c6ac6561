"""Selection of a block's transactions by price and nonce, and backoff after a failed block.

After a block that could not be executed, the next proposals have fewer transactions, until the
failing transaction is found and excluded. The gas limit of a block can't prevent this, as some
precompiled contracts take long for their gas, and a slow transaction must not halt the chain.
"""

from __future__ import annotations

import heapq
import sys
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence

from ...backends.base.application import BlockLimits
from ...protocol.comet.chain_state import tx_bytes
from ...protocol.comet.hashes import tx_hash
from ..domain.execution import Account
from ..domain.forks import Fork
from ..domain.records import Transaction
from ..protocol.validity import max_cost

_Queue = list[Transaction]

# Maximum bytes of a block's RLP without the transactions.
_HEADER = 2048


def select_txs(
    txs: Iterable[Transaction],
    account: Callable[[bytes], Account],
    base_fee: int,
    limits: BlockLimits,
    fork: Fork,
) -> tuple[bytes, ...]:
    """Select the raw transactions to include in a block from the pending ones.

    A transaction that does not fit, can't pay the base fee or comes after a nonce gap delays
    only later ones of its sender. So does one whose maximum cost exceeds the balance that
    earlier ones leave, as failing transactions would fill blocks at no cost.
    """
    queues = _by_sender(txs, account)
    # Take the next transaction of the sender who pays most; at the same price, of the sender
    # who came first.
    heads: list[tuple[int, int, _Queue]] = []
    for order, queue in enumerate(queues):
        _push(heads, queue, order, base_fee)
    selected: list[bytes] = []
    size = gas = blobs = 0
    max_blobs = fork.blobs.max if fork.blobs else 0
    max_bytes = sys.maxsize if fork.max_block_bytes is None else fork.max_block_bytes - _HEADER
    while heads:
        _, order, queue = heapq.heappop(heads)
        tx = queue.pop()
        blobs_after = blobs + len(tx.blob_versioned_hashes)
        fits = limits.fits(size + tx_bytes(tx.raw), gas + tx.gas)
        if not fits or blobs_after > max_blobs or size + len(tx.raw) > max_bytes:
            continue
        size, gas, blobs = size + tx_bytes(tx.raw), gas + tx.gas, blobs_after
        selected.append(tx.raw)
        _push(heads, queue, order, base_fee)
    return tuple(selected)


def _push(
    heads: list[tuple[int, int, _Queue]], queue: _Queue, order: int, base_fee: int
) -> None:
    if queue:
        price = queue[-1].gas_price_at(base_fee)
        if price >= base_fee:
            heapq.heappush(heads, (base_fee - price, order, queue))


def _by_sender(txs: Iterable[Transaction], account: Callable[[bytes], Account]) -> list[_Queue]:
    """Return each sender's payable transactions without a nonce gap, the next one last."""
    senders: defaultdict[bytes, dict[int, Transaction]] = defaultdict(dict)
    for tx in txs:
        senders[tx.sender][tx.nonce] = tx
    queues = []
    for sender, by_nonce in senders.items():
        sender_account = account(sender)
        queue, nonce, balance = [], sender_account.nonce, sender_account.balance
        while nonce in by_nonce and (cost := max_cost(by_nonce[nonce])) <= balance:
            queue.append(by_nonce[nonce])
            nonce, balance = nonce + 1, balance - cost
        queues.append(queue[::-1])
    return queues


_SHRINK_FACTOR = 4
_MAX_FAILURES = 2
_MAX_POISON = 10_000


class Backoff:
    """Maximum size of proposals and transactions excluded from them, after blocks that this
    process failed to execute."""

    def __init__(self) -> None:
        self._limit: int | None = None
        self._failures: Counter[bytes] = Counter()
        self._poison: OrderedDict[bytes, None] = OrderedDict()

    def is_poison(self, tx: bytes) -> bool:
        """Return true if a block with only this transaction failed repeatedly."""
        return bool(self._poison) and tx_hash(tx) in self._poison

    def has_suspects(self) -> bool:
        """Return true if a transaction failed alone in its block, so that an empty block has
        to be executed to show whether the transaction is the cause."""
        return bool(self._failures or self._poison)

    def limit(self, txs: Sequence[bytes]) -> tuple[bytes, ...]:
        """Return the first transactions of a proposal, up to the current limit."""
        return tuple(txs[: self._limit])

    def record_success(self, txs: Sequence[bytes]) -> None:
        """Raise the limit after a block was executed."""
        self._failures.clear()
        if self._limit is not None:
            # A block smaller than the limit had all transactions, so drop the limit.
            self._limit = 2 * self._limit if len(txs) == self._limit else None

    def record_failure(self, txs: Sequence[bytes]) -> None:
        """Lower the limit after a block that took too long or killed its process."""
        if not txs:
            # Include excluded transactions again: an empty block fails as well, so they are
            # not the cause.
            self._poison.clear()
        elif len(txs) > 1:
            self._limit = max(1, len(txs) // _SHRINK_FACTOR)
        else:
            self._limit = 1
            self._count_failure(tx_hash(txs[0]))

    def _count_failure(self, digest: bytes) -> None:
        # Exclude a transaction at the second failure: the first may have another cause, such
        # as a killed process.
        self._failures[digest] += 1
        if self._failures[digest] >= _MAX_FAILURES:
            del self._failures[digest]
            self._poison[digest] = None
            if len(self._poison) > _MAX_POISON:
                self._poison.popitem(last=False)
