"""Messages and durations as text, as in the SDK's errors; gogoproto: proto/text.go,
CompactText."""

from __future__ import annotations

from ...domain.time import MILLISECOND, SECOND
from ...protocol.protobuf import Message, int64
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
                found += f"{field.name}:{_quoted(each)} "
    return found


def _shown(kind: str, number: int) -> str:
    if kind == "bool":
        return "true"
    if kind not in ENUMS:
        return str(int64(number) if kind in ("int32", "int64") else number)
    # SDK: the enums of x/gov show only the lowest byte of unknown numbers.
    return ENUMS[kind].get(number, str(number & 0xFF))


_ESCAPES = {each: f"\\{each:03o}" for each in range(256) if not 0x20 <= each < 0x7F} | {
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}


def _quoted(text: bytes) -> str:
    return f'"{text.decode("latin-1").translate(_ESCAPES)}"'


def duration(nanoseconds: int) -> str:
    """Return Go's text of a duration, such as ``1h2m3.5s``."""
    sign, left = "-" if nanoseconds < 0 else "", abs(nanoseconds)
    if 0 < left < SECOND:
        unit, size = next(each for each in _SMALL_UNITS if each[1] <= left)
        return f"{sign}{_quotient(left, size)}{unit}"
    minutes, left = divmod(left, 60 * SECOND)
    text = f"{_quotient(left, SECOND)}s"
    if minutes:
        text = f"{minutes % 60}m{text}"
    if minutes >= 60:
        text = f"{minutes // 60}h{text}"
    return sign + text


_SMALL_UNITS = (("ms", MILLISECOND), ("µs", 1_000), ("ns", 1))


def _quotient(value: int, size: int) -> str:
    whole, rest = divmod(value, size)
    fraction = f"{rest:0{len(str(size)) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)
