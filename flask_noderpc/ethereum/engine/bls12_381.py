"""Precompiled contracts of the curve BLS12-381, as in EIP-2537 and EIP-4844."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

from py_arkworks_bls12381 import GT, G1Point, G2Point, Scalar

from .bn254 import NOT_CANONICAL

_MODULUS = int(
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f624"
    "1eabfffeb153ffffb9feffffffffaaab",
    16,
)
_FIELD, _NUMBER = 64, 48
_PADDING = bytes(_FIELD - _NUMBER)
_G1_BYTES, _G2_BYTES, _SCALAR_BYTES = 2 * _FIELD, 4 * _FIELD, 32

# Texts of geth's core/vm/contracts.go.
LENGTH = "invalid input length"
_TOP_BYTES = "invalid field element top bytes"
_NOT_ON_CURVE = "invalid point: not on curve"
_NOT_IN_SUBGROUP = "g{} point is not on correct subgroup"


def g1_add(data: bytes) -> bytes:
    """Return the sum of two points of G1; raise :exc:`ValueError` with geth's text."""
    one, other = map(_g1, _parts(data, _G1_BYTES, 2))
    return _encoded(one + other)


def g2_add(data: bytes) -> bytes:
    """Return the sum of two points of G2; raise :exc:`ValueError` with geth's text."""
    one, other = map(_g2, _parts(data, _G2_BYTES, 2))
    return _encoded(one + other)


def g1_msm(data: bytes) -> bytes:
    """Return the sum of multiples of points of G1 (multi-scalar multiplication); raise
    :exc:`ValueError` with geth's text."""
    return _encoded(_msm(data, _G1_BYTES, _g1_of_subgroup, G1Point))


def g2_msm(data: bytes) -> bytes:
    """Return the sum of multiples of points of G2 (multi-scalar multiplication); raise
    :exc:`ValueError` with geth's text."""
    return _encoded(_msm(data, _G2_BYTES, _g2_of_subgroup, G2Point))


def pairing(data: bytes) -> bytes:
    """Return the word 1 if the product of the pairings is 1, otherwise 0; raise
    :exc:`ValueError` with geth's text."""
    ones, others = [], []
    for part in _parts(data, _G1_BYTES + _G2_BYTES):
        one, other = _g1(part[:_G1_BYTES]), _g2(part[_G1_BYTES:])
        ones.append(_of_subgroup(one, 1))
        others.append(_of_subgroup(other, 2))
    return int(GT.pairing_check(ones, others)).to_bytes(32)


def map_to_g1(data: bytes) -> bytes:
    """Map a field element to G1; raise :exc:`ValueError` with geth's text."""
    return _encoded(G1Point.map_from_fp_be(_plain(data, 1)))


def map_to_g2(data: bytes) -> bytes:
    """Map an element of the extension field to G2; raise :exc:`ValueError` with geth's text."""
    return _encoded(G2Point.map_from_fp2_be(_plain(data, 2)))


def _parts(data: bytes, size: int, count: int = 0) -> Iterator[bytes]:
    if not data or len(data) % size or (count and len(data) != count * size):
        raise ValueError(LENGTH)
    return (data[at : at + size] for at in range(0, len(data), size))


def _msm(data: bytes, size: int, point: Callable[[bytes], Any], group: Any) -> Any:
    parts = list(_parts(data, size + _SCALAR_BYTES))
    points = [point(part[:size]) for part in parts]
    scalars = [Scalar.from_be_bytes_mod_order(part[size:]) for part in parts]
    return group.multiexp_unchecked(points, scalars)


def _plain(data: bytes, count: int) -> bytes:
    """Return ``count`` field elements as 48 bytes each, without their 16 bytes of padding."""
    found = list(_parts(data, _FIELD, count))
    for number in found:
        if not number.startswith(_PADDING):
            raise ValueError(_TOP_BYTES)
        if int.from_bytes(number) >= _MODULUS:
            raise ValueError(NOT_CANONICAL)
    return b"".join(number[len(_PADDING) :] for number in found)


def _numbers(plain: bytes) -> list[int]:
    return [int.from_bytes(plain[at : at + _NUMBER]) for at in range(0, len(plain), _NUMBER)]


