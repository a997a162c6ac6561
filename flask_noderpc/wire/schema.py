"""Marshmallow schemas of JSON objects, for loading, dumping and documentation.

A :class:`WireSchema` is a marshmallow schema whose fields come from :mod:`.fields`.
:func:`compiled` compiles it once to a function that dumps, and :func:`compiled_load` to a
function that loads; tests check that both have the same results as marshmallow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from marshmallow import EXCLUDE, Schema, ValidationError, post_load

from ..errors import ConfigurationError, DecodeError, short_repr
from ..jsoncodec import Raw, encode_each, opened
from ..source import Scope, attribute, function, or_null
from .fields import NOT_DECODED, Json, WireField

Dump = Callable[[Any], Json]
Load = Callable[[Json], Any]
Replace = Callable[[type], type]
"""Function that maps a schema to its replacement, or to itself."""


class WireSchema(Schema):
    """Schema of a JSON object.

    ``domain`` is called with the loaded members and returns the loaded value: it is a class,
    or a function that raises :exc:`ValueError` for members that contradict each other.
    """

    domain: ClassVar[Callable[..., Any] | None] = None
    large: ClassVar[Any] = None
    """Class of large lists of loaded values, whose method ``of`` takes an iterator; ``None``
    for tuples."""

    class Meta:
        unknown = EXCLUDE
        # Don't add the schemas to marshmallow's registry, which is global to the process: no
        # code looks up a schema by name.
        register = False

    @post_load
    def _make(self, values: dict[str, Any], **_: Any) -> Any:
        try:
            return type(self).domain_of(values)
        except ValueError as error:
            raise ValidationError(str(error)) from None

    @classmethod
    def domain_of(cls, members: dict[str, Any]) -> Any:
        """Return the value built from loaded members, or the members if the schema has no
        ``domain``."""
        make = cls.domain
        return members if make is None else make(**members)


@dataclass(frozen=True, slots=True)
class Choice:
    """Alternative schemas of one class of results, with the functions that select the schema
    of a value and of a JSON document."""

    schemas: tuple[type[WireSchema], ...]
    choose: Callable[[Any], type[WireSchema]]
    recognize: Callable[[Json], type[WireSchema]]

    def __call__(self, value: Any) -> type[WireSchema]:
        return self.choose(value)


class Nested(WireField):
    """A nested object."""

    json_type = "object"

    def __init__(
        self, schema: type[WireSchema], *, is_element: bool = False, **options: Any
    ) -> None:
        super().__init__(**options)
        self.schema = schema
        self._is_element = is_element

    def replace_schemas(self, replace: Replace) -> Nested:
        """Return a copy with its schema replaced, or this field if nothing changes."""
        schema = replace(self.schema)
        if schema is self.schema:
            return self
        other = copy(self)
        other.schema = schema
        return other

    @property
    def required_names(self) -> set[str]:
        """Names of the members that the JSON always has."""
        fields = _instance(self.schema).load_fields.items()
        return {field.data_key or name for name, field in fields if field.required}

    def encode(self, value: Any) -> Json:
        return compiled(self.schema)(value)

    def encoded(self, value: str, scope: Scope) -> str:
        return f"{scope.bind(compiled(self.schema))}({value})"

    def decode(self, value: Json) -> Any:
        return _instance(self.schema).load(value)

    def decode_null(self) -> Any:
        # Nodes never encode null in a list of objects.
        if self._is_element and not self.nullable:
            raise ValueError("is null")
        return _zero(self.schema) if self.required and not self.nullable else None

    def compiled_decode(self) -> Load:
        return compiled_load(self.schema)

    def _described(self, refer: Callable[[Any], Json]) -> Json:
        return refer(self.schema)

    def _serialize(self, value: Any, attr: str | None, obj: Any, **_: Any) -> Json:
        return None if value is None and self.nullable else _instance(self.schema).dump(value)


class OneOf(WireField):
    """Nested object with one schema for each class of value."""

    json_type = "object"

    def __init__(self, schemas: Mapping[type, type[WireSchema]], **options: Any) -> None:
        super().__init__(**options)
        self.nested = {kind: Nested(schema) for kind, schema in schemas.items()}

    def replace_schemas(self, replace: Replace) -> OneOf:
        """Return a copy with its schemas replaced, or this field if nothing changes."""
        nested = {kind: each.replace_schemas(replace) for kind, each in self.nested.items()}
        if nested == self.nested:
            return self
        other = copy(self)
        other.nested = nested
        return other

    def encode(self, value: Any) -> Json:
        return self.nested[type(value)].encode(value)

    def decode(self, value: Json) -> Any:
        return self._recognized(value).decode(value)

    def compiled_decode(self) -> Load:
        loads = {id(each): each.compiled_decode() for each in self.nested.values()}
        return lambda value: loads[id(self._recognized(value))](value)

    def decode_null(self) -> Any:
        raise ValueError("is null")

    def _recognized(self, value: Json) -> Nested:
        for each in self.nested.values():
            if each.required_names <= value.keys():
                return each
        raise ValueError("expected an object with the required members of one of its types")

    def _described(self, refer: Callable[[Any], Json]) -> Json:
        return {"anyOf": [refer(each.schema) for each in self.nested.values()]}

    def _serialize(self, value: Any, attr: str | None, obj: Any, **_: Any) -> Json:
        return self.nested[type(value)]._serialize(value, attr, obj)


class ListOf(WireField):
    """List of values of one encoding; with ``null_when_empty`` an empty list is null, as Go's
    nil slice."""

    json_type = "array"
    zero = ()

    def __init__(
        self,
        item: type[WireSchema] | WireField,
        *,
        null_when_empty: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._null_when_empty = null_when_empty
        self.item = item if isinstance(item, WireField) else Nested(item, is_element=True)

    def replace_schemas(self, replace: Replace) -> ListOf:
        """Return a copy with its item field replaced, or this field if nothing changes."""
        item = self.item.replace_schemas(replace)
        if item is self.item:
            return self
        other = copy(self)
        other.item = item
        return other

    @property
    def _large(self) -> Any:
        return self.item.schema.large if isinstance(self.item, Nested) else None

    def encode(self, value: Any) -> Json:
        if not value and self._null_when_empty:
            return None
        if type(value) is self._large:
            return encode_each(map(self.item.encode, value))
        return [
            None if item is None and self.item.nullable else self.item.encode(item)
            for item in value
        ]

    def encoded(self, value: str, scope: Scope) -> str:
        item, found = scope.variable(), scope.variable()
        each = _source(self.item, item, scope)
        if self._large is None and not self._null_when_empty:
            return f"[{each} for {item} in {value}]"
        listed = f"[{each} for {item} in {found}]"
        if self._large is not None:
            encode, large = scope.bind(self.encode), scope.bind(self._large)
            listed = f"({encode}({found}) if type({found}) is {large} else {listed})"
        empty = "None" if self._null_when_empty else "[]"
        return f"({listed} if ({found} := {value}) else {empty})"

    def decode(self, value: Json) -> Any:
        return tuple(self.item.deserialize(item) for item in _checked_list(value))

    def decode_null(self) -> Any:
        # Go: null is an empty slice, even if a node encodes its own empty slices differently.
        return None if self.nullable else ()

    def compiled_decode(self) -> Load:
        decode, collect = nullable_decode(self.item), getattr(self._large, "of", tuple)

        def load(value: Json) -> Any:
            found: list[Any] = []
            items = _checked_list(opened(value))
            if items and type(items[0]) is Raw:
                return collect(load_each(items))
            try:
                for item in items:
                    found.append(decode(item))  # noqa: PERF401  # len(found) locates an error
            except (DecodeError, *NOT_DECODED) as error:
                raise _located(error, str(len(found))) from None
            return tuple(found)

        def load_each(items: list[Raw]) -> Iterator[Any]:
            for position, item in enumerate(items):
                try:
                    yield decode(opened(item))
                except (DecodeError, *NOT_DECODED) as error:
                    raise _located(error, str(position)) from None

        return load

    @property
    def may_be_null(self) -> bool:
        return self.nullable or self._null_when_empty

    def _described(self, refer: Callable[[Any], Json]) -> Json:
        return {"type": "array", "items": self.item.described(refer)}

    def _serialize(self, value: Any, attr: str | None, obj: Any, **_: Any) -> Json:
        if value is None and self.nullable:
            return None
        if not value and self._null_when_empty:
            return None
        return [self.item._serialize(item, attr, obj) for item in value]


def _source(field: WireField, value: str, scope: Scope) -> str:
    """Return the source code that encodes an expression; ``None`` in a nullable field becomes
    null."""
    if not field.nullable:
        return field.encoded(value, scope)
    return or_null(lambda name: field.encoded(name, scope), value, scope)


def nullable_decode(field: WireField) -> Load:
    """Return the field's compiled ``decode``, which also decodes null."""
    decode = field.compiled_decode()
    return lambda value: field.decode_null() if value is None else decode(value)


