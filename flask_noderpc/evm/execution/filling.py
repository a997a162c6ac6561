"""Fill in missing fields of transactions: nonce, gas, fees and chain id.

geth: internal/ethapi/transaction_args.go, setDefaults.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...domain.ethereum import BLOB, DYNAMIC_FEE, ZERO_ADDRESS, Transaction
from ...domain.evm import CallArgs
from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams, Params, param
from ...protocol.ethereum.crypto import keccak
from ...protocol.ethereum.transactions import encode
from ..codec.call_objects import TransactionObject
from ..codec.params import Tag
from ..errors import EvmError
from ..queries import fees
from . import calls, state


@dataclass(frozen=True, slots=True)
class FillParams(Params):
    """For methods that make a transaction."""

    args: CallArgs = param(TransactionObject(), doc="What of it is said.")


def fill(ctx: Context, params: FillParams) -> dict[str, Any]:
    """A transaction with all that was left open, unsigned."""
    args = params.args
    if args.nonce is None:
        args = replace(args, nonce=pending_nonce(ctx, args.sender or ZERO_ADDRESS))
    tx = filled(ctx, args)
    raw = encode(tx)
    return {"raw": raw, "tx": replace(tx, raw=raw, hash=keccak(raw))}


def pending_nonce(ctx: Context, sender: bytes) -> int:
    """The nonce that comes behind all that waits."""
    return state.transaction_count(ctx, state.AccountParams(sender, Tag.PENDING))


def filled(ctx: Context, args: CallArgs) -> Transaction:
    """The transaction, with nonce 0 where none was said."""
    own = ctx.settings.evm_chain_id
    if args.chain_id is not None and args.chain_id != own:
        raise EvmError(f"chainId does not match node's (have={args.chain_id}, want={own})")
    if args.to is None and not args.data:
        raise EvmError("contract creation without any data provided")
    if args.type == BLOB:
        raise EvmError("signing blob transactions not supported")
    args = _with_fees(ctx, args)
    return Transaction(
        type=args.type,
        chain_id=own,
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
    # At its price the limit of an estimate may be more than its sender has.
    free = replace(args, gas_price=None, max_fee_per_gas=None, max_priority_fee_per_gas=None)
    return calls.estimate_gas(ctx, calls.CallParams(free))


def _with_fees(ctx: Context, args: CallArgs) -> CallArgs:
    """Twice the base fee and a tip, unless something else was said."""
    if args.gas_price is not None:
        if args.type >= DYNAMIC_FEE:
            raise EvmError(f"a transaction of type {args.type} has maxFeePerGas, no gasPrice")
        if not args.gas_price:
            raise EvmError("gasPrice must be non-zero after london fork")
        return args
    most, tip = args.max_fee_per_gas, args.max_priority_fee_per_gas
    if tip is None:
        tip = fees.priority_fee(ctx, NoParams())
    if most is None:
        most = 2 * fees.base_fee(ctx, NoParams()) + tip
    if not most:
        raise EvmError("maxFeePerGas must be non-zero")
    if most < tip:
        raise EvmError(f"maxFeePerGas ({most:#x}) < maxPriorityFeePerGas ({tip:#x})")
    return replace(args, max_fee_per_gas=most, max_priority_fee_per_gas=tip)
