"""Tests of the selection of pending transactions for a block."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as some

from flask_noderpc.backends.base.application import BlockLimits
from flask_noderpc.ethereum.application.proposals import select_txs
from flask_noderpc.ethereum.domain.execution import Account
from flask_noderpc.ethereum.domain.forks import OSAKA
from flask_noderpc.ethereum.domain.records import Transaction
from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.protocol.comet.chain_state import tx_bytes
from tests.ethereum.protocol.signing import sample

BASE_FEE = 10
NEXT_NONCE = 3
RICH = Account(NEXT_NONCE, 10**30)
TEMPLATE = decode(sample("dynamic fee"))


def waiting(sender: int, nonce: int, fee: int, tip: int, gas: int, size: int) -> Transaction:
    return replace(
        TEMPLATE,
        sender=bytes((sender,)) * 20,
        nonce=nonce,
        max_fee_per_gas=fee,
        max_priority_fee_per_gas=min(tip, fee),
        gas=gas,
        raw=bytes((sender, nonce)).ljust(size, b"\1"),
    )


TXS = some.lists(
    some.builds(
        waiting,
        some.integers(1, 5),
        some.integers(1, 9),
        some.integers(5, 30),
        some.integers(0, 30),
        some.integers(1, 100),
        some.integers(2, 200),
    ),
    max_size=30,
    # The mempool has one transaction for each sender and nonce.
    unique_by=lambda tx: (tx.sender, tx.nonce),
)
ROOMS = some.builds(
    BlockLimits, some.integers(-1, 1000) | some.just(-1), some.integers(-1, 500) | some.just(-1)
)


def plainly(txs: list[Transaction], limits: BlockLimits) -> list[Transaction]:
    """Choose by the plain rule: of the transactions that may come next, the one that pays most,
    and the oldest if several pay as much."""
    senders = list(dict.fromkeys(tx.sender for tx in txs))
    turns = dict.fromkeys(senders, NEXT_NONCE)
    taken: list[Transaction] = []
    while True:
        ready = [
            tx
            for sender in senders
            for tx in txs
            if (tx.sender, tx.nonce) == (sender, turns[sender])
            and tx.gas_price_at(BASE_FEE) >= BASE_FEE
        ]
        if not ready:
            return taken
        best = max(ready, key=lambda tx: tx.gas_price_at(BASE_FEE))
        size = sum(tx_bytes(tx.raw) for tx in (*taken, best))
        if limits.fits(size, sum(tx.gas for tx in (*taken, best))):
            taken.append(best)
            turns[best.sender] += 1
        else:
            turns[best.sender] = -1


@given(TXS, ROOMS)
def test_transactions_are_selected_by_fee_and_in_nonce_order(
    txs: list[Transaction], limits: BlockLimits
) -> None:
    chosen = select_txs(txs, lambda sender: RICH, BASE_FEE, limits, OSAKA)
    assert chosen == tuple(tx.raw for tx in plainly(txs, limits))


def test_a_transaction_waits_until_its_sender_can_surely_pay() -> None:
    first, second, third = (waiting(1, NEXT_NONCE + n, 30, 30, 10, 2) for n in range(3))
    other = waiting(2, NEXT_NONCE, 20, 20, 10, 2)
    cost = 10 * 30 + TEMPLATE.value
    anywhere = BlockLimits(-1, -1)

    def chosen(balance: int) -> tuple[bytes, ...]:
        account = Account(NEXT_NONCE, balance)
        return select_txs(
            [first, second, third, other], lambda _: account, BASE_FEE, anywhere, OSAKA
        )

    assert chosen(2 * cost) == (first.raw, second.raw, other.raw)
    assert chosen(2 * cost - 1) == (first.raw, other.raw)
