"""Handlers that fill in and send transactions; with automine, they wait for the block.

They wait because hardhat's eth_sendTransaction returns after the block is mined, and tests
read the state next.

geth: internal/ethapi/transaction_args.go, setDefaults.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ....backends.sql.store import STORE
from ....domain.abci import ExecTxResult
from ....errors import NonceTaken, NotSupported, TxInCache, TxRejected
from ....feature import kind_of
from ....jsonrpc.context import Context
from ....jsonrpc.params import NoParams, Params, param
from ....protocol.secp256k1eth import keccak
from ...domain.execution import CallArgs
from ...domain.records import BLOB, DYNAMIC_FEE, ETHER, ZERO_ADDRESS, Transaction
from ...protocol.execution import Receipt
from ...protocol.transactions import (
    decode,
    encode,
    refuse_long_lists,
    without_blobs,
)
from ...protocol.validity import check_protected
from ...settings import EthereumSettings, takes_unprotected_txs
from ..codec.call_objects import TransactionObject
from ..codec.params import Data, Quantity, Tag
from ..errors import EvmError, not_supported
from ..queries import fees
from ..queries.blocks import find
from ..reader import chain_id_of
from . import calls, state

_MAX_AUTOMINE_WAIT_S = 10.0

_PACKAGE = __name__.partition(".")[0]


def settle(ctx: Context, tx: Transaction) -> None:
    """Wait until a transaction is in a block, for at most 10 seconds, if the chain
    automines."""
    if not _at_once(ctx):
        return
    if state.transaction_count(ctx, state.AccountParams(tx.sender, Tag.PENDING)) <= tx.nonce:
        # Don't wait if earlier nonces of the sender are missing: no block can include it yet.
        return
    latest = state.AccountParams(tx.sender, Tag.LATEST)
    deadline = time.monotonic() + _MAX_AUTOMINE_WAIT_S
    seen = ctx.backend.reads.latest_height()
    while state.transaction_count(ctx, latest) <= tx.nonce:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return
        seen = ctx.backend.reads.wait_for_height(seen, remaining)


def _at_once(ctx: Context) -> bool:
    try:
        return ctx.settings.dev and ctx.backend.control.automines()
    except NotSupported:
        return False


@dataclass(frozen=True, slots=True)
class FillParams(Params):
    """Parameters of methods that fill in a transaction."""

    args: CallArgs = param(TransactionObject(), doc="Transaction to fill in.")


def fill(ctx: Context, params: FillParams) -> dict[str, Any]:
    """An unsigned transaction, with its omitted members filled in."""
    args = params.args
    if args.nonce is None:
        args = replace(args, nonce=pending_nonce(ctx, args.sender or ZERO_ADDRESS))
    tx = fill_transaction(ctx, args)
    raw = encode(tx)
    return {"raw": raw, "tx": replace(tx, raw=raw, hash=keccak(raw))}


def pending_nonce(ctx: Context, sender: bytes) -> int:
    """Return the next nonce of the sender, after its pending transactions."""
    return state.transaction_count(ctx, state.AccountParams(sender, Tag.PENDING))


def fill_transaction(ctx: Context, args: CallArgs) -> Transaction:
    """Return the unsigned transaction, with fees and gas limit filled in; an omitted nonce is
    0.
    """
    chain_id = chain_id_of(ctx)
    if args.chain_id is not None and args.chain_id != chain_id:
        raise EvmError(f"chainId does not match node's (have={args.chain_id}, want={chain_id})")
    if args.to is None and not args.data:
        raise EvmError("contract creation without any data provided")
    if args.type == BLOB:
        raise EvmError("signing blob transactions not supported")
    args = _with_fees(ctx, args)
    return Transaction(
        type=args.type,
        chain_id=chain_id,
        nonce=args.nonce or 0,
        gas_price=args.gas_price,
        max_priority_fee_per_gas=args.max_priority_fee_per_gas,
        max_fee_per_gas=args.max_fee_per_gas,
        gas=_estimated(ctx, args) if args.gas is None else args.gas,
        to=args.to,
        value=args.value or 0,
        data=args.data or b"",
        access_list=args.access_list or (),
        authorizations=args.authorizations or (),
        v=0,
        r=0,
        s=0,
        raw=b"",
        hash=b"",
        sender=args.sender or ZERO_ADDRESS,
    )


def _estimated(ctx: Context, args: CallArgs) -> int:
    # Estimate without fees, as the sender may not be able to pay for the gas limit with which
    # the estimate starts.
    free = replace(args, gas_price=None, max_fee_per_gas=None, max_priority_fee_per_gas=None)
    return calls.estimate_gas(ctx, calls.EstimateParams(free))


def _with_fees(ctx: Context, args: CallArgs) -> CallArgs:
    """Return the arguments with omitted fees filled in: a suggested tip, and a maximum fee of
    the tip plus twice the base fee.

    geth refuses fees of zero. This function accepts them if the base fee is zero: gas prices,
    as anvil does, and EIP-1559 fees.
    """
    base_fee = fees.base_fee(ctx, NoParams())
    if args.gas_price is not None:
        _check_price(args, base_fee)
        return args
    max_fee, tip = args.max_fee_per_gas, args.max_priority_fee_per_gas
    if tip is None:
        tip = fees.priority_fee(ctx, NoParams())
        if max_fee is not None and not base_fee:
            tip = min(tip, max_fee)
    if max_fee is None:
        max_fee = 2 * base_fee + tip
    if base_fee and not max_fee:
        raise EvmError("maxFeePerGas must be non-zero")
    if max_fee < tip:
        raise EvmError(f"maxFeePerGas ({max_fee:#x}) < maxPriorityFeePerGas ({tip:#x})")
    return replace(args, max_fee_per_gas=max_fee, max_priority_fee_per_gas=tip)


def _check_price(args: CallArgs, base_fee: int) -> None:
    if args.type >= DYNAMIC_FEE:
        raise EvmError(
            f"expected maxFeePerGas instead of gasPrice for a transaction of type {args.type}"
        )
    if base_fee and not args.gas_price:
        raise EvmError("gasPrice must be non-zero after london fork")


# geth: eth_sendRawTransactionSync, --rpc.txsync.
_DEFAULT_WAIT_S, _MAX_WAIT_S = 20.0, 60.0
_NOT_IN_TIME = 4


@dataclass(frozen=True, slots=True)
class RawTransaction(Params):
    """Parameters of ``eth_sendRawTransaction``."""

    raw: bytes = param(Data(), doc="Encoded signed transaction.")


def send_raw(ctx: Context, params: RawTransaction) -> bytes:
    """Add a signed transaction to the mempool; return its Ethereum hash."""
    tx = hand_in_raw(ctx, params)
    settle(ctx, tx)
    return tx.hash


def hand_in_raw(ctx: Context, params: RawTransaction) -> Transaction:
    """Add a signed transaction to the mempool, without waiting for its block."""
    tx = read_raw(ctx, params)
    add_to_mempool(ctx, tx, ctx.backend.mempool.submit)
    return tx


def read_raw(ctx: Context, params: RawTransaction) -> Transaction:
    """Return a signed transaction for this chain; raise :exc:`.errors.EvmError` for another
    chain's."""
    _refuse_other_application(ctx)
    refuse_long_lists(params.raw)
    tx = decode(without_blobs(params.raw))
    if not takes_unprotected_txs(ctx.settings):
        check_protected(tx)
    chain_id = chain_id_of(ctx)
    if tx.chain_id not in (None, chain_id):
        raise EvmError(f"invalid chain id for signer: have {tx.chain_id} want {chain_id}")
    return tx


