"""RIPEMD-160, of which the addresses of secp256k1 keys are made.

OpenSSL 3.0.0 to 3.0.6 have it in a provider that is not loaded. The fallback follows the paper
of Dobbertin, Bosselaers and Preneel: two parallel lines of five rounds of sixteen steps for
each block of 64 bytes.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence

_RIPEMD_MASK = 0xFFFFFFFF

_RIPEMD_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)

# For each line: the constants of the rounds, the word of each step, and its shift.
_LEFT_K = (0x00000000, 0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xA953FD4E)
_RIGHT_K = (0x50A28BE6, 0x5C4DD124, 0x6D703EF3, 0x7A6D76E9, 0x00000000)

_RIPEMD_RHO = (7, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8)
_RIPEMD_SHIFTS = (
    (11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8),
    (12, 13, 11, 15, 6, 9, 9, 7, 12, 15, 11, 13, 7, 8, 7, 7),
    (13, 15, 14, 11, 7, 7, 6, 8, 13, 14, 13, 12, 5, 5, 6, 9),
    (14, 11, 12, 14, 8, 6, 5, 5, 15, 12, 15, 14, 9, 9, 8, 6),
    (15, 12, 13, 13, 9, 5, 8, 6, 14, 11, 12, 11, 8, 6, 5, 5),
)

_Mix = Callable[[int, int, int], int]
_RIPEMD_MIXES: tuple[_Mix, ...] = (
    lambda x, y, z: x ^ y ^ z,
    lambda x, y, z: x & y | ~x & z,
    lambda x, y, z: (x | ~y) ^ z,
    lambda x, y, z: x & z | y & ~z,
    lambda x, y, z: x ^ (y | ~z),
)


def _orders(first: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the word order of each of the five rounds; each permutes the previous one."""
    orders = [tuple(first)]
    while len(orders) < 5:
        orders.append(tuple(_RIPEMD_RHO[word] for word in orders[-1]))
    return tuple(orders)


_LEFT_ORDERS = _orders(range(16))
_RIGHT_ORDERS = _orders([(9 * index + 5) % 16 for index in range(16)])


def ripemd160(data: bytes) -> bytes:
    """Return the 20-byte hash."""
    try:
        return hashlib.new("ripemd160", data, usedforsecurity=False).digest()
    except ValueError:
        return ripemd160_py(data)


def ripemd160_py(data: bytes) -> bytes:
    """Return the hash, computed without OpenSSL."""
    state: tuple[int, ...] = _RIPEMD_START
    padding = b"\x80" + bytes(-(len(data) + 9) % 64) + struct.pack("<Q", 8 * len(data))
    padded = data + padding
    for at in range(0, len(padded), 64):
        state = _compressed(state, struct.unpack_from("<16I", padded, at))
    return struct.pack("<5I", *state)


def _compressed(state: tuple[int, ...], words: Sequence[int]) -> tuple[int, ...]:
    left = _line(state, words, _LEFT_ORDERS, _LEFT_K, _RIPEMD_MIXES)
    right = _line(state, words, _RIGHT_ORDERS, _RIGHT_K, _RIPEMD_MIXES[::-1])
    return tuple(
        (state[(i + 1) % 5] + left[(i + 2) % 5] + right[(i + 3) % 5]) & _RIPEMD_MASK
        for i in range(5)
    )


def _line(
    state: tuple[int, ...],
    words: Sequence[int],
    orders: Sequence[Sequence[int]],
    constants: Sequence[int],
    mixes: Sequence[_Mix],
) -> tuple[int, ...]:
    a, b, c, d, e = state
    for order, constant, mix, shifts in zip(
        orders, constants, mixes, _RIPEMD_SHIFTS, strict=True
    ):
        for word in order:
            total = a + (mix(b, c, d) & _RIPEMD_MASK) + words[word] + constant
            rotated_sum = (_rotated(total, shifts[word]) + e) & _RIPEMD_MASK
            a, b, c, d, e = e, rotated_sum, b, _rotated(c, 10), d
    return a, b, c, d, e


def _rotated(value: int, by: int) -> int:
    value &= _RIPEMD_MASK
    return (value << by | value >> (32 - by)) & _RIPEMD_MASK
