"""Ethereum transactions, receipts and logs in a CometBFT block and its results.

Indexes are counted here, over all Ethereum transactions of a block; the indexes in a chain's
events are ignored, as they can be wrong (cosmos/evm issue 812).
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

    The transaction is decoded at first use, as recovering its sender takes longer than the
    rest of reading a block.
    """

    encoded: AnyTransaction
    inclusion: Inclusion
    succeeded: bool
    gas_used: int
    cumulative_gas_used: int
    """Gas used by the block's Ethereum transactions up to and including this one."""
    base_fee: int | None
    logs: tuple[Log, ...]
    revert_data: bytes | None = None
    """Output of a contract that reverted; ``None`` if it is not stored."""

    @cached_property
    def transaction(self) -> Transaction:
        """The transaction, with its sender."""
        return decoded(self.encoded)

    @property
    def in_block(self) -> RPCTransaction:
        """The transaction with its block, its index and the price that it paid."""
        return RPCTransaction(self.transaction, self.inclusion, self.effective_gas_price)

    @property
    def effective_gas_price(self) -> int:
        """Price paid per gas, in wei."""
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
    """Return the RLP of a receipt, after the byte of its transaction's type unless that is 0
    (EIP-2718)."""
    logs: list[Item] = [[log.address, log.topics, log.data] for log in receipt.logs]
    body = encode([int(receipt.succeeded), receipt.cumulative_gas_used, receipt.bloom, logs])
    kind = receipt.encoded.type
    return body if kind == LEGACY else bytes((kind,)) + body


@dataclass(frozen=True, slots=True)
class ExecutedTransaction:
    """An executed transaction before its index in the block is counted."""

    transaction: AnyTransaction
    succeeded: bool
    gas_used: int
    logs: Sequence[RawLog | EmittedLog]
    revert_data: bytes | None = None


def ethereum_transactions(
    tx: bytes, *, unsigned: bool = True, most: int | None = None
) -> tuple[Transaction, ...]:
    """Return the Ethereum transactions in a CometBFT transaction; empty if it has none.

    The CometBFT transaction is an Ethereum transaction, or a Cosmos SDK transaction with any
    number of them. If ``most`` is given, only as many of its messages are read. ``unsigned``
    also accepts unsigned ones, which the chain has accepted.
    """
    return _each(partial(decode, unsigned=unsigned), tx, most)


def transaction_hashes(tx: bytes) -> tuple[bytes, ...]:
    """Return the hashes of the Ethereum transactions in a CometBFT transaction.

    The transactions are not decoded, so other bytes are also hashed.
    """
    return _each(keccak, tx)


T = TypeVar("T")


def _each(read: Callable[[bytes], T], tx: bytes, most: int | None = None) -> tuple[T, ...]:
    """Return the results of ``read`` for each Ethereum transaction in a CometBFT transaction;
    empty if one of them is invalid."""
    try:
        found = cosmos.raw_transactions(tx, most) if tx[:1] == _COSMOS else (tx,)
        return tuple(map(read, found))
    except InvalidTransaction:
        return ()


def emitted_logs(result: ExecTxResult) -> Sequence[list[RawLog]]:
    """Return a list of logs for each Ethereum transaction in a CometBFT transaction, from the
    result's events, or from its data if no event has logs."""
    return list(ethermint.logs(result.events)) or list(ethermint.response_logs(result.data))


_COSMOS = bytes((cosmos.FIRST_BYTE,))


def receipts(
    txs: Sequence[bytes],
    results: BlockResults,
    block_hash: bytes,
    block_time: int,
) -> tuple[Receipt, ...]:
    """Return the receipts of a block's Ethereum transactions, in order.

    ``txs`` are the CometBFT transactions; ``block_time`` is in seconds.
    """
    executed = _executed(txs, results)
    base_fee = ethermint.base_fee(results)
    return number_receipts(
        executed, Inclusion(block_hash, results.height, block_time, 0), base_fee
    )


def number_receipts(
    executed: Iterable[ExecutedTransaction], first: Inclusion, base_fee: int | None
) -> tuple[Receipt, ...]:
    """Return the receipts of transactions in their order of execution, with indexes from 0;
    the block is the one in ``first``."""
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
                each.revert_data,
            )
        )
    return tuple(made)


def _executed(txs: Sequence[bytes], results: BlockResults) -> Iterator[ExecutedTransaction]:
    # Stop at the shorter one: if results are missing in the store, they are the last ones.
    for tx, result in zip(txs, results.tx_results, strict=False):
        if ethermint.was_charged(result):
            outcomes = ethermint.outcomes(result.events)
            # The chain verified what it executed, so do not decode it. Transactions that did
            # not fit into the block are decoded, as their gas limit is needed below.
            verified = outcomes and result.code == 0
            transactions = _each(wrap_verified, tx) if verified else ethereum_transactions(tx)
            if transactions:
                yield from _executed_in_one(transactions, outcomes, result)


def _executed_in_one(
    transactions: Sequence[AnyTransaction], outcomes: Sequence[Outcome], result: ExecTxResult
) -> Iterator[ExecutedTransaction]:
    """Yield the transactions of one CometBFT transaction, with status, gas and logs from its
    events."""
    indices = {tx.hash: index for index, tx in enumerate(transactions)}
    # Match an outcome to the transaction with its hash, or without one by its position.
    found = {
        indices.get(outcome.hash or b"", position): outcome
        for position, outcome in enumerate(outcomes)
    }
    logs = _logs_by_transaction(indices, result)
    alone = len(transactions) == 1
    for index, tx in enumerate(transactions):
        outcome = found.get(index, Outcome())
        if result.code != 0:
            # Ethermint: the transaction was not executed, and paid for its whole gas limit.
            yield ExecutedTransaction(tx, False, decoded(tx).gas, ())
            continue
        gas = outcome.gas_used
        if gas is None:
            gas = max(0, result.gas_used) if alone else 0
        emitted = () if outcome.failed else logs.get(index, ())
        yield ExecutedTransaction(tx, not outcome.failed, gas, emitted, outcome.revert_data)


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
