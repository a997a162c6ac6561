"""Ethereum transactions, receipts and logs of a node's block and its results.

All indexes are counted here, over the whole block and only its Ethereum transactions; the
indexes in a chain's events are ignored (cosmos/evm issue 812).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

from ...domain.abci import BlockResults, ExecTxResult
from ...errors import InvalidTransaction
from ...protocol.secp256k1eth import keccak
from ..domain.execution import EmittedLog
from ..domain.records import (
    LEGACY,
    EncodedTransaction,
    Inclusion,
    Log,
    RPCTransaction,
    Transaction,
)
from . import cosmos, ethermint
from .consensus import bloom
from .ethermint import Outcome, RawLog
from .rlp import Item, encode
from .transactions import decode, decoded, wrap_verified

AnyTransaction = Transaction | EncodedTransaction


@dataclass(frozen=True)
class Receipt:
    """Receipt of an executed transaction.

    The transaction is decoded at first use: recovering the sender takes longer than everything
    else that a block is read for.
    """

    encoded: AnyTransaction
    inclusion: Inclusion
    succeeded: bool
    gas_used: int
    cumulative_gas_used: int
    """Gas used by the block's Ethereum transactions up to and including this one."""
    base_fee: int | None
    logs: tuple[Log, ...]

    @cached_property
    def transaction(self) -> Transaction:
        """The transaction, with its sender."""
        return decoded(self.encoded)

    @property
    def in_block(self) -> RPCTransaction:
        """The transaction in its block."""
        return RPCTransaction(self.transaction, self.inclusion, self.effective_gas_price)

    @property
    def effective_gas_price(self) -> int:
        """The price paid, in wei."""
        return self.transaction.gas_price_at(self.base_fee)

    @property
    def contract_address(self) -> bytes | None:
        """Address of the created contract, also if creation failed; ``None`` for a call."""
        tx = self.transaction
        return created_address(tx.sender, tx.nonce) if tx.to is None else None

    @cached_property
    def bloom(self) -> bytes:
        """Bloom filter of the logs."""
        return bloom(self.logs)


def encode_receipt(receipt: Receipt) -> bytes:
    """Return the encoded receipt: its list, prefixed with the transaction's type from type 1 on
    (EIP-2718)."""
    logs: list[Item] = [[log.address, log.topics, log.data] for log in receipt.logs]
    body = encode([int(receipt.succeeded), receipt.cumulative_gas_used, receipt.bloom, logs])
    kind = receipt.encoded.type
    return body if kind == LEGACY else bytes((kind,)) + body


@dataclass(frozen=True, slots=True)
class ExecutedTransaction:
    """An executed transaction without its index in the block."""

    transaction: AnyTransaction
    succeeded: bool
    gas_used: int
    logs: Sequence[RawLog | EmittedLog]


def ethereum_transactions(tx: bytes, *, unsigned: bool = True) -> tuple[Transaction, ...]:
    """Return the Ethereum transactions in a node's transaction; empty for one of another kind.

    The node's transaction is one itself, or a Cosmos SDK transaction with any number of them.
    ``unsigned`` also accepts transactions without signature, as the chain that executed them
    decided on that.
    """
    return _each(partial(decode, unsigned=unsigned), tx)


def transaction_hashes(tx: bytes) -> tuple[bytes, ...]:
    """Return the hashes of the Ethereum transactions in a node's transaction.

    The transactions are not decoded, so bytes of any other kind have a hash as well.
    """
    return _each(keccak, tx)


T = TypeVar("T")


def _each(read: Callable[[bytes], T], tx: bytes) -> tuple[T, ...]:
    """Return ``read`` of each Ethereum transaction in a node's transaction; empty if one can't
    be read."""
    try:
        return tuple(map(read, cosmos.raw_transactions(tx) if tx[:1] == _COSMOS else (tx,)))
    except InvalidTransaction:
        return ()


