"""Messages as text, as in the SDK's errors; gogoproto: proto/text.go, CompactText."""

from __future__ import annotations

from ...protocol.protobuf import Message
from .proto import ENUMS, MESSAGES, NUMBERS


def compact(name: str, data: bytes) -> str:
    """Return the text of an encoded message."""
    found, given = "", Message(data)
    for field in MESSAGES[name]:
        if field.type in MESSAGES:
            for each in given.blobs(field.number):
                found += f"{field.name}:<{compact(field.type, each)}> "
        elif field.type in (*NUMBERS, "bool", *ENUMS):
            number = given.integer(field.number)
            if number:
                found += f"{field.name}:{_shown(field.type, number)} "
        else:
            for each in given.blobs(field.number):
                found += f'{field.name}:"{each.decode(errors="replace")}" '
    return found


def _shown(kind: str, number: int) -> str:
    if kind == "bool":
        return "true"
    return ENUMS.get(kind, {}).get(number, str(number))
