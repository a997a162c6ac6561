"""Transactions and receipts, by hash or by place; what is not there is null."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..domain.abci import TxResult
from ..domain.ethereum import ETHER, Block, Log, PlacedTransaction, Receipt, Transaction
from ..errors import NotSupported, PlaceTaken, TxInCache, TxRejected
from ..ethereum.blobs import without_blobs
from ..ethereum.blocks import pending_transaction
from ..ethereum.execution import transaction_hashes
from ..ethereum.transactions import decode
from ..rpc.context import Context
from ..rpc.params import NoParams, Params, param
from .blocks import HashAndIndex, NumberAndIndex
from .budget import Budget
from .errors import EvmError
from .params import Data, Hash, Quantity
from .reader import reader
from .settling import settle

# How many waiting transactions are looked through.
_MOST_PENDING = 100

# geth: eth_sendRawTransactionSync, --rpc.txsync.
_DEFAULT_WAIT_S, _LONGEST_WAIT_S = 20.0, 60.0
_NOT_IN_TIME = 4


@dataclass(frozen=True, slots=True)
class OfTransaction(Params):
    """For methods about a transaction by its hash."""

    hash: bytes = param(Hash(), doc="Ethereum hash of the transaction.")


def by_hash(ctx: Context, params: OfTransaction) -> PlacedTransaction | None:
    """A transaction by its Ethereum hash, committed or waiting."""
    receipt = find(ctx, params.hash)
    if receipt is None:
        return _waiting_with(ctx, params.hash)
    return PlacedTransaction(receipt.transaction, receipt.place, receipt.effective_gas_price)


def _waiting_with(ctx: Context, tx_hash: bytes) -> PlacedTransaction | None:
    found = ctx.backend.pending_with(tx_hash)
    for raw in (found,) if found else ctx.backend.pending(_MOST_PENDING).txs:
        # Clients ask again and again for what is not there; senders cost more than hashes.
        if tx_hash in transaction_hashes(raw):
            own = (tx for tx in reader(ctx).decoded(raw) if tx.hash == tx_hash)
            return next(map(pending_transaction, own), None)
    return None


def receipt(ctx: Context, params: OfTransaction) -> Receipt | None:
    """What executing a transaction gave; null while it waits."""
    return find(ctx, params.hash)


def logs(ctx: Context, params: OfTransaction) -> tuple[Log, ...] | None:
    """The logs of a transaction."""
    found = find(ctx, params.hash)
    return None if found is None else found.logs


def find(ctx: Context, tx_hash: bytes) -> Receipt | None:
    """The committed transaction with an Ethereum hash, and what it gave.

    Of several places it is where the transaction succeeded, or else the newest: its nonce lets
    it run once, and elsewhere it did not fit the block.
    """
    newest = None
    for height in ctx.backend.ethereum_tx_heights(tx_hash, Budget(ctx.settings).effort):
        block = reader(ctx).at(height)
        for each in block.receipts if block else ():
            if each.transaction.hash == tx_hash:
                if each.succeeded:
                    return each
                newest = newest or each
    return newest


def by_number_and_index(ctx: Context, params: NumberAndIndex) -> PlacedTransaction | None:
    """A transaction by its place in a block."""
    return _in(reader(ctx).block(params.block), params.index)


def by_hash_and_index(ctx: Context, params: HashAndIndex) -> PlacedTransaction | None:
    """A transaction by its place in a block."""
    return _in(reader(ctx).by_hash(params.hash), params.index)


def _in(block: Block | None, index: int) -> PlacedTransaction | None:
    if block is None or index >= len(block.transactions):
        return None
    return block.transactions[index]


def raw_by_hash(ctx: Context, params: OfTransaction) -> bytes | None:
    """A transaction's canonical bytes, by its Ethereum hash."""
    return _raw(by_hash(ctx, params))


def raw_by_number_and_index(ctx: Context, params: NumberAndIndex) -> bytes | None:
    """A transaction's canonical bytes, by its place in a block."""
    return _raw(by_number_and_index(ctx, params))


