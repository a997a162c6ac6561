"""Intrinsic gas of a transaction (Prague), and the base fee of the next block."""

from __future__ import annotations

from ...domain.ethereum import AccessListEntry, Authorization

# The Yellow Paper's table of fees; EIP-2028 and EIP-2930.
_TX, _CREATE, _ZERO, _BYTE = 21_000, 32_000, 4, 16
_ADDRESS, _KEY = 2_400, 1_900
# EIP-3860, EIP-7702, EIP-7623.
_INITCODE_WORD, _AUTHORIZATION, _FLOOR = 2, 25_000, 10

MAX_INITCODE = 2 * 24_576
"""EIP-3860: bytes of the code that creates a contract."""

# EIP-1559: ratio of a block's gas limit to its gas target, and divisor of the largest change
# of the fee.
ELASTICITY = 2
CHANGE_DENOMINATOR = 8


def intrinsic_gas(
    data: bytes,
    creates: bool,
    access_list: tuple[AccessListEntry, ...] = (),
    authorizations: tuple[Authorization, ...] = (),
) -> int:
    """The gas that is spent in any case."""
    zeros = data.count(0)
    gas = _TX + _ZERO * zeros + _BYTE * (len(data) - zeros)
    if creates:
        gas += _CREATE + initcode_gas(data)
    gas += sum(_ADDRESS + _KEY * len(entry.storage_keys) for entry in access_list)
    return gas + _AUTHORIZATION * len(authorizations)


def initcode_gas(data: bytes) -> int:
    """EIP-3860: what is paid for each word of the code that creates a contract."""
    return _INITCODE_WORD * ((len(data) + 31) // 32)


def floor_gas(data: bytes) -> int:
    """EIP-7623: what a transaction with so much calldata costs at least."""
    zeros = data.count(0)
    return _TX + _FLOOR * (zeros + 4 * (len(data) - zeros))


def next_base_fee(fee: int, gas_used: int, gas_limit: int) -> int:
    """Return the base fee of the next block by EIP-1559; 0 on a chain without base fees."""
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
