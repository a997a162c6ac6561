"""Calldata from the text that people write for a function's parameters.

Integers, addresses, bools and bytes are written as they are shown, arrays and tuples as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from eth_abi import encoding
from eth_abi.registry import registry

from .. import jsoncodec
from ..protocol.secp256k1eth import to_checksum
from .abi import Entry
from .abi_types import Parameter, Type

MAX_TEXT = 64 * 1024
"""Maximum number of characters of an argument."""

_NUMBER = re.compile(r"-?\d{1,78}|0[xX][0-9a-fA-F]{1,64}", re.ASCII)
_HEX = re.compile(r"0[xX]((?:[0-9a-fA-F]{2})*)", re.ASCII)
_SIZED = re.compile(r"(u?int|bytes)(\d+)", re.ASCII)
_BOOLS = {"true": True, "false": False}
_FUNCTION_BYTES = 24
"""Bytes of a value of type ``function``: an address and a selector."""


def calldata(function: Entry, texts: Sequence[str]) -> bytes:
    """Return the selector and the encoded arguments; raise :exc:`ValueError`, which names the
    parameter."""
    values = []
    for number, (parameter, text) in enumerate(zip(function.inputs, texts, strict=True), 1):
        where = parameter.name or f"parameter {number}"
        if len(text) > MAX_TEXT:
            raise ValueError(
                f"{where}: expected at most {MAX_TEXT} characters, got {len(text)}"
            )
        values.append(_of_text(parameter.type, text, where))
    return function.selector + _tuple_encoder(function.inputs)(values)


def _tuple_encoder(parameters: Sequence[Parameter]) -> encoding.TupleEncoder:
    return encoding.TupleEncoder(encoders=[_encoder(each.type) for each in parameters])


def _encoder(kind: Type) -> encoding.BaseEncoder:
    if kind.members is not None:
        return _tuple_encoder(kind.members)
    if kind.item is None:
        return registry.get_encoder(kind.name)  # type: ignore[return-value]  # it is no class
    item = _encoder(kind.item)
    if kind.size is None:
        return encoding.DynamicArrayEncoder(item_encoder=item)
    return encoding.SizedArrayEncoder(array_size=kind.size, item_encoder=item)


def _of_text(kind: Type, text: str, where: str) -> Any:
    """Return the value of a parameter from the text of a form."""
    if kind.item is None and kind.members is None:
        # A form sends line breaks as CRLF.
        is_text = kind.name == "string"
        return _base(kind.name, text.replace("\r\n", "\n") if is_text else text.strip(), where)
    try:
        given = jsoncodec.decode(text)
    except ValueError:
        _refuse(where, f"JSON of {kind.shape}", text)
    return _of_json(kind, given, where)


def _of_json(kind: Type, given: Any, where: str) -> Any:
    if kind.item is not None:
        if not isinstance(given, list) or kind.size not in (None, len(given)):
            count = "" if kind.size is None else f" with {kind.size} elements"
            _refuse(where, f"a JSON list{count}", given)
        return [_of_json(kind.item, each, f"{where}[{n}]") for n, each in enumerate(given)]
    if kind.members is not None:
        return _members(kind, kind.members, given, where)
    return _base(kind.name, given, where)


def _members(kind: Type, members: Sequence[Parameter], given: Any, where: str) -> Any:
    names = [each.name for each in members]
    # An object can't give values to members without names of their own.
    if isinstance(given, dict) and sorted(given) == sorted(names):
        given = [given[name] for name in names]
    if not isinstance(given, list) or len(given) != len(members):
        _refuse(where, f"a JSON object or list of {kind.shape}", given)
    return tuple(
        _of_json(each.type, value, f"{where}.{each.name or number}")
        for number, (each, value) in enumerate(zip(members, given, strict=True))
    )


def _base(name: str, given: Any, where: str) -> Any:
    sized = _SIZED.fullmatch(name)
    if sized and sized[1] != "bytes":
        return _integer(int(sized[2]), given, where, is_signed=sized[1] == "int")
    if sized or name == "function":
        return _bytes(int(sized[2]) if sized else _FUNCTION_BYTES, given, where)
    return _READERS[name](given, where)


def _bool(given: Any, where: str) -> bool:
    found = _BOOLS.get(given.lower()) if isinstance(given, str) else given
    if not isinstance(found, bool):
        _refuse(where, "true or false", given)
    return found


def _string(given: Any, where: str) -> str:
    if not isinstance(given, str):
        _refuse(where, "a string", given)
    return given


def _integer(bits: int, given: Any, where: str, *, is_signed: bool) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    found = given if isinstance(given, int) and not isinstance(given, bool) else None
    if isinstance(given, str) and _NUMBER.fullmatch(given):
        found = int(given, 16 if given[:2] in ("0x", "0X") else 10)
    if found is None or not low <= found <= high:
        first = f"-2^{bits - 1}" if is_signed else "0"
        _refuse(where, f"an integer from {first} to 2^{bits - is_signed} - 1", given)
    return found


def _address(given: Any, where: str) -> str:
    found = _HEX.fullmatch(given) if isinstance(given, str) else None
    if found is None or len(found[1]) != 40:
        _refuse(where, "an address of 0x and 40 hex digits", given)
    digits, own = found[1], to_checksum(bytes.fromhex(found[1]))
    if digits not in (digits.lower(), digits.upper(), own[2:]):
        # EIP-55: upper and lower case are a checksum.
        _refuse(where, "an address whose upper and lower case is its checksum", given)
    return own


def _bytes(size: int | None, given: Any, where: str) -> bytes:
    found = _HEX.fullmatch(given) if isinstance(given, str) else None
    if found is None or size not in (None, len(found[1]) // 2):
        count = "an even number of" if size is None else str(2 * size)
        _refuse(where, f"0x and {count} hex digits", given)
    return bytes.fromhex(found[1])


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "bool": _bool,
    "string": _string,
    "address": _address,
    "bytes": partial(_bytes, None),
}


def _refuse(where: str, expected: str, given: Any) -> NoReturn:
    shown = given if isinstance(given, str) else jsoncodec.encode(given).decode()
    raise ValueError(f"{where}: expected {expected}, got {shown[:80]!r}")
