"""A node's block and its results as Ethereum transactions, receipts and logs.

Every number is counted here, over the whole block and its Ethereum transactions alone; those
that a chain wrote into its events are not looked at (cosmos/evm issue 812).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...domain.abci import BlockResults, ExecTxResult
from ...domain.ethereum import Inclusion, Log, Receipt, Transaction
from ...domain.evm import EmittedLog
from ...errors import InvalidTransaction
from . import cosmos, ethermint
from .consensus import bloom
from .crypto import keccak
from .ethermint import Outcome, RawLog
from .rlp import encode
from .transactions import decode


@dataclass(frozen=True, slots=True)
class Executed:
    """A transaction that ran, before it is numbered."""

    transaction: Transaction
    succeeded: bool
    gas_used: int
    logs: Sequence[RawLog | EmittedLog]


def ethereum_transactions(tx: bytes, *, unsigned: bool = True) -> tuple[Transaction, ...]:
    """The Ethereum transactions in a node's transaction; none for one of another kind.

    It is one itself, or a Cosmos SDK transaction with any number of them. Whether all must be
    signed is for the chain to say, that has taken them.
    """
    try:
        return tuple(decode(raw, unsigned=unsigned) for raw in _raw_transactions(tx))
    except InvalidTransaction:
        return ()


def transaction_hashes(tx: bytes) -> tuple[bytes, ...]:
    """The hashes of the Ethereum transactions in a node's transaction, and no more.

    Nothing else is read of them, so bytes that are none have a hash as well.
    """
    try:
        return tuple(map(keccak, _raw_transactions(tx)))
    except InvalidTransaction:
        return ()


def _raw_transactions(tx: bytes) -> tuple[bytes, ...]:
    return cosmos.raw_transactions(tx) if tx[:1] == _COSMOS else (tx,)


def emitted(result: ExecTxResult) -> Sequence[list[RawLog]]:
    """The logs of each Ethereum transaction in a node's, from wherever the chain put them."""
    return list(ethermint.logs(result.events)) or list(ethermint.response_logs(result.data))


_COSMOS = bytes((cosmos.FIRST_BYTE,))


def receipts(
    txs: Sequence[bytes],
    results: BlockResults,
    block_hash: bytes,
    block_time: int,
) -> tuple[Receipt, ...]:
    """The receipts of a block's Ethereum transactions, with these and their logs, in order.

    ``txs`` are the node's transactions; ``block_time`` counts seconds.
    """
    executed = _executed(txs, results)
    base_fee = ethermint.base_fee(results)
    return numbered(executed, Inclusion(block_hash, results.height, block_time, 0), base_fee)


def numbered(
    executed: Iterable[Executed], first: Inclusion, base_fee: int | None
) -> tuple[Receipt, ...]:
    """The receipts of transactions that ran one after the other, numbered from ``first`` on."""
    made: list[Receipt] = []
    gas = log_index = 0
    for index, each in enumerate(executed):
        gas += each.gas_used
        receipt = _receipt(each, replace(first, index=index), base_fee, gas, log_index)
        log_index += len(receipt.logs)
        made.append(receipt)
    return tuple(made)


def _executed(txs: Sequence[bytes], results: BlockResults) -> Iterator[Executed]:
    # A store that has lost some results has none for the last transactions.
    for tx, result in zip(txs, results.tx_results, strict=False):
        if ethermint.was_charged(result):
            transactions = ethereum_transactions(tx)
            if transactions:
                yield from _executed_in_one(transactions, result)


def _executed_in_one(
    transactions: Sequence[Transaction], result: ExecTxResult
) -> Iterator[Executed]:
    """The transactions of one node transaction beside what its events say of each."""
    found = _by_transaction(transactions, ethermint.outcomes(result.events))
    logs = _logs_by_transaction(transactions, result)
    alone = len(transactions) == 1
    for index, tx in enumerate(transactions):
        outcome = found.get(index, Outcome())
        if result.code != 0:
            # Ethermint: it did not run, and the whole limit was paid.
            yield Executed(tx, False, tx.gas, ())
            continue
        gas = outcome.gas_used
        if gas is None:
            gas = max(0, result.gas_used) if alone else 0
        emitted = () if outcome.failed else logs.get(index, ())
        yield Executed(tx, not outcome.failed, gas, emitted)


def _by_transaction(
    transactions: Sequence[Transaction], outcomes: Sequence[Outcome]
) -> dict[int, Outcome]:
    """Outcomes by the index of their transaction: that of their hash, or else their own."""
    indices = {tx.hash: index for index, tx in enumerate(transactions)}
    return {
        indices.get(outcome.hash or b"", position): outcome
        for position, outcome in enumerate(outcomes)
    }


def _logs_by_transaction(
    transactions: Sequence[Transaction], result: ExecTxResult
) -> dict[int, list[RawLog]]:
    indices = {tx.hash: index for index, tx in enumerate(transactions)}
    found: dict[int, list[RawLog]] = {}
    for position, logs in enumerate(emitted(result)):
        for log in logs:
            index = indices.get(log.transaction_hash or b"", position)
            found.setdefault(index, []).append(log)
    return found


def _receipt(
    executed: Executed, inclusion: Inclusion, base_fee: int | None, gas: int, log_index: int
) -> Receipt:
    tx = executed.transaction
    logs = tuple(
        Log(log.address, log.topics, log.data, index, tx.hash, inclusion)
        for index, log in enumerate(executed.logs, log_index)
    )
    return Receipt(
        tx,
        inclusion,
        executed.succeeded,
        executed.gas_used,
        gas,
        tx.gas_price_at(base_fee),
        created_address(tx.sender, tx.nonce) if tx.to is None else None,
        logs,
        bloom(logs),
    )


def created_address(sender: bytes, nonce: int) -> bytes:
    """Return the address of the contract that a transaction creates."""
    return keccak(encode([sender, nonce]))[12:]
