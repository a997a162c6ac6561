"""Hands signed transactions to the mempool."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ...domain.abci import TxResult
from ...domain.ethereum import ETHER, Receipt, Transaction
from ...errors import NotSupported, PlaceTaken, TxInCache, TxRejected
from ...jsonrpc.context import Context
from ...jsonrpc.params import Params, param
from ...protocol.ethereum.transactions import decode, without_blobs
from ..codec.params import Data, Quantity
from ..errors import EvmError
from ..queries.transactions import find
from .automine_wait import settle

# geth: eth_sendRawTransactionSync, --rpc.txsync.
_DEFAULT_WAIT_S, _MAX_WAIT_S = 20.0, 60.0
_NOT_IN_TIME = 4


@dataclass(frozen=True, slots=True)
class RawTransaction(Params):
    """Parameters of ``eth_sendRawTransaction``."""

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
    tx_hash = hand_in(ctx, tx, ctx.backend.mempool.submit)
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
        raise EvmError(error.text_with_hint) from None
    if check.code != 0:
        raise EvmError(check.log or f"the application refuses it with code {check.code}")
    return tx.hash


def _why_known(ctx: Context, tx: Transaction) -> str:
    """geth: one that waits is known, and one that ran has a nonce that was used."""
    try:
        check = ctx.backend.application.check_tx(tx.raw)
    except NotSupported:
        return "already known"
    waits = ctx.backend.mempool.pending_by_eth_hash(tx.hash) is not None
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
    """Parameters of ``eth_sendRawTransactionSync``."""

    timeout_ms: int | None = param(
        Quantity(), default=None, doc="How long to wait; 20 s when omitted, at most 60 s."
    )


def send_raw_sync(ctx: Context, params: RawTransactionSync) -> Receipt:
    """Hand a signed transaction to the mempool, and wait for its receipt."""
    wanted = _DEFAULT_WAIT_S if params.timeout_ms is None else params.timeout_ms / 1000
    with ctx.waiters.acquire(ctx.client) as seat:
        seen = ctx.backend.latest_height()
        tx_hash = send_raw(ctx, params)
        deadline = time.monotonic() + min(wanted, _MAX_WAIT_S)
        while (found := find(ctx, tx_hash)) is None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise EvmError(
                    "the transaction was added to the mempool but wasn't processed in time",
                    code=_NOT_IN_TIME,
                    data=f"0x{tx_hash.hex()}",
                )
            seen = seat.wait_for_block(ctx.backend, seen, remaining)
    return found
