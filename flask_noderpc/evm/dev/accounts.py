"""Methods of anvil and hardhat that change accounts: balance, nonce, code and storage.

Each makes a block of its own, so that the state after every block is that of its root.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...domain.evm import AccountOverride
from ...errors import TxRejected
from ...jsonrpc.context import Context
from ...jsonrpc.params import Params, param
from ..codec import hex
from ..codec.call_objects import Big
from ..codec.params import Address, Data, Tag
from ..errors import EvmError
from ..execution import state
from ..execution.state import StorageKey
from .control import Number, control


@dataclass(frozen=True, slots=True)
class BalanceParams(Params):
    """Parameters of ``anvil_setBalance``."""

    address: bytes = param(Address(), doc="Address of the account.")
    balance: int = param(Big(), doc="Wei.")


@dataclass(frozen=True, slots=True)
class NonceParams(Params):
    """Parameters of ``anvil_setNonce``."""

    address: bytes = param(Address(), doc="Address of the account.")
    nonce: int = param(Number(), doc="The next.")


@dataclass(frozen=True, slots=True)
class CodeParams(Params):
    """Parameters of ``anvil_setCode``."""

    address: bytes = param(Address(), doc="Address of the account.")
    code: bytes = param(Data(), doc="What runs there.")


@dataclass(frozen=True, slots=True)
class StorageWordParams(Params):
    """Parameters of ``anvil_setStorageAt``."""

    address: bytes = param(Address(), doc="Address of the account.")
    key: bytes = param(StorageKey(), doc="Place in its storage.")
    word: bytes = param(StorageKey(), doc="What is to be there.")


def _patch(ctx: Context, address: bytes, override: AccountOverride) -> bool:
    try:
        control(ctx).patch({address: override})
    except TxRejected as error:
        raise EvmError(error.text_with_hint) from None
    return True


def set_balance(ctx: Context, params: BalanceParams) -> bool:
    """Give an account its balance."""
    return _patch(ctx, params.address, AccountOverride(balance=params.balance))


def add_balance(ctx: Context, params: BalanceParams) -> bool:
    """Give an account more than it has."""
    before = state.balance(ctx, state.AccountParams(params.address, Tag.LATEST))
    if before + params.balance >= 1 << 256:
        raise EvmError("the balance would have more than 256 bits")
    return _patch(ctx, params.address, AccountOverride(balance=before + params.balance))


def set_nonce(ctx: Context, params: NonceParams) -> bool:
    """Give an account its next nonce."""
    if params.nonce > hex.MAX_UINT64:
        raise EvmError("nonce has more than 64 bits")
    return _patch(ctx, params.address, AccountOverride(nonce=params.nonce))


def set_code(ctx: Context, params: CodeParams) -> bool:
    """Put code at an address."""
    return _patch(ctx, params.address, AccountOverride(code=params.code))


def set_storage_at(ctx: Context, params: StorageWordParams) -> bool:
    """Put a word into an account's storage."""
    return _patch(ctx, params.address, AccountOverride(state_diff={params.key: params.word}))
