"""Precompiled contracts of the curve alt_bn128, as EIP-196 and EIP-197 define them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

_MODULUS = 0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47
_ORDER = 0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000001
# 3 / (9 + i), the constant b in the equation y * y = x * x * x + b of G2's curve.
_B2 = (
    0x2B149D40CEB8AAAE81BE18991BE06AC3B5B4C5E559DBEFA33267E6DC24A138E5,
    0x009713B03AF0FED4CD2CAFADEED8FDF4A74FA084E52D1852E4A2BD0685C315D2,
)

_WORD, _PAIR = 32, 192
_TRUE, _FALSE = (1).to_bytes(_WORD), bytes(_WORD)

# Error texts of gnark, the library that geth uses for this curve.
NOT_CANONICAL = "invalid fp.Element encoding"
NOT_ON_CURVE = "point is not on curve"
NOT_IN_SUBGROUP = "point is not in correct subgroup"


class ZkSnake:
    """Curve arithmetic with zksnake, a compiled library.

    Its classes panic for a point that is not on the curve, so callers check each point before.
    """

    def __init__(self) -> None:
        from zksnake.ecc import CurveType

        self._curve: Any = CurveType.BN254.value
        g1, g2 = self._curve.g1(), self._curve.g2()
        self._one = self._curve.multi_pairing([g1, -g1], [g2, g2])

    def times(self, point: tuple[int, int], factor: int) -> tuple[int, int]:
        """Return a point of G1 multiplied by a factor, which is at least 1."""
        found = self._curve.PointG1(*point) * factor
        return int(found.x), int(found.y)

    def g2_point(self, x: tuple[int, int], y: tuple[int, int]) -> Any | None:
        """Return a point of G2, or ``None`` if it is not in the subgroup."""
        # PointG2() panics for a point outside the subgroup; decoding compressed bytes raises.
        is_larger = (y[1], y[0]) > (-y[1] % _MODULUS, -y[0] % _MODULUS)
        compressed = x[0] | x[1] << 256 | is_larger << 511
        try:
            return self._curve.PointG2.from_bytes(compressed.to_bytes(64, "little"))
        except ValueError:
            return None

    def has_product_one(self, pairs: Sequence[tuple[tuple[int, int], Any]]) -> bool:
        """Return true if the product of the pairings is 1; ``pairs`` has no points at
        infinity."""
        g1 = [self._curve.PointG1(*point) for point, _ in pairs]
        return bool(self._curve.multi_pairing(g1, [point for _, point in pairs]) == self._one)


class PyEcc:
    """Curve arithmetic with py-ecc, for Python versions without a wheel of zksnake.

    It is pure Python: a pairing takes 200 times as long as with zksnake.
    """

    def __init__(self) -> None:
        from py_ecc import optimized_bn128

        self._curve: Any = optimized_bn128

    def times(self, point: tuple[int, int], factor: int) -> tuple[int, int]:
        """Return a point of G1 multiplied by a factor, which is at least 1."""
        x, y = self._curve.normalize(self._curve.multiply(self._g1(point), factor))
        return int(x), int(y)

    def g2_point(self, x: tuple[int, int], y: tuple[int, int]) -> Any | None:
        """Return a point of G2, or ``None`` if it is not in the subgroup."""
        curve = self._curve
        point = curve.FQ2(x), curve.FQ2(y), curve.FQ2.one()
        return point if curve.is_inf(curve.multiply(point, curve.curve_order)) else None

    def has_product_one(self, pairs: Sequence[tuple[tuple[int, int], Any]]) -> bool:
        """Return true if the product of the pairings is 1; ``pairs`` has no points at
        infinity."""
        curve = self._curve
        product = curve.FQ12.one()
        for g1, g2 in pairs:
            product *= curve.pairing(g2, self._g1(g1), final_exponentiate=False)
        return bool(curve.final_exponentiate(product) == curve.FQ12.one())

    def _g1(self, point: tuple[int, int]) -> Any:
        return self._curve.FQ(point[0]), self._curve.FQ(point[1]), self._curve.FQ.one()


_library = ZkSnake() if find_spec("zksnake") else PyEcc()


def add(data: bytes) -> bytes:
    """Return the sum of two points of G1; raise :exc:`ValueError` with geth's text."""
    data = data[:128].ljust(128, b"\0")
    x, y = _sum(_decode_point(data[:64]), _decode_point(data[64:]))
    return x.to_bytes(_WORD) + y.to_bytes(_WORD)


def multiply(data: bytes) -> bytes:
    """Return a multiple of a point of G1; raise :exc:`ValueError` with geth's text."""
    data = data[:96].ljust(96, b"\0")
    point, factor = _decode_point(data[:64]), int.from_bytes(data[64:]) % _ORDER
    x, y = _library.times(point, factor) if any(point) and factor else (0, 0)
    return x.to_bytes(_WORD) + y.to_bytes(_WORD)


def pairing(data: bytes) -> bytes:
    """Return the word 1 if the product of the pairings is 1, otherwise the word 0; raise
    :exc:`ValueError` with geth's text."""
    if len(data) % _PAIR:
        raise ValueError("bad elliptic curve pairing size")
    starts = range(0, len(data), _PAIR)
    pairs = [
        (_decode_point(data[at : at + 64]), _g2(data[at + 64 : at + _PAIR])) for at in starts
    ]
    # Skip pairs with a point at infinity, as their pairing is 1.
    pairs = [(g1, g2) for g1, g2 in pairs if any(g1) and g2 is not None]
    return _TRUE if not pairs or _library.has_product_one(pairs) else _FALSE


def _decode_point(data: bytes) -> tuple[int, int]:
    """Return the coordinates of a point of G1; (0, 0) is the point at infinity."""
    x, y = _numbers(data)
    if (x or y) and (y * y - x**3 - 3) % _MODULUS:
        raise ValueError(NOT_ON_CURVE)
    return x, y


def _sum(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    # Add in Python, as creating the library's point objects takes ten times as long.
    (x1, y1), (x2, y2) = one, other
    if not any(one):
        return other
    if not any(other):
        return one
    if x1 != x2:
        slope = (y2 - y1) * pow(x2 - x1, -1, _MODULUS)
    elif y1 == y2 != 0:
        slope = 3 * x1 * x1 * pow(2 * y1, -1, _MODULUS)
    else:
        return 0, 0
    x = (slope * slope - x1 - x2) % _MODULUS
    return x, (slope * (x1 - x) - y1) % _MODULUS


def _g2(data: bytes) -> Any:
    """Return a point of G2, or ``None`` for the point at infinity."""
    # EIP-197: the imaginary part comes first.
    x_i, x_r, y_i, y_r = _numbers(data)
    if not (x_r or x_i or y_r or y_i):
        return None
    x, y = (x_r, x_i), (y_r, y_i)
    cubed = _product(_product(x, x), x)
    if any(
        (left - right - b) % _MODULUS
        for left, right, b in zip(_product(y, y), cubed, _B2, strict=True)
    ):
        raise ValueError(NOT_ON_CURVE)
    point = _library.g2_point(x, y)
    if point is None:
        raise ValueError(NOT_IN_SUBGROUP)
    return point


def _product(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Return the product of two complex numbers (real, imaginary) of the extension field."""
    (a, b), (c, d) = one, other
    return (a * c - b * d) % _MODULUS, (a * d + b * c) % _MODULUS


def _numbers(data: bytes) -> list[int]:
    found = [int.from_bytes(data[at : at + _WORD]) for at in range(0, len(data), _WORD)]
    if max(found) >= _MODULUS:
        raise ValueError(NOT_CANONICAL)
    return found
