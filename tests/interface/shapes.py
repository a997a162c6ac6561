"""Check a JSON value against the types of ``document.json``."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

Kind: TypeAlias = "str | Mapping[str, Kind]"
"""A type name, ``{"shape": name}``, ``{"array": kind}``, ``{"nullable": kind}``, or fields."""

DOCUMENT: dict[str, Any] = json.loads(
    Path(__file__).with_name("document.json").read_text(encoding="utf-8")
)
SHAPES: dict[str, dict[str, Kind]] = DOCUMENT["shapes"]
EXTRAS: dict[str, dict[str, Kind]] = DOCUMENT["extras"]

# In CometBFT a node's ID is the only hash in lower case.
_LOWER = {("NodeInfo", "id"): "lower hex"}

_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?Z", re.ASCII)


def check(value: object, kind: Kind, where: str = "result") -> list[str]:
    """Return one sentence for each fault of the value; empty if it is right."""
    return list(_complaints(value, kind, where))


def _complaints(value: object, kind: Kind, where: str) -> Iterator[str]:
    if isinstance(kind, str):
        if not _SCALARS[kind](value):
            yield f"{where}: expected {kind}, got {value!r}"
    elif kind.keys() == {"shape"}:
        yield from _shape(value, str(kind["shape"]), where)
    elif kind.keys() == {"array"}:
        yield from _array(value, kind["array"], where)
    elif kind.keys() == {"nullable"}:
        if value is not None:
            yield from _complaints(value, kind["nullable"], where)
    else:
        yield from _fields(value, kind, {}, where)


def _shape(value: object, name: str, where: str) -> Iterator[str]:
    fields = {path: _LOWER.get((name, path), kind) for path, kind in SHAPES[name].items()}
    yield from _fields(value, fields, EXTRAS.get(name, {}), where)


def _array(value: object, expected: Kind, where: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{where}: expected array, got {value!r}"
        return
    for index, item in enumerate(value):
        yield from _complaints(item, expected, f"{where}[{index}]")


def _fields(
    value: object, fields: Mapping[str, Kind], extras: Mapping[str, Kind], where: str
) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where}: expected object, got {value!r}"
        return
    expected = _first_names(fields)
    for name in expected:
        if name not in value:
            yield f"{where}.{name}: missing"
    for name, item in value.items():
        kind = expected.get(name, extras.get(name))
        if kind is None:
            yield f"{where}.{name}: unexpected"
        else:
            yield from _complaints(item, kind, f"{where}.{name}")


def _first_names(fields: Mapping[str, Kind]) -> dict[str, Kind]:
    # ``parts.total`` and ``parts.hash`` become one field ``parts`` with two fields.
    direct: dict[str, Kind] = {}
    nested: dict[str, dict[str, Kind]] = {}
    for path, kind in fields.items():
        name, dot, rest = path.partition(".")
        if dot:
            nested.setdefault(name, {})[rest] = kind
        else:
            direct[name] = kind
    return direct | nested


def _text(pattern: str) -> Callable[[object], bool]:
    expected = re.compile(pattern)
    return lambda value: isinstance(value, str) and expected.fullmatch(value) is not None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_base64(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        # Encoding again detects stray bits behind the last byte.
        return b64encode(b64decode(value, validate=True)).decode() == value
    except (Error, ValueError):
        return False


def _is_timestamp(value: object) -> bool:
    match = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return False
    try:
        datetime.fromisoformat(match[1])
    except ValueError:
        return False
    return True


_SCALARS: dict[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "string(int)": _text("-?[0-9]+"),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "hex": _text("(?:[0-9A-F]{2})+"),
    "hex?": _text("(?:[0-9A-F]{2})*"),
    "lower hex": _text("(?:[0-9a-f]{2})+"),
    "0x": _text("0x[0-9a-f]+"),
    "base64": _is_base64,
    "timestamp": _is_timestamp,
    "object": lambda value: isinstance(value, dict),
}
