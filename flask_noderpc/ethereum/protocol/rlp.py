"""RLP, Recursive Length Prefix: the encoding of everything that Ethereum hashes.

Callers of :class:`Reader` name the Go type that geth expects next, which its error text for a
mismatch contains. A nested list is only decoded if the caller asks for its items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Item: TypeAlias = bytes | int | Sequence["Item"]

_STRING, _LIST = 0x80, 0xC0
_SHORT = 55

_NOT_CANONICAL = "non-canonical size information"


class Malformed(Exception):
    """The bytes are not RLP, or not of the expected type.

    Texts are from geth's rlp/decode.go. ``kind`` is the expected Go type, and ``path`` the
    fields and indexes that lead to the value.
    """

    def __init__(self, reason: str, kind: str = "") -> None:
        self.reason, self.kind, self.path = reason, kind, ""
        super().__init__(reason)

    def at(self, step: str) -> Malformed:
        """Prepend a field or an index to the path, and return this error."""
        self.path = step + self.path
        return self

    def __str__(self) -> str:
        kind_text = f" for {self.kind}" if self.kind else ""
        into = f", decoding into {self.path}" if self.kind and self.path else ""
        return f"rlp: {self.reason}{kind_text}{into}"


def encode(item: Item) -> bytes:
    """Encode bytes, a number (big-endian, without leading zeros), or a list of items."""
    if isinstance(item, bytes):
        if len(item) == 1 and item[0] < _STRING:
            return item
        return _prefix(_STRING, len(item)) + item
    if isinstance(item, int):
        return encode(item.to_bytes((item.bit_length() + 7) // 8))
    return encode_list(b"".join(map(encode, item)))


def encode_list(body: bytes) -> bytes:
    """Return the encoding of a list whose encoded items are joined in ``body``."""
    return _prefix(_LIST, len(body)) + body


def _prefix(kind: int, size: int) -> bytes:
    if size <= _SHORT:
        return bytes((kind + size,))
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((kind + _SHORT + len(length),)) + length


class Reader:
    """Sequential reader of RLP values."""

    __slots__ = ("_at", "_data", "_end", "_overrun")

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._end = data, 0, len(data)
        self._overrun = "value size exceeds available input length"

    @property
    def done(self) -> bool:
        """True if all values have been read."""
        return self._at >= self._end

    def peek(self, kind: str = "") -> tuple[bool, int]:
        """Return whether the next value is a list, and the size of its content in bytes."""
        is_list, start, stop = self._header(kind)
        return is_list, stop - start

    def string(self, kind: str) -> bytes:
        """Return the next value, which must be a string."""
        is_list, start, stop = self._header(kind)
        if is_list:
            raise Malformed("expected input string or byte", kind)
        value = self._data[start:stop]
        if len(value) == 1 and value[0] < _STRING and start > self._at:
            raise Malformed(_NOT_CANONICAL, kind)
        self._at = stop
        return value

    def list(self, kind: str) -> Reader:
        """Return a reader of the items of the next value, which must be a list."""
        is_list, start, stop = self._header(kind)
        if not is_list:
            raise Malformed("expected input list", kind)
        self._at = stop
        inner = Reader(self._data)
        inner._at, inner._end = start, stop
        inner._overrun = "element is larger than containing list"
        return inner

    def encoded(self, kind: str) -> bytes:
        """Return the next value, a string or a list, in its encoding."""
        start, (_, _, self._at) = self._at, self._header(kind)
        return self._data[start : self._at]

    def _header(self, kind: str) -> tuple[bool, int, int]:
        """Return whether the next value is a list, and the start and end of its content."""
        at = self._at
        if at >= self._end:
            raise Malformed(self._overrun)
        first = self._data[at]
        if first < _STRING:
            return False, at, at + 1
        is_list = first >= _LIST
        size = first - (_LIST if is_list else _STRING)
        start = at + 1
        if size > _SHORT:
            start += size - _SHORT
            size = self._long_size(at + 1, start, kind)
        if start + size > self._end:
            raise Malformed(self._overrun)
        return is_list, start, start + size

    def _long_size(self, at: int, end: int, kind: str) -> int:
        if end > self._end:
            raise Malformed(self._overrun)
        size = int.from_bytes(self._data[at:end])
        if self._data[at] == 0 or size <= _SHORT:
            raise Malformed(_NOT_CANONICAL, kind)
        return size
