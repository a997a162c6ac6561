"""Arithmetic of alt_bn128 by zksnake, which is compiled.

Its classes stop with a panic at points that are not on the curve, which bn254.py excludes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zksnake.ecc import CurveType

_CURVE: Any = CurveType.BN254.value
_MODULUS = 0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47


def times(point: tuple[int, int], factor: int) -> tuple[int, int]:
    """Return a multiple, by 1 or more, of a point of G1."""
    found = _CURVE.PointG1(*point) * factor
    return int(found.x), int(found.y)


def g2_point(x: tuple[int, int], y: tuple[int, int]) -> Any | None:
    """Return a point of G2, or ``None`` if it is not in the subgroup."""
    # The constructor stops with a panic at a point outside the subgroup, this raises.
    is_larger = (y[1], y[0]) > (-y[1] % _MODULUS, -y[0] % _MODULUS)
    compressed = x[0] | x[1] << 256 | is_larger << 511
    try:
        return _CURVE.PointG2.from_bytes(compressed.to_bytes(64, "little"))
    except ValueError:
        return None


def has_product_one(pairs: Sequence[tuple[tuple[int, int], Any]]) -> bool:
    """Return true if the product of the pairings is 1; no point is at infinity."""
    g1 = [_CURVE.PointG1(*point) for point, _ in pairs]
    return bool(_CURVE.multi_pairing(g1, [point for _, point in pairs]) == _ONE)


_ONE = _CURVE.multi_pairing([_CURVE.g1(), -_CURVE.g1()], [_CURVE.g2()] * 2)