def _g1(data: bytes) -> Any:
    plain = _plain(data, 2)
    x, y = _numbers(plain)
    if not (x or y):
        return G1Point.identity()
    if (y * y - x**3 - 4) % _MODULUS:
        raise ValueError(_NOT_ON_CURVE)
    return G1Point.from_xy_bytes_unchecked_be(plain)


def _g2(data: bytes) -> Any:
    plain = _plain(data, 4)
    a, b, c, d = _numbers(plain)
    if not (a or b or c or d):
        return G2Point.identity()
    # y * y = x * x * x + 4 + 4 i, in the extension field with i * i = -1.
    real = c * c - d * d - (a**3 - 3 * a * b * b) - 4
    imaginary = 2 * c * d - (3 * a * a * b - b**3) - 4
    if real % _MODULUS or imaginary % _MODULUS:
        raise ValueError(_NOT_ON_CURVE)
    return G2Point.from_xy_bytes_unchecked_be(plain)


def _g1_of_subgroup(data: bytes) -> Any:
    return _of_subgroup(_g1(data), 1)


def _g2_of_subgroup(data: bytes) -> Any:
    return _of_subgroup(_g2(data), 2)


def _of_subgroup(point: Any, group: int) -> Any:
    if not point.is_in_subgroup():
        raise ValueError(_NOT_IN_SUBGROUP.format(group))
    return point


def _encoded(point: Any) -> bytes:
    if point in (_G1_ZERO, _G2_ZERO):
        return bytes(_G1_BYTES if isinstance(point, G1Point) else _G2_BYTES)
    plain = bytes(point.to_xy_bytes_be())
    starts = range(0, len(plain), _NUMBER)
    return b"".join(_PADDING + plain[at : at + _NUMBER] for at in starts)


_G1_ZERO, _G2_ZERO = G1Point.identity(), G2Point.identity()


# EIP-4844: the secret of the KZG ceremony times the generator of G2, as compressed bytes.
_TAU = bytes.fromhex(
    "b5bfd7dd8cdeb128843bc287230af38926187075cbfbefa81009a2ce615ac53d"
    "2914e5870cb452d2afaaab24f3499f72185cbfee53492714734429b7b38608e2"
    "3926c911cceceac9a36851477ba4c60b087041de621000edc98edada20c1def2"
)
# The generators of G1 and G2.
_G1_ONE, _G2_ONE = G1Point(), G2Point()
_ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
_BLOB_FIELDS = 4096
_HASH_VERSION = b"\x01"
_KZG_BYTES = 192


def evaluate_point(data: bytes) -> bytes:
    """Verify that the polynomial of a commitment has a value at a point (EIP-4844).

    The data is a versioned hash, the point, the value, the commitment and the proof. Return
    two words, the number of field elements in a blob and the modulus of the field; raise
    :exc:`ValueError` with geth's text.
    """
    if len(data) != _KZG_BYTES:
        raise ValueError(LENGTH)
    commitment, proof = data[96:144], data[144:]
    if _HASH_VERSION + sha256(commitment).digest()[1:] != data[:32]:
        raise ValueError("mismatched versioned hash")
    if not _is_proven(data[32:64], data[64:96], commitment, proof):
        raise ValueError("error verifying kzg proof: can't verify opening proof")
    return _BLOB_FIELDS.to_bytes(32) + _ORDER.to_bytes(32)


def _is_proven(point: bytes, value: bytes, commitment: bytes, proof: bytes) -> bool:
    try:
        z, y = Scalar.from_be_bytes(point), Scalar.from_be_bytes(value)
        committed, proven = map(G1Point.from_compressed_bytes, (commitment, proof))
    except ValueError:
        return False
    if (committed.to_compressed_bytes(), proven.to_compressed_bytes()) != (commitment, proof):
        # Only one encoding of a point is valid; the library accepts others for infinity.
        return False
    tau = G2Point.from_compressed_bytes_unchecked(_TAU)
    # Check e(commitment - y, 1) = e(proof, tau - z), where 1 is the generator of the group.
    left, right = committed - _G1_ONE * y, tau - _G2_ONE * z
    return bool(GT.pairing_check([left, -proven], [_G2_ONE, right]))
