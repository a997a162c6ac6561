"""Handlers that set balances and allowances of tokens (ERC-20) on a development chain.

Each token's code decides in which storage slot it keeps a balance. The handlers try the slots
that ``balanceOf`` or ``allowance`` reads, until a call returns the new amount.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from ....jsonrpc.context import Context
from ....jsonrpc.params import Params, param
from ...application.patches import Change
from ...domain.execution import AccountOverride, CallArgs
from ..codec.params import Address
from ..errors import INTERNAL_ERROR, EvmError
from ..execution import calls
from .control import Number, change

# Selectors of "balanceOf(address)" and "allowance(address,address)".
_BALANCE_OF, _ALLOWANCE = bytes.fromhex("70a08231"), bytes.fromhex("dd62ed3e")
# Maximum number of slots to try, each with a call; usual tokens read only a few.
_MAX_SLOTS = 200


@dataclass(frozen=True, slots=True)
class DealParams(Params):
    """Parameters of ``anvil_dealERC20``."""

    address: bytes = param(Address(), doc="Address of the owner.")
    token: bytes = param(Address(), doc="Address of the token's contract.")
    balance: int = param(Number(), doc="Balance in the token's smallest unit.")


@dataclass(frozen=True, slots=True)
class AllowanceParams(Params):
    """Parameters of ``anvil_setERC20Allowance``."""

    owner: bytes = param(Address(), doc="Address of the owner.")
    spender: bytes = param(Address(), doc="Address that may spend.")
    token: bytes = param(Address(), doc="Address of the token's contract.")
    amount: int = param(Number(), doc="Amount in the token's smallest unit.")


def deal(ctx: Context, params: DealParams) -> None:
    """Set an account's balance of a token."""
    data = _BALANCE_OF + params.address.rjust(32, b"\0")
    _set(ctx, CallArgs(to=params.token, data=data), params.balance, "balance")


def set_allowance(ctx: Context, params: AllowanceParams) -> None:
    """Set the amount of an owner's tokens that a spender may move."""
    data = _ALLOWANCE + params.owner.rjust(32, b"\0") + params.spender.rjust(32, b"\0")
    _set(ctx, CallArgs(to=params.token, data=data), params.amount, "allowance")


def _set(ctx: Context, read: CallArgs, amount: int, what: str) -> None:
    """Find the slot from which the call ``read`` takes its result; write the amount there."""
    word = amount.to_bytes(32)
    for address, slot in islice(_slots(ctx, read), _MAX_SLOTS):
        overrides = {address: AccountOverride(state_diff={slot: word})}
        try:
            found = calls.call(ctx, calls.CallParams(read, overrides=overrides))
        except EvmError:
            continue
        if found == word:
            change(ctx, Change(overrides=overrides))
            return
    # anvil: text and code of this error.
    raise EvmError(f"Unable to set ERC20 {what}, no slot found", code=INTERNAL_ERROR)


def _slots(ctx: Context, read: CallArgs) -> Iterator[tuple[bytes, bytes]]:
    listed = calls.create(ctx, calls.AccessListParams(read))["accessList"]
    for entry in listed:
        for slot in entry.storage_keys:
            yield entry.address, slot
