"""Conversion of protobuf messages to the gateway's JSON.

The JSON equals that of gogoproto's jsonpb with the original names and default values of
fields. SDK: codec/proto_codec.go.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from ...domain.time import SECOND, to_text
from ...protocol.protobuf import Field, Malformed, Message, fields, int64
from ..protocol.proto import ENUMS, MESSAGES, NUMBERS, unpacked

_MAX_DEPTH = 64
_DECIMALS = 18


def write(name: str, data: bytes, depth: int = _MAX_DEPTH) -> dict[str, Any]:
    """Return the encoded message ``name`` as a JSON object.

    Raise :exc:`~flask_noderpc.protocol.protobuf.Malformed` for invalid bytes.
    """
    if not depth:
        raise Malformed("messages are nested too deeply")
    values: dict[int, list[int | bytes]] = {}
    for number, value in fields(data):
        values.setdefault(number, []).append(value)
    found = {}
    for field in MESSAGES[name]:
        given = values.get(field.number, [])
        if given or field.mark != "?":
            found[field.name] = _field(field, given, depth - 1)
    return found


def _field(field: Field, given: list[int | bytes], depth: int) -> Any:
    if field.repeated:
        values = unpacked(given) if field.type in NUMBERS else given
        return [_value(field.type, each, depth) for each in values]
    if field.type in _SCALARS or field.type in ENUMS:
        return _value(field.type, given[-1] if given else None, depth)
    if not given and field.mark != "!":
        return None
    # Protobuf merges several occurrences of a message field that is not repeated.
    joined = b"".join(each for each in given if isinstance(each, bytes))
    return _value(field.type, joined, depth)


def _value(kind: str, value: int | bytes | None, depth: int) -> Any:
    if kind in ENUMS:
        number = value if isinstance(value, int) else 0
        return ENUMS[kind].get(number, number)
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    data = value if isinstance(value, bytes) else b""
    if kind in _WELL_KNOWN:
        return _WELL_KNOWN[kind](Message(data))
    return _any(Message(data), depth) if kind == "Any" else write(kind, data, depth)


def _any(given: Message, depth: int) -> dict[str, Any]:
    url, data = given.text(1), given.blob(2)
    name = url.removeprefix("/")
    if name in MESSAGES and "." in name:
        return {"@type": url, **write(name, data, depth)}
    # Messages of the application's own types are shown as bytes; the SDK refuses unknown
    # types.
    return {"@type": url, "value": b64encode(data).decode()}


def _integer(value: int | bytes | None) -> int:
    return value if isinstance(value, int) else 0


def _signed(value: int | bytes | None) -> int:
    return int64(_integer(value))


def _text(value: int | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _bytes(value: int | bytes | None) -> str | None:
    # jsonpb writes empty bytes as null.
    return b64encode(value).decode() if isinstance(value, bytes) and value else None


def _decimal(value: int | bytes | None) -> str:
    digits = _text(value) or "0"
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    digits = digits.rjust(_DECIMALS + 1, "0")
    return f"{sign}{digits[:-_DECIMALS]}.{digits[-_DECIMALS:]}"


def _timestamp(given: Message) -> str:
    seconds, nanos = int64(given.integer(1)), given.integer(2)
    try:
        return f"{to_text(seconds * SECOND).removesuffix('Z')}{_fraction(nanos)}Z"
    except OverflowError:
        raise Malformed("expected a time from year 1 to year 9999") from None


def _duration(given: Message) -> str:
    seconds, nanos = int64(given.integer(1)), int64(given.integer(2))
    sign = "-" if seconds < 0 or nanos < 0 else ""
    return f"{sign}{abs(seconds)}{_fraction(abs(nanos))}s"


def _redelegation(given: Message) -> dict[str, Any]:
    """Return a RedelegationResponse, which the SDK writes with Go's encoding/json: numbers as
    such, and times without trailing zeros."""
    own = {**write("Redelegation", given.blob(1)), "entries": None}
    entries = []
    for each in map(Message, given.blobs(2)):
        entry = write("RedelegationEntry", each.blob(1))
        time = Message(Message(each.blob(1)).blob(2))
        entry["completion_time"] = to_text(int64(time.integer(1)) * SECOND + time.integer(2))
        for name in ("creation_height", "unbonding_id", "unbonding_on_hold_ref_count"):
            number = int(entry.pop(name))
            if number:
                entry[name] = number
        names = ("creation_height", *(name for name in entry if name != "creation_height"))
        ordered = {name: entry[name] for name in names if name in entry}
        entries.append({"redelegation_entry": ordered, "balance": each.text(4)})
    return {"redelegation": own, "entries": entries}


def _fraction(nanos: int) -> str:
    """Return the fraction of a second with 3, 6 or 9 digits, or an empty string, as jsonpb."""
    digits = f".{nanos:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return digits.rstrip(".")


_SCALARS: dict[str, Callable[[int | bytes | None], Any]] = {
    "string": _text,
    "bytes": _bytes,
    "bool": lambda value: bool(_integer(value)),
    "int32": _signed,
    "uint32": _integer,
    "int64": lambda value: str(_signed(value)),
    "uint64": lambda value: str(_integer(value)),
    "Dec": _decimal,
    "Int": _text,
}
_WELL_KNOWN: dict[str, Callable[[Message], Any]] = {
    "RedelegationResponse": _redelegation,
    "Timestamp": _timestamp,
    "Duration": _duration,
}
