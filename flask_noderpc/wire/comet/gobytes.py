"""Go's ``encoding/hex`` and ``encoding/base64``, with their errors."""

from __future__ import annotations

import base64
import binascii
import re
from contextlib import suppress
from itertools import islice

from .gojson import GoError

_NO_HEX = re.compile(rb"[^0-9a-fA-F]")
_NEWLINES = b"\r\n"
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def hex_bytes(digits: bytes) -> bytes:
    """Decode hex digits."""
    # Go: an invalid byte is reported before an odd length.
    wrong = _NO_HEX.search(digits)
    if wrong is not None:
        code = wrong[0][0]
        shown = f" '{chr(code)}'" if chr(code).isprintable() else ""
        raise GoError(f"encoding/hex: invalid byte: U+{code:04X}{shown}")
    if len(digits) % 2:
        raise GoError("encoding/hex: odd length hex string")
    return binascii.unhexlify(digits)


def base64_bytes(text: bytes) -> bytes:
    """Decode padded base64; line ends are skipped."""
    # Go: encoding/base64/base64.go, decodeQuantum; trailing bits are not checked.
    if len(text) % 4 == 0:
        with suppress(ValueError):
            return base64.b64decode(text, validate=True)
    marks = [(at, char) for at, char in enumerate(text) if char not in _NEWLINES]
    at = _wrong(marks, len(text))
    if at is not None:
        raise GoError(f"illegal base64 data at input byte {at}")
    return base64.b64decode(text)


def _wrong(marks: list[tuple[int, int]], size: int) -> int | None:
    """Return the offset at which decoding stops."""
    first = next((i for i, (_, char) in enumerate(marks) if char not in _ALPHABET), None)
    full = len(marks) if first is None else first
    rest = full % 4
    if first is None:
        # Go reports the offset at which it stopped, less the characters of the last quantum.
        return size - rest if rest else None
    at, char = marks[first]
    if char != ord("=") or rest < 2:
        return at
    return _wrong_padding(marks[first + 1 :], size, needed=3 - rest, at=at)


def _wrong_padding(
    marks: list[tuple[int, int]], size: int, *, needed: int, at: int
) -> int | None:
    if needed:
        if not marks:
            return size
        if marks[0][1] != ord("="):
            return marks[0][0] - 1
    behind = next(islice(marks, needed, None), None)
    return None if behind is None else behind[0]
