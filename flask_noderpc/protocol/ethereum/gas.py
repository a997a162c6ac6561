"""Intrinsic gas of a transaction (Prague)."""

from __future__ import annotations

from ...domain.ethereum import AccessListEntry, Authorization

# The Yellow Paper's table of fees; EIP-2028 and EIP-2930.
_TX, _CREATE, _ZERO, _BYTE = 21_000, 32_000, 4, 16
_ADDRESS, _KEY = 2_400, 1_900
# EIP-3860, EIP-7702, EIP-7623.
_INITCODE_WORD, _AUTHORIZATION, _FLOOR = 2, 25_000, 10

MAX_INITCODE = 2 * 24_576
"""EIP-3860: bytes of the code that creates a contract."""


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
