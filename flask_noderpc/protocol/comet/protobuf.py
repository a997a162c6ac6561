"""Proto3 encoding of the field types of hashed messages.

The callers write fields in ascending order; zero scalars and empty
bytes are left out; an embedded message is left out only by the caller.
"""

from __future__ import annotations

import struct

from ...domain.time import SECOND

_SFIXED64 = struct.Struct("<q").pack
_MASK = (1 << 64) - 1


def varint(value: int) -> bytes:
    """Encode a varint; a negative int64 takes ten bytes."""
    value &= _MASK
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number: int, value: int) -> bytes:
    """A varint field, left out at zero."""
    return varint(number << 3) + varint(value) if value else b""


def sfixed64(number: int, value: int) -> bytes:
    """A fixed eight-byte field, left out at zero."""
    return varint(number << 3 | 1) + _SFIXED64(value) if value else b""


def message(number: int, body: bytes) -> bytes:
    """An embedded message, written even when empty."""
    return varint(number << 3 | 2) + varint(len(body)) + body


def blob(number: int, value: bytes) -> bytes:
    """A bytes field, left out when empty."""
    return message(number, value) if value else b""


def string(number: int, value: str) -> bytes:
    """A text field, left out when empty."""
    return blob(number, value.encode())


def timestamp(time_ns: int) -> bytes:
    """Encode ``google.protobuf.Timestamp``, without tag and length."""
    seconds, nanos = divmod(time_ns, SECOND)
    return integer(1, seconds) + integer(2, nanos)


def delimited(body: bytes) -> bytes:
    """Return the body with its length before it."""
    return varint(len(body)) + body
