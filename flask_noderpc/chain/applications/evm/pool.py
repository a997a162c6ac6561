"""Which waiting transactions go into a block: those that pay most, each sender's in order."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable

from ....backends.base.application import BlockLimits
from ....domain.ethereum import Transaction
from ....domain.evm import Account
from ....protocol.comet.blocksize import tx_bytes
from ....protocol.ethereum.validity import most_cost

_Queue = list[Transaction]


def select_txs(
    txs: Iterable[Transaction],
    account: Callable[[bytes], Account],
    base_fee: int,
    limits: BlockLimits,
) -> tuple[bytes, ...]:
    """The bytes of a block's transactions, out of those that wait.

    One that does not fit, can't pay the base fee or comes after a gap holds up its sender's
    later ones alone; so does one that those before it may leave nothing to pay with, which
    would fill a block with what costs nobody anything.
    """
    queues = _by_sender(txs, account)
    # The price first, then who came first.
    heads: list[tuple[int, int, _Queue]] = []
    for order, queue in enumerate(queues):
        _push(heads, queue, order, base_fee)
    chosen: list[bytes] = []
    size = gas = 0
    while heads:
        _, order, queue = heapq.heappop(heads)
        tx = queue.pop()
        if not limits.fits(size + tx_bytes(tx.raw), gas + tx.gas):
            continue
        size, gas = size + tx_bytes(tx.raw), gas + tx.gas
        chosen.append(tx.raw)
        _push(heads, queue, order, base_fee)
    return tuple(chosen)


def _push(
    heads: list[tuple[int, int, _Queue]], queue: _Queue, order: int, base_fee: int
) -> None:
    if queue:
        price = queue[-1].gas_price_at(base_fee)
        if price >= base_fee:
            heapq.heappush(heads, (base_fee - price, order, queue))


def _by_sender(txs: Iterable[Transaction], account: Callable[[bytes], Account]) -> list[_Queue]:
    """Each sender's transactions without a gap that it can pay for, the next one last."""
    senders: defaultdict[bytes, dict[int, Transaction]] = defaultdict(dict)
    for tx in txs:
        senders[tx.sender][tx.nonce] = tx
    queues = []
    for sender, by_nonce in senders.items():
        own = account(sender)
        queue, nonce, left = [], own.nonce, own.balance
        while nonce in by_nonce and (cost := most_cost(by_nonce[nonce])) <= left:
            queue.append(by_nonce[nonce])
            nonce, left = nonce + 1, left - cost
        queues.append(queue[::-1])
    return queues
