"""Bech32 addresses (BIP 173), without the limit on their length."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

_CHARS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_VALUES = {char: value for value, char in enumerate(_CHARS)}
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_CHECKSUM = 6
_MIN, _MAX = 8, 1023
# BIP 173: maximum length of the prefix.
_MAX_PREFIX = 83


class InvalidBech32(ValueError):
    """Error for a text that is not valid bech32."""


def check_prefix(prefix: str) -> None:
    """Raise :exc:`InvalidBech32` for an invalid prefix."""
    allowed = all("!" <= char <= "~" for char in prefix) and prefix == prefix.lower()
    if not allowed or not 1 <= len(prefix) <= _MAX_PREFIX:
        raise InvalidBech32(
            f"expected a prefix of 1 to {_MAX_PREFIX} printable ASCII characters,"
            " without spaces and upper-case letters"
        )


def _polymod(values: Iterable[int]) -> int:
    found = 1
    for value in values:
        top = found >> 25
        found = (found & 0x1FFFFFF) << 5 ^ value
        for bit, part in enumerate(_GENERATOR):
            if top >> bit & 1:
                found ^= part
    return found


def _checksum(prefix: str, values: list[int]) -> str:
    expanded = [*(ord(c) >> 5 for c in prefix), 0, *(ord(c) & 31 for c in prefix), *values]
    found = _polymod([*expanded, *[0] * _CHECKSUM]) ^ 1
    return "".join(_CHARS[found >> 5 * (_CHECKSUM - 1 - at) & 31] for at in range(_CHECKSUM))


@lru_cache(maxsize=10_000)
def encode(prefix: str, data: bytes) -> str:
    """Return the bech32 text of bytes."""
    size = -len(data) * 8 % 5
    bits = int.from_bytes(data) << size
    count = (len(data) * 8 + size) // 5
    values = [bits >> 5 * at & 31 for at in reversed(range(count))]
    return f"{prefix}1{''.join(_CHARS[v] for v in values)}{_checksum(prefix, values)}"


@lru_cache(maxsize=10_000)
def decode(text: str) -> tuple[str, bytes]:
    """Return prefix and bytes of a bech32 text; raise :exc:`InvalidBech32`."""
    try:
        return _decode(text)
    except InvalidBech32 as error:
        raise InvalidBech32(f"decoding bech32 failed: {error}") from None


def _decode(text: str) -> tuple[str, bytes]:
    _check_characters(text)
    text = text.lower()
    separator = text.rfind("1")
    if separator < 1 or separator + 1 + _CHECKSUM > len(text):
        raise InvalidBech32(f"invalid separator index {separator}")
    prefix, chars = text[:separator], text[separator + 1 :]
    for char in chars:
        if char not in _VALUES:
            raise InvalidBech32(f"invalid character not part of charset: {ord(char)}")
    values = [_VALUES[char] for char in chars[:-_CHECKSUM]]
    expected, actual = _checksum(prefix, values), chars[-_CHECKSUM:]
    if expected != actual:
        raise InvalidBech32(f"invalid checksum (expected {expected} got {actual})")
    return prefix, _bytes(values)


def _check_characters(text: str) -> None:
    size = len(text.encode(errors="replace"))
    if not _MIN <= size <= _MAX:
        raise InvalidBech32(f"invalid bech32 string length {size}")
    for char in text:
        if not "!" <= char <= "~":
            raise InvalidBech32(f"invalid character in string: '{char}'")
    if text not in (text.lower(), text.upper()):
        raise InvalidBech32("string not all lowercase or all uppercase")


def _bytes(values: list[int]) -> bytes:
    bits = 0
    for value in values:
        bits = bits << 5 | value
    count, rest = divmod(len(values) * 5, 8)
    # BIP 173: the padding has at most four bits, which are zero.
    if rest >= 5 or bits & (1 << rest) - 1:
        raise InvalidBech32("invalid incomplete group")
    return (bits >> rest).to_bytes(count)