def _checked_list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, got {short_repr(value)}")
    return value


def _located(error: Exception, step: str) -> DecodeError:
    if isinstance(error, DecodeError):
        return DecodeError(error.reason, (step, *error.path))
    return DecodeError(str(error), (step,))


@cache
def _instance(schema: type[WireSchema]) -> WireSchema:
    # Cache the instance: instantiating a schema copies all its fields, and many schemas share
    # the same nested schemas.
    return schema()


def _fields(
    schema: type[WireSchema], fields: Mapping[str, Any]
) -> Iterator[tuple[str, WireField]]:
    for name, field in fields.items():
        if not isinstance(field, WireField):
            raise ConfigurationError(
                f"{schema.__name__}.{name}: expected a field of flask_noderpc.wire.fields, or a"
                f" class of your own that derives from WireField, got {type(field).__name__}"
            )
        yield name, field


@cache
def compiled(schema: type[WireSchema]) -> Dump:
    """Return a function that dumps an object exactly as ``schema().dump`` does."""
    scope = Scope()
    lines = ["members = {}"]
    for name, field in _fields(schema, _instance(schema).dump_fields):
        value = attribute(field.attribute or name, field.get, scope)
        lines += _member(field, field.data_key or name, value, scope)
    return function("value", [*lines, "return members"], schema.__name__, scope)


