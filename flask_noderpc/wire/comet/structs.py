"""Decoding of Go structs from JSON by CometBFT's libs/json, with its errors.

A struct is a table of readers by field name. A missing or null field is Go's zero value;
unknown names are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ... import jsoncodec
from ...domain.time import ZERO_TIME, from_text
from . import gojson
from .gojson import GoError

_NULL = b"null"

# CometBFT: types/vote_set.go, MaxVotesCount, which CometBFT checks later or not at all.
MAX_SLICE = 10_000


class Value(Protocol):
    """Reader of one value of a checked document."""

    @property
    def zero(self) -> Any:
        """Zero value, for a missing or null field."""

    def from_json(self, raw: bytes, /) -> Any:
        """Decode the value; raise :exc:`GoError`."""


@dataclass(frozen=True, slots=True)
class Small:
    """Integer of at most 32 bits, without quotes."""

    go_type: str
    minimum: int = -(1 << 31)
    maximum: int = (1 << 31) - 1
    zero: int = 0

    def from_json(self, raw: bytes) -> int:
        """A JSON number."""
        if gojson.kind_of(raw) != "number":
            raise gojson.mismatch(raw, self.go_type)
        return gojson.integer(raw, self.go_type, self.minimum, self.maximum)


class Time:
    """Time in UTC; Go's zero time if missing."""

    zero = ZERO_TIME

    def from_json(self, raw: bytes) -> int:
        """RFC 3339 that ends with Z."""
        # CometBFT: libs/json/decoder.go, decodeReflect.
        shown = gojson.quoted(raw.decode("utf-8", "replace"))
        if len(raw) < 2 or not raw[:1] == b'"' == raw[-1:]:
            raise GoError(f"JSON time must be an RFC3339 string, but got {shown}")
        if raw[-2:-1] != b"Z":
            raise GoError(f"JSON time must be UTC and end with 'Z', but got {shown}")
        try:
            return from_text(gojson.string(raw))
        except ValueError:
            # Go reports the invalid part.
            raise GoError(f"parsing time {raw.decode('utf-8', 'replace')}") from None


@dataclass(frozen=True, slots=True)
class Struct:
    """Struct; ``make`` is called with the values of its fields."""

    make: Callable[..., Any]
    fields: Mapping[str, tuple[str, Value]]
    """Keyword of ``make`` and reader, by JSON name."""

    @property
    def zero(self) -> Any:
        """Struct with zero fields."""
        return self.make(**{keyword: value.zero for keyword, value in self.fields.values()})

    def from_json(self, raw: bytes) -> Any:
        """A JSON object."""
        if gojson.kind_of(raw) != "object":
            raise gojson.mismatch(raw, "map[string]json.RawMessage")
        found = jsoncodec.decode(raw, dict[str, jsoncodec.Raw])
        return self.make(
            **{
                keyword: _value(value, bytes(found.get(name, _NULL)))
                for name, (keyword, value) in self.fields.items()
            }
        )


@dataclass(frozen=True, slots=True)
class Pointer:
    """A value that may be ``None``: Go's nil."""

    to: Value
    zero: None = None

    def from_json(self, raw: bytes) -> Any:
        """The value itself."""
        return self.to.from_json(raw)


@dataclass(frozen=True, slots=True)
class Slice:
    """A list."""

    of: Value
    zero: tuple[()] = ()

    def from_json(self, raw: bytes) -> tuple[Any, ...]:
        """A JSON array."""
        if gojson.kind_of(raw) != "array":
            raise gojson.mismatch(raw, "[]json.RawMessage")
        found = jsoncodec.decode(raw, list[jsoncodec.Raw])
        if len(found) > MAX_SLICE:
            # Limited: each element takes microseconds, and a body may contain many.
            raise GoError(f"a list has {len(found)} elements, at most {MAX_SLICE} are read")
        return tuple(_value(self.of, bytes(element)) for element in found)


@dataclass(frozen=True, slots=True)
class Interface:
    """A value behind the registered name of its type; ``None`` is Go's nil."""

    kinds: Mapping[str, Value]
    zero: None = None

    def from_json(self, raw: bytes) -> Any:
        """``{"type": NAME, "value": …}``."""
        # CometBFT: libs/json/decoder.go, decodeReflectInterface.
        if gojson.kind_of(raw) != "object":
            raise gojson.mismatch(raw, "json.interfaceWrapper")
        found = jsoncodec.decode(raw, dict[str, jsoncodec.Raw])
        name = self._name(bytes(found.get("type", _NULL)))
        if "value" not in found:
            raise GoError("interface value cannot be empty")
        if name not in self.kinds:
            raise GoError(f"unknown type {gojson.quoted(name)}")
        return _value(self.kinds[name], bytes(found["value"]))

    def _name(self, raw: bytes) -> str:
        kind = gojson.kind_of(raw)
        if kind not in ("string", "null"):
            where = "Go struct field interfaceWrapper.type of type string"
            raise GoError(f"json: cannot unmarshal {kind} into {where}")
        name = gojson.string(raw) if kind == "string" else ""
        if not name:
            raise GoError("interface type cannot be empty")
        return name


def _value(value: Value, raw: bytes) -> Any:
    return value.zero if raw == _NULL else value.from_json(raw)
