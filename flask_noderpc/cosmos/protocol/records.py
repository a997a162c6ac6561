"""Dataclasses that are encoded as protobuf messages, for the values in a module's store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from typing import Any, TypeVar

from ...domain.time import SECOND
from ...protocol.protobuf import Field, Malformed, Message, fields, int64
from .fields import ANY, COIN
from .proto import ENUMS, MESSAGES, NUMBERS, unpacked

T = TypeVar("T")

_NAMES: dict[type, str] = {}
_CLASSES: dict[str, type] = {}


def record(name: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator for a dataclass whose attributes are the fields of the message
    ``name`` in :data:`~flask_noderpc.cosmos.protocol.proto.MESSAGES`.

    Times and durations are nanoseconds; a ``Dec`` is in units of 10^-18. Each attribute needs a
    default value if the message's field may be absent.
    """

    def register(kind: type[T]) -> type[T]:
        assert is_dataclass(kind)
        _NAMES[kind], _CLASSES[name] = name, kind
        return kind

    return register


def name_of(kind: type) -> str:
    """Return the name of a record's message."""
    return _NAMES[kind]


def encode(value: Any) -> bytes:
    """Return the encoded message of a record."""
    return MESSAGES.encoder(name_of(type(value)))(value)


def decode(kind: type[T], data: bytes) -> T:
    """Return the record of an encoded message; raise
    :exc:`~flask_noderpc.protocol.protobuf.Malformed`."""
    given: dict[int, list[int | bytes]] = {}
    for number, value in fields(data):
        given.setdefault(number, []).append(value)
    values = {}
    for field, read in _readers(name_of(kind)):
        if found := given.get(field.number):
            values[field.attribute] = read(found)
    return kind(**values)


@cache
def _readers(name: str) -> tuple[tuple[Field, Callable[[list[Any]], Any]], ...]:
    return tuple((field, _reader(field)) for field in MESSAGES[name])


def _reader(field: Field) -> Callable[[list[Any]], Any]:
    """Return the function that reads a field's value from its occurrences."""
    one = _value_reader(field.type)
    if field.repeated:
        if field.type in NUMBERS:
            return lambda found: [one(each) for each in unpacked(found)]
        return lambda found: [one(each) for each in found]
    if field.type in _CLASSES:
        # Protobuf merges several occurrences of a message field that is not repeated.
        return lambda found: one(b"".join(found))
    return lambda found: one(found[-1])


def _value_reader(name: str) -> Callable[[Any], Any]:
    if name in _CLASSES:
        kind = _CLASSES[name]
        return lambda data: decode(kind, data)
    if name in ENUMS:
        return int
    return _READERS[name]


def _nanoseconds(data: bytes) -> int:
    given = Message(data)
    return int64(given.integer(1)) * SECOND + int64(given.integer(2))


def _number(data: bytes) -> int:
    try:
        return int(data or b"0")
    except ValueError:
        raise Malformed("expected a whole number") from None


_READERS: dict[str, Callable[[Any], Any]] = {
    "Coin": COIN.decode,
    "string": lambda data: data.decode(errors="replace"),
    "bytes": bytes,
    "bool": bool,
    "int64": int64,
    "uint64": int,
    "int32": int64,
    "uint32": int,
    "Dec": _number,
    "Int": _number,
    "Timestamp": _nanoseconds,
    "Duration": _nanoseconds,
    "Any": ANY.decode,
}
