"""Parameter types and their parsers for URI values and JSON.

The parsers are for the dialect ``document``, and accept every unambiguous way to write a
value. A stricter dialect replaces the parser of each type.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from marshmallow import ValidationError, fields

from .. import jsoncodec
from ..domain.time import SECOND
from ..jsoncodec import text_of
from . import fields as wire
from . import json_schema as forms
from .fields import Json

_DIGITS = re.compile(r"-?(0|[1-9]\d*)", re.ASCII)
_HASH_HEX = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_MAX_INTEGER_TEXT = 40
_DURATION = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)(|ms|s|m)", re.ASCII)
_FLAGS = {"true": True, "false": False}
_UNITS = {"": 1 / SECOND, "ms": 1e-3, "s": 1.0, "m": 60.0}


class ParamField(fields.Field[Any]):
    """Parameter type with two parsers, which raise :exc:`ValueError`."""

    json_type = "string"
    expected = "a value"
    """Words for a valid value, which error texts show after "expected"."""

    @property
    def in_json(self) -> Json:
        """JSON Schema of the values that :meth:`from_json` accepts."""
        return {} if self.json_type == "any" else {"type": self.json_type}

    @property
    def in_uri(self) -> Json:
        """JSON Schema of the value in a URI; arrays and objects are JSON text."""
        return self.in_json

    def from_json(self, value: Any) -> Any:
        """Parse a JSON parameter."""
        raise NotImplementedError

    def from_uri(self, text: str) -> Any:
        """Parse a URI parameter."""
        raise NotImplementedError

    def type_error(self) -> ValueError:
        """Return the error for a value of the wrong type."""
        return ValueError(f"expected {self.expected}")

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> Any:
        try:
            return self.from_json(value)
        except ValueError as error:
            raise ValidationError(str(error)) from None


class Int64(ParamField):
    """Integer of 64 bits, as digits or as digits in quotes."""

    json_type = "integer"
    expected = "a 64-bit integer"
    minimum = -(1 << 63)
    maximum = (1 << 63) - 1

    @property
    def in_json(self) -> Json:
        return forms.DIGITS | self.in_uri | {"type": ["integer", "string"]}

    @property
    def in_uri(self) -> Json:
        return forms.integer(self.minimum, self.maximum)

    def from_json(self, value: Any) -> int:
        if isinstance(value, str):
            value = self._parsed(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.type_error()
        if not self.minimum <= value <= self.maximum:
            raise ValueError(f"expected {self.expected} from {self.minimum} to {self.maximum}")
        return value

    def from_uri(self, text: str) -> int:
        if len(text) > 2 and text[0] == text[-1] == '"':
            text = text[1:-1]
        return self.from_json(text)

    def _parsed(self, text: str) -> int:
        if len(text) > _MAX_INTEGER_TEXT or not _DIGITS.fullmatch(text):
            raise self.type_error()
        return int(text)


class Int(Int64):
    """Go's ``int``, which differs from int64 only in the error texts of some dialects."""


class UInt64(Int64):
    """Integer that is not negative."""

    expected = "a whole number"
    minimum = 0


class Flag(ParamField):
    """``true`` or ``false``."""

    json_type = "boolean"
    in_json = forms.FLAG
    in_uri = forms.typed("boolean")
    expected = "true or false"

    def from_json(self, value: Any) -> bool:
        value = _FLAGS.get(value) if isinstance(value, str) else value
        if not isinstance(value, bool):
            raise self.type_error()
        return value

    def from_uri(self, text: str) -> bool:
        return self.from_json(_quoted(text, self) if text[:1] == '"' else text)


