"""Selection of a block's transactions: by price, and by nonce for each sender."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable

from ....backends.base.application import BlockLimits
from ....domain.ethereum import Transaction
from ....domain.evm import Account
from ....protocol.comet.chain_state import tx_bytes
from ....protocol.ethereum.validity import most_cost

_Queue = list[Transaction]


def select_txs(
    txs: Iterable[Transaction],
    account: Callable[[bytes], Account],
    base_fee: int,
    limits: BlockLimits,
) -> tuple[bytes, ...]:
    """Return the raw transactions to include in a block, out of the pending ones.

    A transaction that does not fit, can't pay the base fee or comes after a nonce gap delays
    only later ones of its sender. The same goes for one whose cost may exceed the balance
    left by those before it: failing transactions would fill blocks at no cost.
    """
    queues = _by_sender(txs, account)
    # By price, then by arrival.
    heads: list[tuple[int, int, _Queue]] = []
    for order, queue in enumerate(queues):
        _push(heads, queue, order, base_fee)
    selected: list[bytes] = []
    size = gas = 0
    while heads:
        _, order, queue = heapq.heappop(heads)
        tx = queue.pop()
        if not limits.fits(size + tx_bytes(tx.raw), gas + tx.gas):
            continue
        size, gas = size + tx_bytes(tx.raw), gas + tx.gas
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
        while nonce in by_nonce and (cost := most_cost(by_nonce[nonce])) <= balance:
            queue.append(by_nonce[nonce])
            nonce, balance = nonce + 1, balance - cost
        queues.append(queue[::-1])
    return queues
