"""Strict parsers of parameters by CometBFT's rules, with Go's error texts.

Versions 0.34, 0.37, 0.38 and 1.0 behave alike. The parsers get JSON values as raw text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from ... import jsoncodec
from ...jsoncodec import text_of
from .. import json_schema as forms
from .. import params
from ..dialect import ParamRules, Reader
from ..fields import Json
from ..params import ParamField
from . import gojson
from .gojson import GoError, base64_bytes, hex_bytes

_NULL = b"null"
_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _is_hex(text: str) -> bool:
    return text[:2] in ("0x", "0X")


def _is_quoted(text: str | bytes, mark: str | bytes) -> bool:
    return text[:1] == mark == text[-1:]


def refuse_hex(text: str, go_type: str) -> None:
    """Raise :exc:`GoError` for a hex value if the Go type is neither a string nor bytes."""
    # CometBFT: rpc/jsonrpc/server/http_uri_handler.go, _nonJSONStringToArg.
    if _is_hex(text):
        raise GoError(f"got a hex string arg, but expected '{go_type}'")


@dataclass(frozen=True, slots=True)
class Integer:
    """Go's int64, int and uint: digits in quotes; in a URI the quotes may be omitted."""

    go_type: str
    minimum: int = -(1 << 63)
    maximum: int = (1 << 63) - 1
    zero: ClassVar = 0
    in_json: ClassVar = forms.DIGITS

    @property
    def in_uri(self) -> Json:
        """JSON Schema of the value in a URI: a number."""
        return forms.integer(self.minimum, self.maximum)

    def from_uri(self, text: str) -> int:
        """Parse digits, or JSON."""
        if _INTEGER.fullmatch(text):
            return self._within(_utf8(text))
        refuse_hex(text, self.go_type)
        return self.from_json(_utf8(text))

    def from_json(self, raw: bytes) -> int:
        """Parse a JSON number in double quotes."""
        # CometBFT: libs/json/decoder.go, decodeReflect.
        if not _is_quoted(raw, b'"'):
            shown = gojson.quoted(raw.decode("utf-8", "replace"))
            raise GoError(f"invalid 64-bit integer encoding {shown}, expected string")
        # CometBFT panics on a lone quote; this parser reads it as an empty pair of quotes.
        return self._within(raw[1:-1])

    def _within(self, digits: bytes) -> int:
        gojson.check(digits)
        kind = gojson.kind_of(digits)
        if kind == "null":
            # Go: null means the zero value, and "null" in quotes is not null.
            return 0
        if kind != "number":
            raise gojson.mismatch(digits, self.go_type)
        return gojson.integer(digits, self.go_type, self.minimum, self.maximum)


class Bool:
    """Go's bool."""

    zero: ClassVar = False
    in_json: ClassVar = forms.typed("boolean")
    in_uri: ClassVar = in_json

    def from_uri(self, text: str) -> bool:
        """Parse JSON."""
        refuse_hex(text, "bool")
        return self.from_json(_utf8(text))

    def from_json(self, raw: bytes) -> bool:
        """Parse ``true`` or ``false``."""
        gojson.check(raw)
        if gojson.kind_of(raw) not in ("bool", "null"):
            raise gojson.mismatch(raw, "bool")
        return raw.strip() == b"true"


class String:
    """Go's string; in a URI it may be hex with the prefix 0x."""

    zero: ClassVar = ""
    in_json: ClassVar = forms.typed("string")
    in_uri: ClassVar = forms.QUOTED

    def from_uri(self, text: str) -> str:
        """Parse JSON, or hex."""
        if _is_hex(text):
            return text_of(hex_bytes(_utf8(text[2:])))
        return self.from_json(_utf8(text))

    def from_json(self, raw: bytes) -> str:
        """Parse a JSON string."""
        gojson.check(raw)
        kind = gojson.kind_of(raw)
        if kind not in ("string", "null"):
            raise gojson.mismatch(raw, "string")
        return gojson.string(raw) if kind == "string" else ""


class StringSlice:
    """Go's []string."""

    zero: ClassVar[tuple[str, ...]] = ()
    in_json: ClassVar = forms.TEXTS
    in_uri: ClassVar = forms.TEXTS

    def from_uri(self, text: str) -> tuple[str, ...]:
        """Parse JSON."""
        refuse_hex(text, "slice")
        return self.from_json(_utf8(text))

    def from_json(self, raw: bytes) -> tuple[str, ...]:
        """Parse an array of strings; null is an empty array, and a null element an empty
        string."""
        gojson.check(raw)
        kind = gojson.kind_of(raw)
        if kind not in ("array", "null"):
            raise gojson.mismatch(raw, "[]json.RawMessage")
        return _texts(raw) if kind == "array" else ()


def _texts(raw: bytes) -> tuple[str, ...]:
    # Fast path for plain arrays, which may be long. Parsing element by element accepts all
    # arrays that Go accepts.
    with suppress(jsoncodec.NotJSON):
        return tuple(text or "" for text in jsoncodec.decode(raw, list[str | None]))
    return tuple(map(String().from_json, gojson.elements(raw)))