def _member(field: WireField, key: str, value: str, scope: Scope) -> list[str]:
    """Return the source lines that add a member to the JSON object, or omit it if it is
    empty."""
    if not (field.omit_empty or field.omit_none):
        return [f"members[{key!r}] = {_source(field, value, scope)}"]
    found = scope.variable()
    condition = found if field.omit_empty else f"{found} is not None"
    encoded = _source(field, found, scope)
    return [f"{found} = {value}", f"if {condition}: members[{key!r}] = {encoded}"]


def _zero(schema: type[WireSchema]) -> Any:
    """Return the object that Go decodes from null: all members have their zero values. Raise
    :exc:`ValueError` if a member has none."""
    fields = _fields(schema, _instance(schema).load_fields)
    return schema.domain_of(
        {field.attribute or name: field.decode_null() for name, field in fields}
    )


@cache
def compiled_load(schema: type[WireSchema]) -> Load:
    """Return a function that loads an object exactly as ``schema().load`` does.

    It raises :exc:`~flask_noderpc.errors.DecodeError` at the first member that can't be
    decoded.
    """
    rows = []
    for name, field in _fields(schema, _instance(schema).load_fields):
        member = (field.attribute or name, nullable_decode(field), field.decode_missing)
        rows.append((field.data_key or name, *member))

    def load(value: Json) -> Any:
        if not isinstance(value, dict):
            raise DecodeError(f"expected an object, got {short_repr(value)}")
        members: dict[str, Any] = {}
        key = ""
        try:
            for key, name, decode, decode_missing in rows:
                members[name] = decode(value[key]) if key in value else decode_missing()
        except (DecodeError, *NOT_DECODED) as error:
            raise _located(error, key) from None
        try:
            return schema.domain_of(members)
        except ValueError as error:
            raise DecodeError(str(error)) from None

    return load
