"""QUANTITY and DATA: numbers and bytes as hex strings, with geth's errors; their schema
fields.

geth: common/hexutil.
"""

from __future__ import annotations

import re

from ....wire.fields import Json, WireField

_DIGITS = re.compile(r"[0-9a-fA-F]*", re.ASCII)
MAX_UINT64 = (1 << 64) - 1


def quantity(value: int) -> str:
    """Return the number in hex without leading zeros; zero is ``0x0``."""
    return hex(value)


def data(value: bytes) -> str:
    """Return the bytes in hex, two digits for each."""
    return f"0x{value.hex()}"


def read_quantity(text: str, bits: int = 64) -> int:
    """Return the number of a QUANTITY; raise :exc:`ValueError` with geth's text."""
    digits = _unprefixed(text)
    if not digits:
        raise ValueError('hex string "0x"')
    if len(digits) > 1 and digits[0] == "0":
        raise ValueError("hex number with leading zero digits")
    if len(digits) > bits // 4:
        raise ValueError(f"hex number > {bits} bits")
    if not _DIGITS.fullmatch(digits):
        raise ValueError("invalid hex string")
    return int(digits, 16)


def read_data(text: str) -> bytes:
    """Return the bytes of a DATA string; raise :exc:`ValueError` with geth's text."""
    digits = _unprefixed(text)
    if len(digits) % 2:
        raise ValueError("hex string of odd length")
    if not _DIGITS.fullmatch(digits):
        raise ValueError("invalid hex string")
    return bytes.fromhex(digits)


def read_fixed(text: str, size: int, name: str) -> bytes:
    """Return the ``size`` bytes of a DATA string; raise :exc:`ValueError` with geth's text.

    ``name`` is the Go type that the error names.
    """
    digits = _unprefixed(text)
    if len(digits) % 2:
        raise ValueError("hex string of odd length")
    if len(digits) != 2 * size:
        raise ValueError(f"hex string has length {len(digits)}, want {2 * size} for {name}")
    return read_data(text)


def _unprefixed(text: str) -> str:
    if not text:
        raise ValueError("empty hex string")
    if text[:2] not in ("0x", "0X"):
        raise ValueError("hex string without 0x prefix")
    return text[2:]


class Quantity(WireField):
    """A number as hex without leading zeros."""

    _encoding = "hex(value)"

    def decode(self, value: Json) -> int:
        """Return the number."""
        return read_quantity(value, bits=256)


class Data(WireField):
    """Bytes as hex, two digits each."""

    _encoding = "'0x' + value.hex()"

    def decode(self, value: Json) -> bytes:
        """Return the bytes."""
        return read_data(value)
