"""Arithmetic of alt_bn128 by py-ecc, for versions of Python that zksnake has no wheel for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py_ecc import optimized_bn128

curve: Any = optimized_bn128


def times(point: tuple[int, int], factor: int) -> tuple[int, int]:
    """Return a multiple, by 1 or more, of a point of G1."""
    x, y = curve.normalize(curve.multiply(_g1(point), factor))
    return int(x), int(y)


def g2_point(x: tuple[int, int], y: tuple[int, int]) -> Any | None:
    """Return a point of G2, or ``None`` if it is not in the subgroup."""
    point = curve.FQ2(x), curve.FQ2(y), curve.FQ2.one()
    return point if curve.is_inf(curve.multiply(point, curve.curve_order)) else None


def has_product_one(pairs: Sequence[tuple[tuple[int, int], Any]]) -> bool:
    """Return true if the product of the pairings is 1; no point is at infinity."""
    product = curve.FQ12.one()
    for g1, g2 in pairs:
        product *= curve.pairing(g2, _g1(g1), final_exponentiate=False)
    return bool(curve.final_exponentiate(product) == curve.FQ12.one())


def _g1(point: tuple[int, int]) -> Any:
    return curve.FQ(point[0]), curve.FQ(point[1]), curve.FQ.one()
