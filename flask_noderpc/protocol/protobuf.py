"""Protobuf: encoding of the fields of hashed messages, reading of messages by field number, and
messages declared as in .proto files, with the encoders that are compiled from the declarations.

Callers write fields in ascending order. Zero scalars and empty bytes are omitted; an embedded
message is always written.

Declarations have two additional types: ``Dec``, a string with 18 decimals without the decimal
point, and ``Int``, a string with an integer; both are encoded even if they are zero. ``!``
marks a message that JSON contains even if it is empty; ``?`` marks a message that JSON omits if
it is absent, while other absent messages are null; a string with ``!`` is required in a genesis
state. ``field(attribute)`` reads the value of a field from an attribute with another name.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Any

from ..domain.time import SECOND
from ..source import Scope, attribute, function

_SFIXED64 = struct.Struct("<q").pack
_MASK = (1 << 64) - 1
_BYTES = tuple(bytes((value,)) for value in range(0x80))

Value = int | bytes
"""Value of a decoded field: an integer for a varint; bytes for a value of fixed size or with a
length."""

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_MAX_VARINT = 10

# Maximum number of fields in a message, to limit the time for reading it; no message of a
# chain has more.
_MAX_FIELDS = 1 << 15


def varint(value: int) -> bytes:
    """Encode an integer as a varint; a negative int64 takes ten bytes."""
    value &= _MASK
    if value < 0x80:
        return _BYTES[value]
    if value < 0x4000:
        return b"%c%c" % (value & 0x7F | 0x80, value >> 7)
    if 0x10000000 <= value < 0x800000000:
        # Fast path for nearly all values of nanoseconds and seconds.
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
    """Encode a varint field; zero is omitted."""
    if not value:
        return b""
    tag = number << 3
    return (_BYTES[tag] if tag < 0x80 else varint(tag)) + varint(value)


def sfixed64(number: int, value: int) -> bytes:
    """Encode a field of fixed eight bytes; zero is omitted."""
    return varint(number << 3 | 1) + _SFIXED64(value) if value else b""


def message(number: int, body: bytes) -> bytes:
    """Encode an embedded message, even if it is empty."""
    tag = number << 3 | _DELIMITED
    return framed(_BYTES[tag] if tag < 0x80 else varint(tag), body)


def framed(tag: bytes, body: bytes) -> bytes:
    """Return the bytes of a field: its tag, the length of its body, and the body."""
    size = len(body)
    if size < 0x80:
        return b"%b%c%b" % (tag, size, body)
    return b"%b%b%b" % (tag, varint(size), body)


def blob(number: int, value: bytes) -> bytes:
    """Encode a bytes field; an empty value is omitted."""
    return message(number, value) if value else b""


def string(number: int, value: str) -> bytes:
    """Encode a string field; an empty value is omitted."""
    return blob(number, value.encode())


def timestamp(time_ns: int) -> bytes:
    """Encode ``google.protobuf.Timestamp`` without tag and length."""
    seconds, nanos = divmod(time_ns, SECOND)
    return _seconds(seconds) + integer(2, nanos)


# Cache the encoding, as the times of a commit's votes are mostly within a few seconds.
@lru_cache(maxsize=256)
def _seconds(seconds: int) -> bytes:
    return integer(1, seconds)


def delimited(body: bytes) -> bytes:
    """Return a body with its length as a varint before it."""
    return varint(len(body)) + body


def int64(value: int) -> int:
    """Return the int64 that a decoded varint stands for; also the int64 to which Go converts a
    uint64."""
    return value - (1 << 64) if value >> 63 else value


class Malformed(ValueError):
    """Error for bytes that are not a protobuf message."""


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the number and value of each field, in the order of the bytes; raise
    :exc:`Malformed`."""
    at, end, count = 0, len(message), 0
    while at < end:
        count += 1
        if count > _MAX_FIELDS:
            raise Malformed(f"the message has more than {_MAX_FIELDS} fields")
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
            raise Malformed(f"field {number} has the unknown wire type {wire}")
        if at + size > end:
            raise Malformed(f"field {number} is cut off")
        yield number, message[at : at + size]
        at += size


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a varint and the offset after it."""
    # Tags and sizes mostly have one byte.
    if at < len(message) and message[at] < 0x80:
        return message[at], at + 1
    value = 0
    for position, byte in enumerate(message[at : at + _MAX_VARINT]):
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return value & _MASK, at + position + 1
    raise Malformed("a varint is cut off or longer than 10 bytes")


class Message:
    """Decoded message, whose fields are read by number; if a field that is not repeated occurs
    several times, the last value is used."""

    __slots__ = ("_values",)

    def __init__(self, message: bytes, most: int | None = None) -> None:
        """Decode the first ``most`` fields, by default all of them."""
        self._values: dict[int, list[Value]] = {}
        for number, value in islice(fields(message), most):
            self._values.setdefault(number, []).append(value)

    def integer(self, number: int) -> int:
        """Return the value of a varint field; 0 if the field is absent."""
        value = self._last(number, 0)
        if not isinstance(value, int):
            raise Malformed(f"field {number}: expected a number, got bytes")
        return value

    def blob(self, number: int) -> bytes:
        """Return the value of a bytes field; empty if the field is absent."""
        return _bytes(number, self._last(number, b""))

    def text(self, number: int) -> str:
        """Return the value of a string field; empty if the field is absent."""
        return _text(self.blob(number))

    def blobs(self, number: int) -> list[bytes]:
        """Return all values of a repeated bytes field."""
        return [_bytes(number, value) for value in self._values.get(number, ())]

    def texts(self, number: int) -> list[str]:
        """Return all values of a repeated string field."""
        return [_text(value) for value in self.blobs(number)]

    def _last(self, number: int, absent: Value) -> Value:
        values = self._values.get(number)
        return values[-1] if values else absent


def _bytes(number: int, value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed(f"field {number}: expected bytes with a length, got a number")
    return value


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Malformed("a string field is not UTF-8") from None


Encode = Callable[[Any], bytes]


@dataclass(frozen=True, slots=True)
class Field:
    """Declared field of a message; ``mark`` is ``!``, ``?`` or empty, as the module
    describes."""

    number: int
    name: str
    type: str
    repeated: bool
    mark: str
    attribute: str

    @property
    def json_name(self) -> str:
        """Name in lower camel case, which JSON clients may use instead of :attr:`name`."""
        first, *rest = self.name.split("_")
        return first + "".join(map(str.capitalize, rest))


_MESSAGE = re.compile(r"message ([\w.]+) \{([^}]*)\}")
_FIELD = re.compile(r"(repeated )?([\w.]+)([!?]?) (\w+)(?:\(([\w.]+)\))? = (\d+);")


def _body(value: str | bytes | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


_TIMES = ("Timestamp", "Duration")
# Encoders of the types whose values have a length before them, except messages.
_BODIES: dict[str, Encode] = {
    "bytes": bytes,
    **dict.fromkeys(("string", "Dec", "Int"), _body),
    # A Duration has the fields of a Timestamp; both have nanoseconds.
    **dict.fromkeys(_TIMES, timestamp),
}


class Messages(dict[str, tuple[Field, ...]]):
    """Fields of each message by the message's name, in the order of their encoding."""

    def __init__(
        self,
        text: str,
        known: Mapping[str, tuple[Field, ...]] = MappingProxyType({}),
        encoders: Mapping[str, Encode] = MappingProxyType({}),
    ) -> None:
        """Parse the declarations in ``text``, and add them to the ``known`` messages;
        ``encoders`` are functions for message types that are not declared."""
        super().__init__(known)
        self._encoders = dict(encoders)
        for name, body in _MESSAGE.findall(text):
            self[name] = tuple(
                Field(int(number), own, kind, bool(many), mark, source or own)
                for many, kind, mark, own, source, number in _FIELD.findall(body)
            )

    def encode(self, name: str, /, **values: Any) -> bytes:
        """Encode the message called ``name`` with these values; fields without a value are
        omitted."""
        return self.encoder(name)(values)

    def encoder(self, name: str) -> Encode:
        """Return the function that encodes a message.

        Its argument is an object with the values as attributes, a dictionary of the values, or
        bytes: the encoded message.
        """
        if name not in self._encoders:
            scope = Scope()
            scope.names |= {"encoder": self.encoder, "Values": _Values}
            scope.names |= {"framed": framed, "varint": varint}
            parts = "".join(f"{self._part(field, scope)}, " for field in self[name])
            lines = (
                "if type(value) is bytes:",
                "    return value",
                "if type(value) is dict:",
                "    value = Values(value)",
                f"return b''.join(({parts}))",
            )
            self._encoders[name] = function("value", lines, name, scope)
        return self._encoders[name]

    def _part(self, field: Field, scope: Scope) -> str:
        """Return the Python expression that encodes a field."""
        given, value = attribute(field.attribute, None, scope), scope.variable()
        is_message = field.type in self or field.type in self._encoders
        if not is_message and field.type not in _BODIES:
            # Repeated numbers are packed.
            number = f"{varint(field.number << 3)!r} + varint({value})"
            packed = f"{_tag(field)}, b''.join(map(varint, {value})))"
            return f"{packed if field.repeated else number} if ({value} := {given}) else b''"
        # Look up the encoder of a nested message at each call, as a message may contain
        # messages of its own type.
        encode = f"encoder({field.type!r})" if is_message else scope.bind(_BODIES[field.type])
        if field.repeated:
            bodies = f"map({encode}, {given} or ())"
            return f"b''.join([{_tag(field)}, {value}) for {value} in {bodies}])"
        body = value if field.type == "bytes" else f"{encode}({value})"
        is_there = "is not None" if is_message or field.type in (*_TIMES, "Dec", "Int") else ""
        return f"{_tag(field)}, {body}) if ({value} := {given}) {is_there} else b''"


def _tag(field: Field) -> str:
    return f"framed({varint(field.number << 3 | 2)!r}"


class _Values:
    """Object with the values of a dictionary as attributes; all other attributes are
    ``None``."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__ = values

    def __getattr__(self, name: str) -> None:
        return None
