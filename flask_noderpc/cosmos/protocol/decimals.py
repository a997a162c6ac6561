"""Decimal numbers with 18 decimal places, with the SDK's rounding; SDK: math/legacy_dec.go.

A decimal number is an ``int``, in units of 10^-18.
"""

from __future__ import annotations

import re

PLACES = 18
ONE = 10**PLACES
"""The number 1."""

_HALF = ONE // 2
# The SDK panics above 2^256.
_LIMIT = ONE << 256
# Go's big.Int accepts a sign, which may follow the one of the decimal number.
_DIGITS = re.compile(r"[+-]?[0-9]+", re.ASCII)
_MAX_DIGITS = 200


def of(value: int) -> int:
    """Return an integer as a decimal number."""
    return checked(value * ONE)


def checked(value: int) -> int:
    """Return the number; raise :exc:`OverflowError` if it is too large for the SDK."""
    if not -_LIMIT <= value <= _LIMIT:
        raise OverflowError("Int overflow")
    return value


def _quotient(value: int, divisor: int) -> int:
    """Return a quotient that is rounded towards zero, as in Go."""
    if not divisor:
        raise ZeroDivisionError("division by zero")
    found = abs(value) // abs(divisor)
    return found if (value < 0) == (divisor < 0) else -found


def _round(value: int) -> int:
    """Remove 18 digits, and round half to even."""
    whole, rest = divmod(abs(value), ONE)
    whole += rest > _HALF or (rest == _HALF and whole & 1)
    return checked(whole if value >= 0 else -whole)


def mul(first: int, second: int) -> int:
    """Return the product, rounded half to even."""
    return _round(first * second)


def mul_truncate(first: int, second: int) -> int:
    """Return the product, rounded towards zero."""
    return checked(_quotient(first * second, ONE))


def mul_int(value: int, factor: int) -> int:
    """Return the product of a decimal number and an integer."""
    return checked(value * factor)


def quo(value: int, divisor: int) -> int:
    """Return the quotient, rounded half to even."""
    return _round(_quotient(value * ONE * ONE, divisor))


def quo_truncate(value: int, divisor: int) -> int:
    """Return the quotient, rounded towards zero."""
    return checked(_quotient(value * ONE, divisor))


def quo_round_up(value: int, divisor: int) -> int:
    """Return the quotient of two numbers that are not negative, rounded up."""
    return checked(-(-value * ONE // divisor))


def quo_int(value: int, divisor: int) -> int:
    """Return the quotient of a decimal number and an integer, rounded towards zero."""
    return _quotient(value, divisor)


def truncate(value: int) -> int:
    """Return the integer part."""
    return _quotient(value, ONE)


def round_int(value: int) -> int:
    """Return the nearest integer, rounded half to even."""
    return _round(value)


def show(value: int) -> str:
    """Return the SDK's text, such as ``0.100000000000000000``."""
    digits = f"{abs(value):0{PLACES + 1}d}"
    return f"{'-' if value < 0 else ''}{digits[:-PLACES]}.{digits[-PLACES:]}"


def parse(text: str) -> int:
    """Return the number of a text such as ``-0.5``; raise :exc:`ValueError` with the SDK's
    text."""
    unsigned = text.removeprefix("-")
    if not unsigned:
        raise ValueError("decimal string cannot be empty")
    whole, *fractions = unsigned.split(".")
    if len(fractions) > 1:
        raise ValueError("invalid decimal string")
    fraction = fractions[0] if fractions else ""
    if fractions and not (whole and fraction):
        raise ValueError("invalid decimal length")
    if (over := len(fraction.encode()) - PLACES) > 0:
        raise ValueError(
            f"value '{unsigned}' exceeds max precision by {-over} decimal places: max precision"
            f" {PLACES}"
        )
    digits = whole + fraction.ljust(PLACES, "0")
    if not _DIGITS.fullmatch(digits):
        raise ValueError(f"failed to set decimal string with base 10: {digits}")
    if len(digits) > _MAX_DIGITS or abs(int(digits)) > _LIMIT:
        raise ValueError("out of range: invalid decimal string")
    return -int(digits) if text.startswith("-") else int(digits)
