"""Marshmallow fields, one class per encoding.

``encode`` and ``decode`` convert one domain value to JSON and back. Marshmallow uses them to
load and to document. The compiled load functions of :mod:`.schema` call ``decode``; the source
of the compiled dump functions contains the expression of each encoding.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any, ClassVar

from marshmallow import ValidationError, fields, missing

from .. import jsoncodec
from ..domain.time import ZERO_TIME, from_text
from ..errors import short_repr
from ..source import Scope, function, inline

Json = Any
"""JSON value."""

NOT_DECODED = (ValueError, TypeError, AttributeError)
"""Exceptions that :meth:`WireField.decode` raises for a value of the wrong type."""

_MIN, _MAX = -(1 << 63), (1 << 64) - 1

_CURSOR = re.compile(r"([0-9A-F]{16})-([0-9A-F]{8})")
_INTEGER = re.compile(r"-?\d{1,20}", re.ASCII)


class WireField(fields.Field[Any]):
    """Field of one encoding.

    ``get`` is a function that returns the value from the object, for a value that is not a
    plain attribute. ``omit_empty`` omits zero, ``None`` and empty values, as Go's
    ``omitempty`` does; ``omit_none`` omits only ``None``. When an object is loaded, members
    with one of these options may be missing, and also members with ``may_be_missing``, which
    forks of CometBFT omit. A ``dump_only`` member is computed from other members and is not
    loaded.
    """

    _encoding: ClassVar[str]
    """Python expression that converts ``value`` to JSON, from which :meth:`encode` is
    compiled. It can use the names of :mod:`.source`. Classes without an expression define
    :meth:`encode`."""
    json_type = "string"
    json_format: str | None = None
    zero: Any = None
    """Value that is loaded for a missing or null member, Go's zero value."""

    def __init__(
        self,
        *,
        get: Callable[[Any], Any] | None = None,
        nullable: bool = False,
        omit_empty: bool = False,
        omit_none: bool = False,
        may_be_missing: bool = False,
        **options: Any,
    ) -> None:
        is_optional = omit_empty or omit_none or may_be_missing
        if is_optional:
            default = self.zero if omit_empty or may_be_missing else None
            options.setdefault("load_default", default)
        super().__init__(required=not is_optional, **options)
        self.get = get
        self.nullable = nullable
        self.omit_empty = omit_empty
        self.omit_none = omit_none

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if encoding := vars(cls).get("_encoding"):
            encode = function("self, value", [f"return {encoding}"], cls.__name__, Scope())
            cls.encode = encode  # type: ignore[method-assign]
            cls.encoded = lambda self, value, scope: inline(encoding, value)  # type: ignore[method-assign]
            return
        named = {"encode", "encoded"}
        nearest = next(each for each in cls.__mro__ if named & vars(each).keys())
        if "encoded" not in vars(nearest):
            # A subclass or a mixin that overrides ``encode`` must not use its parent's
            # expression.
            cls.encoded = WireField.encoded  # type: ignore[method-assign]

    def encode(self, value: Any) -> Json:
        """Return the value as JSON."""
        raise NotImplementedError

    def encoded(self, value: str, scope: Scope) -> str:
        """Return the source code that encodes the result of the expression ``value``, which is
        not ``None``."""
        return f"{scope.bind(self.encode)}({value})"

    def decode(self, value: Json) -> Any:
        """Decode a JSON value that is not null; raise :exc:`ValueError`, :exc:`TypeError` or
        :exc:`AttributeError` for a value of the wrong type."""
        raise NotImplementedError

    def decode_null(self) -> Any:
        """Return the value for null; raise :exc:`ValueError` if null is not allowed.

        Go: null sets a type without nil to its zero value.
        """
        if self.nullable:
            return None
        if not self.required:
            return self.load_default
        if self.zero is None:
            raise ValueError("is null")
        return self.zero

    def decode_missing(self) -> Any:
        """Return the value of a missing member; raise :exc:`ValueError` if it is required."""
        if self.required:
            raise ValueError("is missing")
        return self.load_default

    def compiled_decode(self) -> Callable[[Json], Any]:
        """Return :meth:`decode`, compiled together with the decoders of nested schemas."""
        return self.decode

    @property
    def may_be_null(self) -> bool:
        """True if the JSON may be null."""
        return self.nullable

    def described(self, refer: Callable[[Any], Json]) -> Json:
        """Return the field's JSON Schema; ``refer`` is a function that returns the reference
        to a nested schema."""
        found = self._described(refer)
        if not self.may_be_null or found.get("type") == "null":
            return found
        return {"anyOf": [found, {"type": "null"}]}

    def _described(self, refer: Callable[[Any], Json]) -> Json:
        found = {"type": self.json_type}
        return found | ({"format": self.json_format} if self.json_format else {})

    def replace_schemas(self, replace: Callable[[type], type]) -> WireField:
        """Return a copy with nested schemas replaced, or this field if nothing changes."""
        return self

    def get_value(self, obj: Any, attr: str, accessor: Any = None, default: Any = None) -> Any:
        """Return the value to encode: the result of ``get``, or the attribute."""
        value = self.get(obj) if self.get else super().get_value(obj, attr, accessor, default)
        is_omitted = (self.omit_empty and not value) or (self.omit_none and value is None)
        return missing if is_omitted else value

    def _serialize(self, value: Any, attr: str | None, obj: Any, **_: Any) -> Json:
        return None if value is None and self.nullable else self.encode(value)

    def deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        if value is not None:
            return super().deserialize(value, *args, **options)
        try:
            return self.decode_null()
        except ValueError as error:
            raise ValidationError(str(error)) from None

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> Any:
        try:
            return self.decode(value)
        except NOT_DECODED as error:
            raise ValidationError(str(error)) from None


