"""Parameters of a route: declared as a dataclass, parsed from a query string or from JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_type_hints
from urllib.parse import parse_qsl, unquote_to_bytes

from ..errors import ConfigurationError, InvalidParams
from ..wire.dialect import ParamRules
from ..wire.params import Bytes, Flag, Int64, ParamField, Text, Texts

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def values_of(query: bytes) -> Mapping[str, str]:
    """Return the values in a query string by name, the first one of a repeated name; raise
    :exc:`~flask_noderpc.errors.InvalidParams` if it is not UTF-8."""
    check_text("query string", query)
    return dict(reversed(parse_qsl(query.decode(), keep_blank_values=True)))


def check_text(what: str, escaped: bytes) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidParams` if URL-encoded text is not UTF-8;
    ``what`` names it in the error."""
    if escaped.isascii() and b"%" not in escaped:
        return
    # Refuse escapes of other bytes, which Werkzeug would leave unchanged: a transaction would
    # then have different bytes.
    if not (is_utf8(escaped) and is_utf8(unquote_to_bytes(escaped))):
        raise not_utf8(what)


def not_utf8(what: str) -> InvalidParams:
    """Return the error for bytes that are not UTF-8."""
    return InvalidParams(f"{what}: expected UTF-8; write other bytes as hex after 0x")


def is_utf8(text: bytes) -> bool:
    """Return true if the bytes are UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Params:
    """Base class of parameters; the order of fields is the order of positional parameters."""


P = TypeVar("P", bound="DataclassInstance")

DOCUMENT_RULES = ParamRules()


def param(
    kind: ParamField, *, doc: str, default: Any = MISSING, wire: str | None = None
) -> Any:
    """Return the dataclass field of a parameter; it is required if it has no default.

    ``wire`` is its name in requests if that differs from the field's.
    """
    return field(default=default, metadata={"kind": kind, "doc": doc, "wire": wire})


@dataclass(frozen=True, slots=True)
class NoParams(Params):
    """Parameters of a route that has none."""


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """Description of one parameter; ``wire`` is its name in requests."""

    name: str
    wire: str
    kind: ParamField
    required: bool
    default: Any
    doc: str


# Kinds of fields that are not declared with param(), by their annotation.
_KINDS: Mapping[Any, ParamField] = {
    str: Text(),
    int: Int64(),
    bool: Flag(),
    bytes: Bytes(),
    tuple[str, ...]: Texts(),
}


def specs(params: type[DataclassInstance]) -> tuple[ParamSpec, ...]:
    """Return the parameters of a dataclass, in positional order.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a field whose annotation is not
    supported.
    """
    return tuple(_spec(params, row) for row in fields(params))


def _spec(params: type[DataclassInstance], row: Field[Any]) -> ParamSpec:
    default = row.default
    if row.default_factory is not MISSING:
        default = row.default_factory()
    return ParamSpec(
        name=row.name,
        wire=row.metadata.get("wire") or row.name,
        kind=row.metadata.get("kind") or _kind_of(params, row.name),
        required=default is MISSING,
        default=None if default is MISSING else default,
        doc=row.metadata.get("doc", ""),
    )


def _kind_of(params: type[DataclassInstance], name: str) -> ParamField:
    try:
        hint = get_type_hints(params)[name]
    except NameError as error:
        raise ConfigurationError(f"{params.__name__}.{name}: {error}") from None
    # Accept a type, or a union of the type and None.
    others = [one for one in get_args(hint) if one is not NoneType]
    if NoneType in get_args(hint) and len(others) == 1:
        hint = others[0]
    if hint not in _KINDS:
        raise ConfigurationError(
            f"{params.__name__}.{name}: expected the annotation str, int, bool, bytes or"
            f" tuple[str, ...], got {hint}; use one of these, or declare the field with"
            " flask_noderpc.param()"
        )
    return _KINDS[hint]


class ParamLoader(Generic[P]):
    """Parser of a route's parameters; each error is an :exc:`InvalidParams` that names the
    parameter.

    Empty and null values count as omitted, as in CometBFT. Unknown names are ignored.
    ``ignored`` are names of further parameters without effect; in an array they come last.
    """

    def __init__(
        self,
        params: type[P],
        rules: ParamRules = DOCUMENT_RULES,
        ignored: tuple[str, ...] = (),
    ) -> None:
        self._params = params
        self._rules = rules
        self._ignored = ignored

    def __getattr__(self, name: str) -> Any:
        """Return an attribute that is computed at the first call: most of the routes of a mount
        are never called, and the dataclasses of their parameters are then not generated."""
        if name not in ("specs", "_names", "_readers"):
            raise AttributeError(name)
        self.specs: tuple[ParamSpec, ...] = specs(self._params)
        self._names = (*(spec.wire for spec in self.specs), *self._ignored)
        self._readers = tuple(
            (position, spec, self._rules.reader(spec.kind))
            for position, spec in enumerate(self.specs)
        )
        return vars(self)[name]

    def from_uri(self, values: Mapping[str, str]) -> P:
        """Return the parameters from the values of a URI by name."""
        prefix = self._rules.uri_prefix
        given = {}
        for position, spec, reader in self._readers:
            text = values.get(spec.wire, "")
            if text not in ("", "null"):
                given[spec.name] = self._read(position, spec, reader.from_uri, text, prefix)
        return self._build(given, prefix)

    def from_query(self, query: bytes) -> P:
        """Return the parameters from an encoded query string."""
        return self.from_uri(values_of(query))

    def from_json(self, raw: bytes) -> P:
        """Return the parameters from JSON: an object, an array, null, or an empty string."""
        prefix = self._rules.json_prefix
        values = self._members(raw) if raw and raw != b"null" else {}
        given = {
            spec.name: self._read(position, spec, reader.from_json, values[spec.wire], prefix)
            for position, spec, reader in self._readers
            if spec.wire in values
        }
        return self._build(given, prefix)

    def _members(self, raw: bytes) -> Mapping[str, Any]:
        try:
            return self._rules.members(raw, self._names)
        except ValueError as error:
            raise InvalidParams(f"{self._rules.json_prefix}{error}") from None

    def _read(
        self,
        position: int,
        spec: ParamSpec,
        read: Callable[[Any], Any],
        value: Any,
        prefix: str,
    ) -> Any:
        try:
            return read(value)
        except ValueError as error:
            text = self._rules.describe_error(position, spec.wire, error, value)
            raise InvalidParams(prefix + text) from None

    def _build(self, given: dict[str, Any], prefix: str) -> P:
        try:
            for position, spec in enumerate(self.specs):
                if spec.required and spec.name not in given:
                    given[spec.name] = self._rules.value_if_omitted(
                        position, spec.wire, spec.kind
                    )
        except ValueError as error:
            raise InvalidParams(f"{prefix}{error}") from None
        return self._params(**given)


# Maximum bytes of cached parameters, as longer ones are seldom sent twice, and maximum number;
# they take at most 2 MB per dispatcher.
_MAX_MEMOIZED_BYTES, _MAX_MEMOIZED = 512, 1_024


class MemoizedLoader:
    """LRU cache of parsed parameters by their text."""

    def __init__(self) -> None:
        self._cached = lru_cache(_MAX_MEMOIZED)(lambda read, raw: read(raw))

    def reader(self, read: Callable[[bytes], P]) -> Callable[[bytes], P]:
        """Return ``read`` with a cache for short texts."""
        cached = self._cached
        return lambda raw: cached(read, raw) if len(raw) <= _MAX_MEMOIZED_BYTES else read(raw)
