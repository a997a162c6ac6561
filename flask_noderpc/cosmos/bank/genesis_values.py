"""Values of a genesis state: messages from their JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...domain.time import from_text
from ...protocol.protobuf import Field
from ..protocol.keys import from_json
from ..protocol.proto import MESSAGES
from ..protocol.records import decode, name_of
from .genesis_json import Item

T = TypeVar("T")

STATUSES = {"BOND_STATUS_UNBONDED": 1, "BOND_STATUS_UNBONDING": 2, "BOND_STATUS_BONDED": 3}
"""Numbers of the validator states, by name."""

_MAX_SECONDS = 1 << 63


def _scaled(text: str, places: int) -> int:
    whole, _, fraction = text.partition(".")
    return int(whole + fraction[:places].ljust(places, "0"))


def _duration(given: Item) -> int:
    text = (given.text() or "0s").removesuffix("s")
    duration = given.read(lambda _: _scaled(text, 9), "a duration")
    if not 0 <= duration < _MAX_SECONDS:
        given.refuse(f"expected a duration in seconds such as '1814400s', got {text[:80]!r}")
    return duration


def _decimal(given: Item) -> str:
    text = given.text() or "0"
    return str(given.read(lambda _: _scaled(text, 18), "a decimal number"))


def _amount(given: Item) -> str:
    text = given.text() or "0"
    return str(given.read(lambda _: int(text), "a whole number"))


def _time(given: Item) -> int:
    text = given.text()
    return given.read(lambda _: from_text(text), "a time") if text else 0


_READ: dict[str, Callable[[Item], object]] = {
    "Any": lambda given: given.read(from_json, "a public key").any,
    "BondStatus": lambda given: STATUSES.get(given.text(), 0),
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
        is_required = field.type == "string" and field.mark == "!"
        read = Item.required_text if is_required else _READ.get(field.type)
        return read(item) if read else encode(field.type, item)

    values = {
        field.name: [value(field, each) for each in given[field.name]]
        if field.repeated
        else value(field, given[field.name])
        for field in MESSAGES[name]
    }
    return MESSAGES.encode(name, **values)


def read(kind: type[T], given: Item) -> T:
    """Return a record from its JSON in the genesis state; raise
    :exc:`~.genesis_json.InvalidState`."""
    return decode(kind, encode(name_of(kind), given))