class Text(ParamField):
    """Text; in a URI plain, in double quotes, or as hex of its UTF-8 with the prefix 0x."""

    expected = "a text with both double quotes or none"
    in_uri = forms.TEXT

    def from_json(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("expected a string")
        return value

    def from_uri(self, text: str) -> str:
        if text[:2] in ("0x", "0X"):
            return text_of(_hex(text[2:]))
        return _quoted(text, self) if text[:1] == '"' else text


class Texts(ParamField):
    """List of texts; in a URI as JSON."""

    json_type = "array"
    in_json = in_uri = forms.TEXTS
    expected = 'a list of texts, such as ["a","b"]'

    def from_json(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.type_error()
        return tuple(value)

    def from_uri(self, text: str) -> tuple[str, ...]:
        try:
            return self.from_json(jsoncodec.decode(text))
        except jsoncodec.NotJSON:
            raise self.type_error() from None


class Filter(Text):
    """Filter of ``events``: an object with the member ``query``; a URI may also contain only
    the text of the query."""

    json_type = "object"
    in_json = in_uri = forms.FILTER
    expected = 'an object with a query, such as {"query":"tm.event=\'Tx\'"}'

    def from_json(self, value: Any) -> str:
        query = value.get("query", "") if isinstance(value, dict) else value
        if not isinstance(query, str):
            raise self.type_error()
        return query

    def from_uri(self, text: str) -> str:
        if text[:1] not in ("{", '"'):
            return text
        try:
            return self.from_json(jsoncodec.decode(text))
        except jsoncodec.NotJSON:
            raise self.type_error() from None


class Cursor(ParamField):
    """Cursor of an event, as the method ``events`` returns it; the empty text, which it
    returns for an empty chain, is parsed as ``None``. In a URI the double quotes are
    optional."""

    expected = "a cursor from an earlier response of this method"
    in_json = in_uri = forms.CURSOR
    _form = wire.Cursor()

    def from_json(self, value: Any) -> tuple[int, int] | None:
        if value == "":
            return None
        try:
            found: tuple[int, int] = self._form.decode(value)
        except ValueError:
            raise self.type_error() from None
        return found

    def from_uri(self, text: str) -> tuple[int, int] | None:
        return self.from_json(text.strip('"'))


class Duration(ParamField):
    """Duration: nanoseconds, as Go encodes it in JSON, or a text such as ``1.5s``."""

    in_json = forms.NANOSECONDS_OR_DURATION
    in_uri = forms.DURATION
    expected = 'nanoseconds, or a text such as "5s" or "500ms"'

    def from_json(self, value: Any) -> float:
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise self.type_error()
        return float(match[1]) * _UNITS[match[2]]

    def from_uri(self, text: str) -> float:
        return self.from_json(text.strip('"'))


class Bytes(ParamField):
    """Bytes: in a URI hex with the prefix 0x, or text with or without quotes; in JSON
    base64."""

    expected = "hex with the prefix 0x, or a text with both double quotes or none"
    in_json = forms.BASE64
    in_uri = forms.TEXT

    def from_json(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise ValueError("expected base64")
        return _base64(value)

    def from_uri(self, text: str) -> bytes:
        if text[:2] in ("0x", "0X"):
            return _hex(text[2:])
        bare = _quoted(text, self) if text[:1] == '"' else text
        return bare.encode("utf-8", "replace")


class Hash(Bytes):
    """Hash: bytes, 64 hex digits without a prefix, or base64 of 32 bytes.

    CometBFT decodes 64 hex digits in JSON as base64, which no client intends.
    """

    expected = "a hash as hex with the prefix 0x, as 64 hex digits, or as base64"
    in_json = forms.HASH
    in_uri = forms.HASH_IN_URI

    def from_json(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise self.type_error()
        if self._is_prefixed(value):
            return _hex(value[2:])
        if _HASH_HEX.fullmatch(value):
            return bytes.fromhex(value)
        return _base64(value)

    def from_uri(self, text: str) -> bytes:
        bare = text[1:-1] if len(text) > 2 and text[0] == text[-1] == '"' else text
        if _HASH_HEX.fullmatch(bare):
            return bytes.fromhex(bare)
        if text[:1] != '"' and not self._is_prefixed(text):
            return self._bare_base64(text)
        return super().from_uri(text)

    def _is_prefixed(self, text: str) -> bool:
        # One base64 hash in 2,048 begins with 0x or 0X, and ends with =, as the base64 of 32
        # bytes does.
        return text[:2] in ("0x", "0X") and text[-1] != "="

    def _bare_base64(self, text: str) -> bytes:
        # Accepted for 32 bytes only: a shorter bare word is a mistake, not base64.
        found = _base64(text) if len(text) == 44 else b""
        if len(found) != 32:
            raise self.type_error()
        return found


class HexHash(Hash):
    """Hash that stricter dialects accept only as hex."""


class QueryData(Bytes):
    """Data of an application query: in JSON hex, or text if it is not hex."""

    in_json = forms.typed("string")

    def from_json(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise ValueError("expected hex or a string")
        try:
            return _hex(value[2:] if value[:2] in ("0x", "0X") else value)
        except ValueError:
            return value.encode("utf-8", "replace")


def _hex(digits: str) -> bytes:
    try:
        return binascii.unhexlify(digits)
    except ValueError:
        raise ValueError("expected an even number of hex digits after 0x") from None


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError("expected base64 with padding") from None


def _quoted(text: str, field: ParamField) -> str:
    try:
        value = jsoncodec.decode(text)
    except jsoncodec.NotJSON:
        value = None
    if not isinstance(value, str):
        raise field.type_error()
    return value
