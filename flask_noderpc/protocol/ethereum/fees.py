"""EIP-1559: what the base fee becomes."""

from __future__ import annotations

# How much a block may have above its target, and by how much the fee may change.
ELASTICITY = 2
CHANGE_DENOMINATOR = 8


def next_base_fee(fee: int, gas_used: int, gas_limit: int) -> int:
    """The base fee after a block; a chain without one stays without."""
    target = gas_limit // ELASTICITY
    if not fee or not target:
        return fee
    change = fee * abs(gas_used - target) // target // CHANGE_DENOMINATOR
    if gas_used > target:
        return fee + max(1, change)
    return fee - change if gas_used < target else fee


def fee_of_empty_block_before(fee: int) -> int:
    """The base fee of a block without any gas, after which the next has this one."""
    whole, rest = divmod(fee, CHANGE_DENOMINATOR - 1)
    return CHANGE_DENOMINATOR * whole + rest