def _refuse_other_application(ctx: Context) -> None:
    """Raise :exc:`.errors.EvmError` if the chain has transactions of another kind.

    kvstore would otherwise accept an Ethereum transaction that contains the byte of ``=``.
    """
    store = STORE.find(ctx.backend)
    application = store and store.abci
    # A class of the user, even one that is derived from kvstore's, may take other transactions.
    is_ours = type(application).__module__.startswith(f"{_PACKAGE}.")
    kind = application and is_ours and kind_of(application)
    if application and kind and kind.txs:
        what = f"the application {application.name} executes no Ethereum transactions, only"
        cure = "NODERPC_APPLICATION=evm, or noderpc start --dev, makes a chain that does"
        raise not_supported(NotSupported(f"{what} {kind.txs}", cure))


def add_to_mempool(
    ctx: Context, tx: Transaction, submit: Callable[[bytes], ExecTxResult]
) -> None:
    """Add a transaction to the mempool with ``submit``.

    Raise :exc:`~flask_noderpc.errors.NonceTaken` if ``submit`` does.
    """
    check_fee(ctx, tx)
    try:
        check = submit(tx.raw)
    except NonceTaken:
        raise
    except TxInCache:
        raise EvmError(_known_reason(ctx, tx)) from None
    except TxRejected as error:
        raise EvmError(error.text_with_hint) from None
    if check.code != 0:
        raise EvmError(
            check.log or f"the application refused the transaction with code {check.code}"
        )


