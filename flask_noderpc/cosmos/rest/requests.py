"""Conversion of a request's path and query string to a protobuf message.

grpc-gateway: runtime/query.go and runtime/convert.go, with their error texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from urllib.parse import parse_qsl

from ...protocol.protobuf import Field, blob, integer, message, string
from ...wire.comet import gojson
from ..protocol.proto import ENUMS, MESSAGES

# One digit more than a 64-bit number has, so a number that is cut to it is still out of range.
_MAX_DIGITS = 21
_UNSIGNED, _SIGNED = ("uint64", "uint32"), ("int64", "int32")
# Digits that Go's strconv.ParseUint accepts, by base; 0 means that a prefix sets the base.
_DIGITS = {
    10: re.compile(r"\d+", re.ASCII),
    0: re.compile(
        r"0[xX](_?[\da-fA-F])+|0[bB](_?[01])+|0([oO]?(_?[0-7])+)?|[1-9](_?\d)*", re.ASCII
    ),
}
_PREFIXES = {"x": 16, "b": 2}
_NO_ESCAPE = re.compile(r"%(?![\da-fA-F]{2})[^=]{0,2}")
_Path = tuple[str, ...]
_ALPHABETS = str.maketrans("+/-_", "-_+/")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")


class InvalidRequest(ValueError):
    """Error for an invalid value of a field, with the text of grpc-gateway."""


def of_path(name: str, values: Mapping[str, str]) -> bytes:
    """Return the encoded fields of a request that are in its path; raise
    :exc:`InvalidRequest`."""
    by_name = {field.name: field for field in MESSAGES[name]}
    found = b""
    for key, text in values.items():
        try:
            found += scalar(by_name[key], text)
        except (InvalidRequest, gojson.GoError) as error:
            raise InvalidRequest(f"type mismatch, parameter: {key}, error: {error}") from None
    return found


def of_query(name: str, query: str, known: Collection[str]) -> bytes:
    """Return the encoded fields of a request that are in its query string, without fields that
    are ``known`` from its path; raise :exc:`InvalidRequest`."""
    if all(field.name in known for field in MESSAGES[name]):
        # grpc-gateway ignores the query string if the path has all fields.
        return b""
    _check(query)
    values: dict[str, list[str]] = {}
    for key, text in parse_qsl(query, keep_blank_values=True):
        values.setdefault(key, []).append(text)
    paths = (_path(key, texts) for key, texts in values.items())
    return _encode_fields(name, {path: texts for path, texts in paths if path[0] not in known})


def _path(key: str, texts: list[str]) -> tuple[_Path, list[str]]:
    name, bracket, index = key.rpartition("[")
    if bracket and index.endswith("]"):
        return tuple(name.split(".")), [index[:-1], *texts]
    return tuple(key.split(".")), texts


def _check(query: str) -> None:
    """Raise :exc:`InvalidRequest` for a query string that Go's net/url refuses."""
    for each in query.split("&"):
        if ";" in each:
            raise InvalidRequest("invalid semicolon separator in query")
        wrong = _NO_ESCAPE.search(each)
        if wrong:
            raise InvalidRequest(f"invalid URL escape {gojson.quoted(wrong[0])}")


def _encode_fields(name: str, given: Mapping[_Path, list[str]], above: _Path = ()) -> bytes:
    encoded = b""
    for field in MESSAGES[name]:
        names = field.name, field.json_name
        own = {path[1:]: texts for path, texts in given.items() if path[0] in names}
        if own:
            encoded += _encode_field(field, own, (*above, field.name))
    return encoded


def _encode_field(field: Field, given: Mapping[_Path, list[str]], path: _Path) -> bytes:
    if field.type in MESSAGES:
        if () in given:
            kind = f"*query.{field.type}"
            raise InvalidRequest(f"field type {kind} is not supported in query parameters")
        return message(field.number, _encode_fields(field.type, given, path))
    inner = next(filter(None, given), None)
    if inner is not None:
        raise InvalidRequest(f"unexpected nested field {inner[0]} in {'.'.join(path)}")
    texts = given[()]
    if field.repeated:
        # Encode even empty strings, as they are elements of a repeated field.
        return b"".join(message(field.number, text.encode()) for text in texts)
    # grpc-gateway uses the first of several values of one field.
    return scalar(field, texts[0])


def scalar(field: Field, text: str) -> bytes:
    """Encode the value of a field that is not a message; raise :exc:`InvalidRequest`."""
    if field.type in _UNSIGNED:
        return integer(field.number, uint64(text, 0))
    if field.type in _SIGNED:
        return integer(field.number, int64(text, 0))
    if field.type == "bool":
        if text not in (*_TRUE, *_FALSE):
            raise _unparsed("Bool", text)
        return integer(field.number, text in _TRUE)
    if field.type == "bytes":
        return blob(field.number, _bytes(text))
    if field.type in ENUMS:
        return integer(field.number, _enum(field.type, text))
    return string(field.number, text)


def int64(text: str, base: int = 10) -> int:
    """Parse an integer like Go's ParseInt; with base 0, a prefix such as ``0x`` sets the base.
    Raise :exc:`InvalidRequest`."""
    is_negative, digits = text[:1] == "-", text[1:] if text[:1] in ("+", "-") else text
    found = _number(text, digits, base, "Int", (1 << 63) + is_negative)
    return -found if is_negative else found


def uint64(text: str, base: int = 10) -> int:
    """Parse an unsigned integer like Go's ParseUint; raise :exc:`InvalidRequest`."""
    return _number(text, text, base, "Uint", 1 << 64)


def _number(text: str, digits: str, base: int, kind: str, limit: int) -> int:
    """Parse the digits of ``text``; raise :exc:`InvalidRequest` unless they are below a
    limit."""
    if not _DIGITS[base].fullmatch(digits):
        raise _unparsed(kind, text)
    plain = digits.replace("_", "")
    if base == 0:
        base = _PREFIXES.get(plain[1:2].lower(), 8) if plain[0] == "0" else 10
    # Cut long numbers, as int() refuses more than 4300 digits; they are out of range anyway.
    found = int(plain.lstrip("0")[:_MAX_DIGITS] or "0") if base == 10 else int(plain, base)
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
    except gojson.GoError:
        # grpc-gateway accepts the standard and the URL-safe alphabet of base64.
        return gojson.base64_bytes(text.translate(_ALPHABETS).encode())


_GO_PACKAGES = {
    "AuthorizationType": "types",
    "BlockIDFlag": "types",
    "BondStatus": "types",
    "BroadcastMode": "tx",
    "OrderBy": "tx",
    "ProposalStatus": "v1",
    "SignMode": "signing",
    "SignedMsgType": "types",
    "VoteOption": "v1",
}


def go_name(kind: str) -> str:
    """Return the name of an enum in Go, which errors contain."""
    return f"{_GO_PACKAGES[kind]}.{kind}"


def _enum(kind: str, text: str) -> int:
    for number, name in ENUMS[kind].items():
        if text in (name, str(number)):
            return number
    raise InvalidRequest(f"{text} is not a valid {go_name(kind)}")