def emitted_logs(result: ExecTxResult) -> Sequence[list[RawLog]]:
    """Return the logs of each Ethereum transaction in a node's transaction, from its events or
    its data."""
    return list(ethermint.logs(result.events)) or list(ethermint.response_logs(result.data))


_COSMOS = bytes((cosmos.FIRST_BYTE,))


def receipts(
    txs: Sequence[bytes],
    results: BlockResults,
    block_hash: bytes,
    block_time: int,
) -> tuple[Receipt, ...]:
    """Return the receipts of a block's Ethereum transactions, with these and their logs, in
    order.

    ``txs`` are the node's transactions; ``block_time`` is in seconds.
    """
    executed = _executed(txs, results)
    base_fee = ethermint.base_fee(results)
    return number_receipts(
        executed, Inclusion(block_hash, results.height, block_time, 0), base_fee
    )


def number_receipts(
    executed: Iterable[ExecutedTransaction], first: Inclusion, base_fee: int | None
) -> tuple[Receipt, ...]:
    """Return the receipts of transactions in their order of execution, numbered from ``first``
    on."""
    made: list[Receipt] = []
    gas = log_index = 0
    for index, each in enumerate(executed):
        gas += each.gas_used
        inclusion = Inclusion(first.block_hash, first.block_number, first.block_time, index)
        logs = tuple(
            Log(log.address, log.topics, log.data, number, each.transaction.hash, inclusion)
            for number, log in enumerate(each.logs, log_index)
        )
        log_index += len(logs)
        made.append(
            Receipt(
                each.transaction,
                inclusion,
                each.succeeded,
                each.gas_used,
                gas,
                base_fee,
                logs,
            )
        )
    return tuple(made)


def _executed(txs: Sequence[bytes], results: BlockResults) -> Iterator[ExecutedTransaction]:
    # A store that has lost some results lacks the last ones.
    for tx, result in zip(txs, results.tx_results, strict=False):
        if ethermint.was_charged(result):
            outcomes = ethermint.outcomes(result.events)
            # The chain has verified the transactions that it executed. The gas limit of those
            # that did not fit into the block is read below.
            verified = outcomes and result.code == 0
            transactions = _each(wrap_verified, tx) if verified else ethereum_transactions(tx)
            if transactions:
                yield from _executed_in_one(transactions, outcomes, result)


def _executed_in_one(
    transactions: Sequence[AnyTransaction], outcomes: Sequence[Outcome], result: ExecTxResult
) -> Iterator[ExecutedTransaction]:
    """Yield the transactions of one node transaction, each with what its events say."""
    indices = {tx.hash: index for index, tx in enumerate(transactions)}
    # By the index of the transaction with their hash, or else by their own position.
    found = {
        indices.get(outcome.hash or b"", position): outcome
        for position, outcome in enumerate(outcomes)
    }
    logs = _logs_by_transaction(indices, result)
    alone = len(transactions) == 1
    for index, tx in enumerate(transactions):
        outcome = found.get(index, Outcome())
        if result.code != 0:
            # Ethermint: it was not executed, and paid its whole gas limit.
            yield ExecutedTransaction(tx, False, decoded(tx).gas, ())
            continue
        gas = outcome.gas_used
        if gas is None:
            gas = max(0, result.gas_used) if alone else 0
        emitted = () if outcome.failed else logs.get(index, ())
        yield ExecutedTransaction(tx, not outcome.failed, gas, emitted)


def _logs_by_transaction(
    indices: Mapping[bytes, int], result: ExecTxResult
) -> dict[int, list[RawLog]]:
    found: dict[int, list[RawLog]] = {}
    for position, logs in enumerate(emitted_logs(result)):
        for log in logs:
            index = indices.get(log.transaction_hash or b"", position)
            found.setdefault(index, []).append(log)
    return found


def created_address(sender: bytes, nonce: int) -> bytes:
    """Return the address of the contract that a transaction creates."""
    return keccak(encode([sender, nonce]))[12:]