@dataclass(frozen=True, slots=True)
class ByteSlice:
    """Go's byte slices: base64; in a URI hex with the prefix 0x, or text in double quotes."""

    go_type: str
    zero: ClassVar = b""
    in_json: ClassVar = forms.BASE64
    in_uri: ClassVar = forms.QUOTED

    def from_uri(self, text: str) -> bytes:
        """Parse hex, text in double quotes (its UTF-8 bytes), or JSON."""
        if _is_hex(text):
            return hex_bytes(_utf8(text[2:]))
        if _is_quoted(text, '"'):
            return _utf8(String().from_json(_utf8(text)))
        return self.from_json(_utf8(text))

    def from_json(self, raw: bytes) -> bytes:
        """Parse base64, or an array of numbers."""
        gojson.check(raw)
        match gojson.kind_of(raw):
            case "string":
                return base64_bytes(_utf8(gojson.string(raw)))
            case "array":
                return _numbers(raw)
            case "null":
                return b""
            case _:
                raise gojson.mismatch(raw, self.go_type)


def _numbers(raw: bytes) -> bytes:
    # Fast path for valid arrays, which may be long. For an invalid array, parsing element by
    # element finds Go's error. Go accepts no sign, not even in -0.
    if b"-" not in raw:
        with suppress(jsoncodec.NotJSON, ValueError):
            return bytes(number or 0 for number in jsoncodec.decode(raw, list[int | None]))
    return bytes(map(_byte, gojson.elements(raw)))


def _byte(raw: bytes) -> int:
    kind = gojson.kind_of(raw)
    if kind == "null":
        return 0
    if kind != "number":
        raise gojson.mismatch(raw, "uint8")
    return gojson.integer(raw, "uint8", 0, 255)


class HexBytes(ByteSlice):
    """CometBFT's HexBytes: bytes that are hex both in JSON and in a URI."""

    __slots__ = ()
    in_json: ClassVar = forms.HEX

    def from_json(self, raw: bytes) -> bytes:
        """Parse hex in double quotes."""
        # CometBFT: libs/bytes/bytes.go, HexBytes.UnmarshalJSON.
        if len(raw) < 2 or not _is_quoted(raw, b'"'):
            raise GoError(f"invalid hex string: {raw.decode('utf-8', 'replace')}")
        return hex_bytes(raw[1:-1])


@dataclass(frozen=True, slots=True)
class DocumentReader:
    """Parser of a parameter type that only the document has, not CometBFT."""

    kind: ParamField

    @property
    def in_uri(self) -> Json:
        """JSON Schema of the value in a URI."""
        return self.kind.in_uri

    @property
    def in_json(self) -> Json:
        """JSON Schema of the JSON value."""
        return self.kind.in_json

    def from_uri(self, text: str) -> Any:
        """Parse with the parameter type's own parser."""
        return self.kind.from_uri(text)

    def from_json(self, raw: bytes) -> Any:
        """Parse with the parameter type's own parser."""
        return self.kind.from_json(jsoncodec.decode(raw))


_HEX = HexBytes("bytes.HexBytes")

# CometBFT: rpc/core, types of the handlers' arguments.
READERS: Mapping[type[ParamField], Integer | Bool | String | StringSlice | ByteSlice] = {
    params.Int64: Integer("int64"),
    params.Int: Integer("int"),
    params.UInt64: Integer("uint", minimum=0, maximum=(1 << 64) - 1),
    params.Flag: Bool(),
    params.Text: String(),
    params.Texts: StringSlice(),
    params.Bytes: ByteSlice("types.Tx"),
    params.Hash: ByteSlice("[]uint8"),
    params.HexHash: _HEX,
    params.QueryData: _HEX,
}


def _reader(kind: ParamField) -> Reader:
    return READERS.get(type(kind)) or DocumentReader(kind)


def _members(raw: bytes, names: Sequence[str]) -> Mapping[str, bytes]:
    # CometBFT: rpc/jsonrpc/server/http_json_handler.go, jsonParamsToArgs.
    match gojson.kind_of(raw):
        case "object":
            found = jsoncodec.decode(raw, dict[str, jsoncodec.Raw])
            values = {name: bytes(value) for name, value in found.items()}
        case "array":
            values = _by_position(
                [bytes(value) for value in jsoncodec.decode(raw, list[jsoncodec.Raw])], names
            )
        case _:
            reason = gojson.mismatch(raw, "[]json.RawMessage")
            raise GoError(f"unknown type for JSON params: {reason}. Expected map or array")
    return {name: value for name, value in values.items() if value != _NULL}


def _by_position(values: list[bytes], names: Sequence[str]) -> dict[str, bytes]:
    if len(values) != len(names):
        # Go prints bytes as numbers, which takes up to four characters for each byte.
        is_long = sum(map(len, values)) > gojson.MAX_EXPLAINED
        each = (f"[{' '.join(map(str, value))}]" for value in values)
        shown = "..." if is_long else " ".join(each)
        raise GoError(
            f"expected {len(names)} parameters ([{' '.join(names)}]),"
            f" got {len(values)} ([{shown}])"
        )
    return dict(zip(names, values, strict=True))


def _describe_error(position: int, name: str, error: ValueError, value: Any) -> str:
    return str(error)


def _value_if_omitted(position: int, name: str, kind: ParamField) -> Any:
    # CometBFT: an omitted parameter is Go's zero value.
    if type(kind) not in READERS:
        raise ValueError(f"{name}: expected a value, got none")
    return READERS[type(kind)].zero


COMET_PARAMS = ParamRules(
    reader=_reader,
    members=_members,
    describe_error=_describe_error,
    value_if_omitted=_value_if_omitted,
    uri_texts="Write text in double quotes, or as hex with the prefix 0x",
    uri_prefix="error converting http params to arguments: ",
    json_prefix="error converting json params to arguments: ",
)
"""CometBFT's rules. If ``params`` are omitted, a CometBFT node panics; these rules read them
as empty."""
