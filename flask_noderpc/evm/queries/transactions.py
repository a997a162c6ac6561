"""Transactions and receipts, by hash or by place; what is not there is null."""

from __future__ import annotations

from dataclasses import dataclass

from ...domain.ethereum import Block, Log, PlacedTransaction, Receipt
from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams, Params, param
from ...protocol.ethereum.blocks import pending_transaction
from ...protocol.ethereum.execution import transaction_hashes
from ..codec.params import Hash
from ..reader import reader
from ..search_budget import SearchBudget
from .blocks import HashAndIndexParams, NumberAndIndexParams

# How many waiting transactions are looked through.
_MOST_PENDING = 100


@dataclass(frozen=True, slots=True)
class TransactionParams(Params):
    """For methods about a transaction by its hash."""

    hash: bytes = param(Hash(), doc="Ethereum hash of the transaction.")


def by_hash(ctx: Context, params: TransactionParams) -> PlacedTransaction | None:
    """A transaction by its Ethereum hash, committed or waiting."""
    receipt = find(ctx, params.hash)
    if receipt is None:
        return _waiting_with(ctx, params.hash)
    return PlacedTransaction(receipt.transaction, receipt.place, receipt.effective_gas_price)


def _waiting_with(ctx: Context, tx_hash: bytes) -> PlacedTransaction | None:
    found = ctx.backend.mempool.pending_by_eth_hash(tx_hash)
    for raw in (found,) if found else ctx.backend.mempool.pending(_MOST_PENDING).txs:
        # Clients ask again and again for what is not there; senders cost more than hashes.
        if tx_hash in transaction_hashes(raw):
            own = (tx for tx in reader(ctx).decoded(raw) if tx.hash == tx_hash)
            return next(map(pending_transaction, own), None)
    return None


def receipt(ctx: Context, params: TransactionParams) -> Receipt | None:
    """Receipt of a transaction; null while it is pending."""
    return find(ctx, params.hash)


def logs(ctx: Context, params: TransactionParams) -> tuple[Log, ...] | None:
    """The logs of a transaction."""
    found = find(ctx, params.hash)
    return None if found is None else found.logs


def find(ctx: Context, tx_hash: bytes) -> Receipt | None:
    """The committed transaction with an Ethereum hash, and what it gave.

    Of several places it is where the transaction succeeded, or else the newest: its nonce lets
    it run once, and elsewhere it did not fit the block.
    """
    newest = None
    for height in ctx.backend.evm_index.tx_heights(tx_hash, SearchBudget(ctx.settings).limits):
        block = reader(ctx).at(height)
        for each in block.receipts if block else ():
            if each.transaction.hash == tx_hash:
                if each.succeeded:
                    return each
                newest = newest or each
    return newest


def by_number_and_index(ctx: Context, params: NumberAndIndexParams) -> PlacedTransaction | None:
    """A transaction by its place in a block."""
    return _in(reader(ctx).block(params.block), params.index)


def by_hash_and_index(ctx: Context, params: HashAndIndexParams) -> PlacedTransaction | None:
    """A transaction by its place in a block."""
    return _in(reader(ctx).by_hash(params.hash), params.index)


def _in(block: Block | None, index: int) -> PlacedTransaction | None:
    if block is None or index >= len(block.transactions):
        return None
    return block.transactions[index]


def raw_by_hash(ctx: Context, params: TransactionParams) -> bytes | None:
    """A transaction's canonical bytes, by its Ethereum hash."""
    return _raw(by_hash(ctx, params))


def raw_by_number_and_index(ctx: Context, params: NumberAndIndexParams) -> bytes | None:
    """A transaction's canonical bytes, by its place in a block."""
    return _raw(by_number_and_index(ctx, params))


def raw_by_hash_and_index(ctx: Context, params: HashAndIndexParams) -> bytes | None:
    """A transaction's canonical bytes, by its place in a block."""
    return _raw(by_hash_and_index(ctx, params))


def _raw(placed: PlacedTransaction | None) -> bytes | None:
    return None if placed is None else placed.transaction.raw


def pending(ctx: Context, params: NoParams) -> tuple[PlacedTransaction, ...]:
    """The transactions that wait for a block, oldest first."""
    return tuple(map(pending_transaction, reader(ctx).waiting()))