def _known_reason(ctx: Context, tx: Transaction) -> str:
    """Return geth's reason for refusing a transaction that was sent before: "already known"
    while it is pending, and after its execution that its nonce is too low."""
    try:
        check = ctx.backend.application.check_tx(tx.raw)
    except NotSupported:
        return "already known"
    waits = ctx.backend.mempool.pending_by_other_hash(tx.hash) is not None
    return "already known" if waits or check.code == 0 else check.log


def check_fee(ctx: Context, tx: Transaction) -> None:
    """Raise :exc:`.errors.EvmError` for a fee above NODERPC_EVM_TXFEE_CAP.

    geth: internal/ethapi, checkTxFee.
    """
    fee, cap = tx.gas * tx.fee_cap / ETHER, ctx.settings.of(EthereumSettings).evm_txfee_cap
    if cap and fee > cap:
        raise EvmError(
            f"tx fee ({fee:.2f} ether) exceeds the configured cap ({cap:.2f} ether);"
            " lower the fee or raise NODERPC_EVM_TXFEE_CAP"
        )


@dataclass(frozen=True, slots=True)
class RawTransactionSync(RawTransaction):
    """Parameters of ``eth_sendRawTransactionSync``."""

    timeout_ms: int | None = param(
        Quantity(), default=None, doc="Maximum wait in ms; 20 s when omitted, at most 60 s."
    )


def send_raw_sync(ctx: Context, params: RawTransactionSync) -> Receipt:
    """Add a signed transaction to the mempool, and wait for its receipt."""
    timeout = _DEFAULT_WAIT_S if params.timeout_ms is None else params.timeout_ms / 1000
    return receipt_of(ctx, lambda: send_raw(ctx, params), timeout)


def receipt_of(
    ctx: Context, send: Callable[[], bytes], timeout: float = _DEFAULT_WAIT_S
) -> Receipt:
    """Call ``send``, which returns a transaction's hash, and return the transaction's receipt
    when it is in a block."""
    with ctx.waiters.acquire(ctx.client) as waiter:
        seen = ctx.backend.reads.latest_height()
        tx_hash = send()
        deadline = time.monotonic() + min(timeout, _MAX_WAIT_S)
        while (found := find(ctx, tx_hash)) is None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise EvmError(
                    "the transaction was added to the mempool but wasn't processed in time",
                    code=_NOT_IN_TIME,
                    data=f"0x{tx_hash.hex()}",
                )
            seen = waiter.wait_for_block(ctx.backend, seen, remaining)
    return found
