"""Protobuf: encoding of the fields of hashed messages, and reading of messages by number.

Callers write fields in ascending order; zero scalars and empty bytes are left out; an embedded
message is left out only by the caller.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

from ..domain.time import SECOND

_SFIXED64 = struct.Struct("<q").pack
_MASK = (1 << 64) - 1
_BYTES = tuple(bytes((value,)) for value in range(0x80))

Value = int | bytes
"""A varint as a number; fixed sizes and everything with a length as bytes."""

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_MAX_VARINT = 10

# Nothing that a chain takes has as many; reading them would only cost time.
_MAX_FIELDS = 1 << 15


def varint(value: int) -> bytes:
    """Encode a varint; a negative int64 takes ten bytes."""
    value &= _MASK
    if value < 0x80:
        return _BYTES[value]
    if value < 0x4000:
        return b"%c%c" % (value & 0x7F | 0x80, value >> 7)
    if 0x10000000 <= value < 0x800000000:
        # Nearly all numbers of nanoseconds and of seconds.
        return bytes(
            (
                value & 0x7F | 0x80,
                value >> 7 & 0x7F | 0x80,
                value >> 14 & 0x7F | 0x80,
                value >> 21 & 0x7F | 0x80,
                value >> 28,
            )
        )
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number: int, value: int) -> bytes:
    """A varint field, left out at zero."""
    if not value:
        return b""
    tag = number << 3
    return (_BYTES[tag] if tag < 0x80 else varint(tag)) + varint(value)


def sfixed64(number: int, value: int) -> bytes:
    """A fixed eight-byte field, left out at zero."""
    return varint(number << 3 | 1) + _SFIXED64(value) if value else b""


def message(number: int, body: bytes) -> bytes:
    """An embedded message, written even when empty."""
    tag = number << 3 | _DELIMITED
    return framed(_BYTES[tag] if tag < 0x80 else varint(tag), body)


def framed(tag: bytes, body: bytes) -> bytes:
    """Return a body with its tag and its length before it."""
    size = len(body)
    if size < 0x80:
        return b"%b%c%b" % (tag, size, body)
    return b"%b%b%b" % (tag, varint(size), body)


def blob(number: int, value: bytes) -> bytes:
    """A bytes field, left out when empty."""
    return message(number, value) if value else b""


def string(number: int, value: str) -> bytes:
    """A text field, left out when empty."""
    return blob(number, value.encode())


def timestamp(time_ns: int) -> bytes:
    """Encode ``google.protobuf.Timestamp``, without tag and length."""
    seconds, nanos = divmod(time_ns, SECOND)
    return _seconds(seconds) + integer(2, nanos)


# Cached: the times of a commit's votes are mostly within a few seconds.
@lru_cache(maxsize=256)
def _seconds(seconds: int) -> bytes:
    return integer(1, seconds)


def delimited(body: bytes) -> bytes:
    """Return the body with its length before it."""
    return varint(len(body)) + body


def int64(value: int) -> int:
    """Return the int64 of a varint, or of a uint64 that Go converts."""
    return value - (1 << 64) if value >> 63 else value


class Malformed(ValueError):
    """The bytes are no protobuf message."""


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Number and value of each field, in the order of the bytes; raise :exc:`Malformed`."""
    at, end, count = 0, len(message), 0
    while at < end:
        count += 1
        if count > _MAX_FIELDS:
            raise Malformed(f"more than {_MAX_FIELDS} fields")
        key, at = _read_varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _read_varint(message, at)
            yield number, value
            continue
        if wire == _DELIMITED:
            size, at = _read_varint(message, at)
        elif wire in _SIZES:
            size = _SIZES[wire]
        else:
            raise Malformed(f"wire type {wire}")
        if at + size > end:
            raise Malformed("cut off")
        yield number, message[at : at + size]
        at += size


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    """A number, and where the next thing begins."""
    # Tags and sizes mostly have one byte.
    if at < len(message) and message[at] < 0x80:
        return message[at], at + 1
    value = 0
    for position, byte in enumerate(message[at : at + _MAX_VARINT]):
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return value & _MASK, at + position + 1
    raise Malformed("a number is cut off or too long")


class Message:
    """A message with fields by number; the last of several counts."""

    __slots__ = ("_values",)

    def __init__(self, message: bytes) -> None:
        self._values: dict[int, list[Value]] = {}
        for number, value in fields(message):
            self._values.setdefault(number, []).append(value)

    def integer(self, number: int) -> int:
        """A varint; 0 where it is absent."""
        value = self._last(number, 0)
        if not isinstance(value, int):
            raise Malformed(f"field {number} is no number")
        return value

    def blob(self, number: int) -> bytes:
        """Bytes; empty where they are absent."""
        return _bytes(number, self._last(number, b""))

    def text(self, number: int) -> str:
        """UTF-8; empty where it is absent."""
        return _text(self.blob(number))

    def blobs(self, number: int) -> list[bytes]:
        """Every value of a repeated field."""
        return [_bytes(number, value) for value in self._values.get(number, ())]

    def texts(self, number: int) -> list[str]:
        """Every value of a repeated field."""
        return [_text(value) for value in self.blobs(number)]

    def _last(self, number: int, absent: Value) -> Value:
        values = self._values.get(number)
        return values[-1] if values else absent


def _bytes(number: int, value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed(f"field {number} has no length")
    return value


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Malformed("a text is not UTF-8") from None
