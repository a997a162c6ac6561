"""Requests of the gateway as messages of protobuf: of a path and a query.

grpc-gateway: runtime/query.go and runtime/convert.go, with their texts.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping

from ..protocol.protobuf import blob, integer, message, string
from ..wire.comet import gojson
from .messages import ENUMS, MESSAGES, Field

# One more than 64 bits have: longer ones are out of range, too.
_MAX_DIGITS = 21
_UNSIGNED, _SIGNED = ("uint64", "uint32"), ("int64", "int32")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")


class InvalidRequest(ValueError):
    """A value is none of its field; the text is that of the gateway."""


def of_path(name: str, values: Mapping[str, str]) -> bytes:
    """Return the fields of a request that are in its path; raise :exc:`InvalidRequest`."""
    by_name = {field.name: field for field in MESSAGES[name]}
    found = b""
    for key, text in values.items():
        try:
            found += scalar(by_name[key], text)
        except InvalidRequest as error:
            raise InvalidRequest(f"type mismatch, parameter: {key}, error: {error}") from None
    return found


def of_query(name: str, values: Iterable[tuple[str, str]], known: Iterable[str]) -> bytes:
    """Return the fields of a request that are in its query string, without those that are
    ``known`` by its path; raise :exc:`InvalidRequest`."""
    found: dict[tuple[str, ...], list[str]] = {}
    for key, text in values:
        path = tuple(key.split("."))
        if path[0] not in known:
            found.setdefault(path, []).append(text)
    return _of_fields(name, found)


def _of_fields(name: str, given: Mapping[tuple[str, ...], list[str]]) -> bytes:
    encoded = b""
    for field in MESSAGES[name]:
        own = given.get((field.name,))
        inner = {path[1:]: texts for path, texts in given.items() if path[0] == field.name}
        inner.pop((), None)
        if field.type in MESSAGES:
            if inner:
                encoded += message(field.number, _of_fields(field.type, inner))
        elif own:
            # grpc-gateway: of several values of one field the first.
            for text in own if field.repeated else own[:1]:
                encoded += scalar(field, text)
    return encoded


def scalar(field: Field, text: str) -> bytes:
    """Return a field that is no message; raise :exc:`InvalidRequest`."""
    if field.type in _UNSIGNED:
        return integer(field.number, _number(text, text, "Uint", 1 << 64))
    if field.type in _SIGNED:
        return integer(field.number, int64(text))
    if field.type == "bool":
        if text not in (*_TRUE, *_FALSE):
            raise _unparsed("Bool", text)
        return integer(field.number, text in _TRUE)
    if field.type == "bytes":
        return blob(field.number, _bytes(text))
    if field.type in ENUMS:
        return integer(
            field.number, enum(field.type, text, f"{text} is not a valid tx.{field.type}")
        )
    return string(field.number, text)


def int64(text: str) -> int:
    """Return a number that is written as Go's ParseInt reads it; raise
    :exc:`InvalidRequest`."""
    is_negative, digits = text[:1] == "-", text[1:] if text[:1] in ("+", "-") else text
    found = _number(text, digits, "Int", (1 << 63) + is_negative)
    return -found if is_negative else found


def _number(text: str, digits: str, kind: str, limit: int) -> int:
    """Return the number of digits, which is below a limit."""
    if not (digits.isascii() and digits.isdigit()):
        raise _unparsed(kind, text)
    significant = digits.lstrip("0")[:_MAX_DIGITS]
    found = int(significant or "0")
    if found >= limit:
        raise InvalidRequest(
            f"strconv.Parse{kind}: parsing {gojson.quoted(text)}: value out of range"
        )
    return found


def _unparsed(kind: str, text: str) -> InvalidRequest:
    return InvalidRequest(f"strconv.Parse{kind}: parsing {gojson.quoted(text)}: invalid syntax")


def _bytes(text: str) -> bytes:
    try:
        return gojson.base64_bytes(text.encode())
    except gojson.GoError as error:
        # grpc-gateway: what is none is tried as that of URLs.
        try:
            return b64decode(text.encode(), b"-_", validate=True)
        except ValueError:
            raise InvalidRequest(str(error)) from None


def enum(kind: str, text: str, refusal: str) -> int:
    """Return the number of a name or number of an enum; raise :exc:`InvalidRequest`."""
    for number, name in ENUMS[kind].items():
        if text in (name, str(number)):
            return number
    raise InvalidRequest(refusal)