def _integer(value: int) -> int:
    if not _MIN <= value <= _MAX:
        raise ValueError(f"expected an integer of 64 bits, got {short_repr(value)}")
    return value


class IntString(WireField):
    """Integer as decimal text, as CometBFT encodes all 64-bit integers."""

    _encoding = "str(value)"

    zero = 0

    def decode(self, value: Json) -> int:
        if not isinstance(value, str) or not _INTEGER.fullmatch(value):
            raise ValueError(f"expected an integer in a string, got {short_repr(value)}")
        return _integer(int(value))


class Cursor(WireField):
    """Cursor of an event: block height and position in the block, as text that sorts in the
    order of the events; empty for ``None``."""

    def encode(self, value: tuple[int, int] | None) -> Json:
        return "" if value is None else f"{value[0]:016X}-{value[1]:08X}"

    def decode(self, value: Json) -> tuple[int, int]:
        match = _CURSOR.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError(f"expected a cursor, got {short_repr(value)}")
        return int(match[1], 16), int(match[2], 16)


class GasString(IntString):
    """Integer as decimal text. Decoding accepts JSON numbers, which protobuf's JSON and Sei's
    nodes also use."""

    def decode(self, value: Json) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            return _integer(value)
        return super().decode(value)


class Number(WireField):
    """Integer as a JSON number."""

    _encoding = "int(value)"

    json_type = "integer"
    zero = 0

    def decode(self, value: Json) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"expected an integer, got {short_repr(value)}")
        return _integer(value)


class Text(WireField):
    """Plain text."""

    _encoding = "value"

    zero = ""

    def decode(self, value: Json) -> str:
        if not isinstance(value, str):
            raise ValueError(f"expected a string, got {short_repr(value)}")
        if not value.isascii():
            # Raise for half a surrogate pair, which is not valid text but which some JSON
            # decoders accept.
            value.encode()
        return value


class Utf8(WireField):
    """Bytes as UTF-8 text; each invalid byte becomes U+FFFD."""

    _encoding = "text_of(value)"

    zero = b""

    def decode(self, value: Json) -> bytes:
        if not isinstance(value, str):
            raise ValueError(f"expected a string, got {short_repr(value)}")
        return value.encode()


class Flag(WireField):
    """True or false."""

    _encoding = "value"

    json_type = "boolean"
    zero = False

    def decode(self, value: Json) -> bool:
        if not isinstance(value, bool):
            raise ValueError(f"expected true or false, got {short_repr(value)}")
        return value


class Hex(WireField):
    """Bytes as upper-case hex without a prefix; decoding accepts the prefix 0x."""

    _encoding = "value.hex().upper()"

    zero = b""

    def decode(self, value: Json) -> bytes:
        return bytes.fromhex(value.removeprefix("0x"))


class LowerHex(Hex):
    """Bytes as lower-case hex, as CometBFT encodes node IDs."""

    _encoding = "value.hex()"


class Base64(WireField):
    """Bytes as padded base64."""

    _encoding = "b2a_base64(value, newline=False).decode()"

    json_format = "byte"
    zero = b""

    def decode(self, value: Json) -> bytes:
        return base64.b64decode(value, validate=True)


class Base64OrNull(Base64):
    """Bytes as base64; null if empty, as Go's nil slice."""

    _encoding = "(b2a_base64(value, newline=False).decode() if value else None)"

    def __init__(self, **options: Any) -> None:
        super().__init__(nullable=True, **options)

    def decode_null(self) -> bytes:
        return b""


class Timestamp(WireField):
    """Nanoseconds as RFC 3339 text in UTC without trailing zeros."""

    _encoding = "to_text(value)"

    json_format = "date-time"
    zero = ZERO_TIME

    def decode(self, value: Json) -> int:
        return from_text(value)


class RawJSON(WireField):
    """JSON document that is copied byte for byte; an empty object if it is missing."""

    _encoding = 'Raw(value or b"{}")'

    json_type = "object"
    zero = b""

    def decode(self, value: Json) -> bytes:
        try:
            return jsoncodec.encode(value)
        except (RecursionError, OverflowError) as error:
            raise ValueError(f"can't be encoded: {error}") from None