def raw_by_hash_and_index(ctx: Context, params: HashAndIndex) -> bytes | None:
    """A transaction's canonical bytes, by its place in a block."""
    return _raw(by_hash_and_index(ctx, params))


def _raw(placed: PlacedTransaction | None) -> bytes | None:
    return None if placed is None else placed.transaction.raw


def pending(ctx: Context, params: NoParams) -> tuple[PlacedTransaction, ...]:
    """The transactions that wait for a block, oldest first."""
    return tuple(map(pending_transaction, reader(ctx).waiting()))


@dataclass(frozen=True, slots=True)
class RawTransaction(Params):
    """Of ``eth_sendRawTransaction``."""

    raw: bytes = param(Data(), doc="The signed transaction, encoded.")


def send_raw(ctx: Context, params: RawTransaction) -> bytes:
    """Hand a signed transaction to the mempool; its Ethereum hash."""
    tx = decode(without_blobs(params.raw))
    if tx.chain_id is None:
        # geth: internal/ethapi.
        raise EvmError("only replay-protected (EIP-155) transactions allowed over RPC")
    if tx.chain_id != ctx.settings.evm_chain_id:
        raise EvmError(
            f"invalid chain id for signer: have {tx.chain_id} want {ctx.settings.evm_chain_id}"
        )
    tx_hash = hand_in(ctx, tx, ctx.backend.submit)
    settle(ctx, tx)
    return tx_hash


def hand_in(ctx: Context, tx: Transaction, submit: Callable[[bytes], TxResult]) -> bytes:
    """Hand a transaction to the mempool by a way of its own; its Ethereum hash.

    Raise :exc:`~flask_noderpc.errors.PlaceTaken` where ``submit`` does.
    """
    check_fee(ctx, tx)
    try:
        check = submit(tx.raw)
    except PlaceTaken:
        raise
    except TxInCache:
        raise EvmError(_why_known(ctx, tx)) from None
    except TxRejected as error:
        raise EvmError(error.said) from None
    if check.code != 0:
        raise EvmError(check.log or f"the application refuses it with code {check.code}")
    return tx.hash


def _why_known(ctx: Context, tx: Transaction) -> str:
    """geth: one that waits is known, and one that ran has a nonce that was used."""
    try:
        check = ctx.backend.check_tx(tx.raw)
    except NotSupported:
        return "already known"
    waits = ctx.backend.pending_with(tx.hash) is not None
    return "already known" if waits or check.code == 0 else check.log


def check_fee(ctx: Context, tx: Transaction) -> None:
    """Refuse a fee that can only be a mistake; geth: internal/ethapi, checkTxFee."""
    fee, cap = tx.gas * tx.fee_cap / ETHER, ctx.settings.evm_txfee_cap
    if cap and fee > cap:
        raise EvmError(
            f"tx fee ({fee:.2f} ether) exceeds the configured cap ({cap:.2f} ether)"
            " (NODERPC_EVM_TXFEE_CAP raises it)"
        )


@dataclass(frozen=True, slots=True)
class RawTransactionSync(RawTransaction):
    """Of ``eth_sendRawTransactionSync``."""

    timeout_ms: int | None = param(
        Quantity(), default=None, doc="How long to wait; 20 s when omitted, at most 60 s."
    )


def send_raw_sync(ctx: Context, params: RawTransactionSync) -> Receipt:
    """Hand a signed transaction to the mempool, and wait for its receipt."""
    wanted = _DEFAULT_WAIT_S if params.timeout_ms is None else params.timeout_ms / 1000
    with ctx.seats.one():
        seen = ctx.backend.latest_height()
        tx_hash = send_raw(ctx, params)
        deadline = time.monotonic() + min(wanted, _LONGEST_WAIT_S)
        while (found := find(ctx, tx_hash)) is None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise EvmError(
                    "the transaction was added to the mempool but wasn't processed in time",
                    code=_NOT_IN_TIME,
                    data=f"0x{tx_hash.hex()}",
                )
            seen = ctx.seats.wait_for_height(ctx.backend, seen, remaining)
    return found
