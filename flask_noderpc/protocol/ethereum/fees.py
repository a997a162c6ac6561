"""EIP-1559 base fee of the next block."""

from __future__ import annotations

# Ratio of a block's gas limit to its gas target, and divisor of the largest change of the fee.
ELASTICITY = 2
CHANGE_DENOMINATOR = 8


def next_base_fee(fee: int, gas_used: int, gas_limit: int) -> int:
    """Return the base fee of the block after this one; 0 on a chain without base fees."""
    target = gas_limit // ELASTICITY
    if not fee or not target:
        return fee
    change = fee * abs(gas_used - target) // target // CHANGE_DENOMINATOR
    if gas_used > target:
        return fee + max(1, change)
    return fee - change if gas_used < target else fee


def fee_of_empty_block_before(fee: int) -> int:
    """Return the base fee of an empty block whose successor has the base fee ``fee``."""
    whole, rest = divmod(fee, CHANGE_DENOMINATOR - 1)
    return CHANGE_DENOMINATOR * whole + rest
