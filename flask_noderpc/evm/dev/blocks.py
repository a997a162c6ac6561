"""Methods of anvil and hardhat that change what later blocks have: base fee, coinbase, limit.

Each makes a block of its own, from which the others follow by the chain's rules.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...jsonrpc.context import Context
from ...jsonrpc.params import Params, param
from ..codec import hex
from ..codec.call_objects import Big
from ..codec.params import Address
from ..errors import EvmError
from .control import Number, driving

# CometBFT counts gas in 64 bits with a sign.
_MOST_GAS = (1 << 63) - 1
_LEAST_GAS = 21_000
# EIP-1559: the block before has an eighth more.
_HIGHEST_FEE = 1 << 255


@dataclass(frozen=True, slots=True)
class FeeParams(Params):
    """Parameters of ``anvil_setNextBlockBaseFeePerGas``."""

    fee: int = param(Big(), doc="Wei for a unit of gas.")


@dataclass(frozen=True, slots=True)
class CoinbaseParams(Params):
    """Parameters of ``anvil_setCoinbase``."""

    address: bytes = param(Address(), doc="Who gets the tips.")


@dataclass(frozen=True, slots=True)
class GasLimitParams(Params):
    """Parameters of ``evm_setBlockGasLimit``."""

    limit: int = param(Number(), doc="Units of gas.")


def set_base_fee(ctx: Context, params: FeeParams) -> bool:
    """Let the next block have a base fee."""
    if params.fee >= _HIGHEST_FEE:
        raise EvmError("a base fee has at most 255 bits")
    with driving(ctx) as driven:
        driven.set_base_fee(params.fee)
    return True


def set_coinbase(ctx: Context, params: CoinbaseParams) -> bool:
    """Let an account have the tips from the next block on."""
    with driving(ctx) as driven:
        driven.set_coinbase(params.address)
    return True


def set_gas_limit(ctx: Context, params: GasLimitParams) -> bool:
    """Let blocks have a gas limit from the next one on."""
    if not _LEAST_GAS <= params.limit <= _MOST_GAS:
        raise EvmError(f"a block's gas limit is from {_LEAST_GAS} to {hex.quantity(_MOST_GAS)}")
    with driving(ctx) as driven:
        driven.set_gas_limit(params.limit)
    return True
