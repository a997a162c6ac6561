"""Values of a genesis state: messages from their JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from ...domain.time import from_text
from ...protocol.protobuf import Field
from ..protocol.keys import from_json
from ..protocol.proto import ENUMS, MESSAGES
from ..protocol.records import decode, name_of
from ..rest import reader
from .genesis_json import Item

T = TypeVar("T")

STATUSES = {"BOND_STATUS_UNBONDED": 1, "BOND_STATUS_UNBONDING": 2, "BOND_STATUS_BONDED": 3}
# Bits of the numbers that the SDK accepts.
_DURATION_BITS, _INT_BITS, _DECIMAL_BITS = 63, 256, 315
# No number of a genesis state is negative.
_NUMBER = re.compile(r"([0-9]{1,100})(?:\.([0-9]{1,18}))?", re.ASCII)


def _number(given: Item, text: str, places: int, bits: int, shown: str) -> int:
    """Return a number with at most ``places`` decimals, in units of the last one."""
    found = _NUMBER.fullmatch(text)
    fraction = (found[2] or "") if found else ""
    if found is None or len(fraction) > places:
        given.refuse(f"expected {shown}, got {text[:80]!r}")
    value = int(found[1] + fraction.ljust(places, "0"))
    if value >> bits:
        given.refuse(f"expected {shown} of at most {bits} bits, got {text[:80]!r}")
    return value


def _duration(given: Item) -> int:
    text = (given.text() or "0s").removesuffix("s")
    shown = "a duration in seconds such as '1814400s'"
    return _number(given, text, 9, _DURATION_BITS, shown)


def _decimal(given: Item) -> str:
    shown = "a decimal number of at least 0"
    return str(_number(given, given.text() or "0", 18, _DECIMAL_BITS, shown))


def _amount(given: Item) -> str:
    shown = "a whole number of at least 0"
    return str(_number(given, given.text() or "0", 0, _INT_BITS, shown))


def _status(given: Item) -> int:
    name = given.text() or "BOND_STATUS_UNSPECIFIED"
    if name not in STATUSES:
        given.refuse(f"expected {', '.join(STATUSES)}, got {name[:80]!r}")
    return STATUSES[name]


def _time(given: Item) -> int:
    text = given.text()
    return given.read(lambda _: from_text(text), "a time") if text else 0


def _named(given: Item, names: Mapping[int, str]) -> int:
    """Return the number of an enum's name; a missing one is 0."""
    numbers = {name: number for number, name in names.items()}
    text = given.text() or names[0]
    if text not in numbers:
        given.refuse(f"expected {', '.join(numbers)}, got {text[:80]!r}")
    return numbers[text]


def time_of(given: Item) -> int | None:
    """Return a time in nanoseconds since 1970, ``None`` if it is missing; raise
    :exc:`~.genesis_json.InvalidState`."""
    return None if given.value is None else _time(given)


def _any(given: Item) -> object:
    """Return a public key, or another message with its type URL."""
    url = given["@type"].required_text()
    name = url.removeprefix("/")
    if ".crypto." in url or name not in MESSAGES:
        return given.read(from_json, "a public key").any
    # Messages of a proposal may have any values, as they may fail later.
    value = given.read(lambda members: reader.read(name, members), "a message")
    return {"type_url": url, "value": value}


_READ: dict[str, Callable[[Item], object]] = {
    "Any": _any,
    "BondStatus": _status,
    "Dec": _decimal,
    "Duration": _duration,
    "Int": _amount,
    "Timestamp": _time,
    "bool": Item.flag,
    "int64": lambda given: given.whole_number(63),
    "string": Item.text,
    "uint32": lambda given: given.whole_number(32),
    "uint64": Item.whole_number,
}
"""Functions that convert a field's JSON value, by field type."""


def encode(name: str, given: Item) -> bytes:
    """Encode a message from its JSON in the genesis state; raise
    :exc:`~.genesis_json.InvalidState`."""

    def value(field: Field, item: Item) -> object:
        is_message = field.type in MESSAGES or field.type == "Timestamp"
        if item.value is None and is_message and not (field.repeated or field.mark == "!"):
            return None
        if field.type in ENUMS and field.type not in _READ:
            return _named(item, ENUMS[field.type])
        is_required = field.type == "string" and field.mark == "!"
        read = Item.required_text if is_required else _READ.get(field.type)
        return read(item) if read else encode(field.type, item)

    values = {
        field.attribute: [value(field, each) for each in given[field.name]]
        if field.repeated
        else value(field, given[field.name])
        for field in MESSAGES[name]
    }
    return MESSAGES.encode(name, **values)


def read(kind: type[T], given: Item) -> T:
    """Return a record from its JSON in the genesis state; raise
    :exc:`~.genesis_json.InvalidState`."""
    return decode(kind, encode(name_of(kind), given))
