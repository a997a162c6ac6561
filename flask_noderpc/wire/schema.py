"""Marshmallow schemas of JSON objects, for loading, dumping and documentation.

A :class:`WireSchema` is a marshmallow schema whose fields are those of :mod:`.fields`.
:func:`compiled` turns it into closures that dump, once, and :func:`compiled_load` into
closures that load; tests check that both give the same result as marshmallow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar

from marshmallow import EXCLUDE, Schema, ValidationError, post_load

from ..errors import DecodeError, short_repr
from .fields import NOT_DECODED, Json, WireField

Dump = Callable[[Any], Json]
Load = Callable[[Json], Any]
Replace = Callable[[type], type]
"""Map a schema to its replacement, or to itself."""


class WireSchema(Schema):
    """A JSON object.

    ``domain`` makes the value that loading returns of the loaded members: a class, or a
    function that raises :exc:`ValueError` for members that don't fit each other.
    """

    domain: ClassVar[Callable[..., Any] | None] = None

    class Meta:
        unknown = EXCLUDE
        # Marshmallow's registry is global to the process, and no schema is looked up by name.
        register = False

    @post_load
    def _make(self, values: dict[str, Any], **_: Any) -> Any:
        try:
            return type(self).domain_of(values)
        except ValueError as error:
            raise ValidationError(str(error)) from None

    @classmethod
    def domain_of(cls, members: dict[str, Any]) -> Any:
        """Return the value of loaded members; the members themselves without a domain."""
        make = cls.domain
        return members if make is None else make(**members)


@dataclass(frozen=True, slots=True)
class Choice:
    """Several schemas of one kind of result, and the functions that select one by value and
    by JSON."""

    shapes: tuple[type[WireSchema], ...]
    choose: Callable[[Any], type[WireSchema]]
    recognize: Callable[[Json], type[WireSchema]]

    def __call__(self, value: Any) -> type[WireSchema]:
        return self.choose(value)


class Nested(WireField):
    """A nested object."""

    json_type = "object"

    def __init__(self, schema: type[WireSchema], **options: Any) -> None:
        super().__init__(**options)
        self._set_schema(schema)

    def _set_schema(self, schema: type[WireSchema]) -> None:
        self.schema = schema
        self._dump = compiled(schema)

    def replace_schemas(self, replace: Replace) -> Nested:
        """Return a copy with its schema replaced, or this field if nothing changes."""
        schema = replace(self.schema)
        if schema is self.schema:
            return self
        other = copy(self)
        other._set_schema(schema)
        return other

    @property
    def required_names(self) -> set[str]:
        """Names of the members that are always in the JSON."""
        fields = _instance(self.schema).load_fields.items()
        return {field.data_key or name for name, field in fields if field.required}

    def encode(self, value: Any) -> Json:
        return self._dump(value)

    def decode(self, value: Json) -> Any:
        return _instance(self.schema).load(value)

    def compiled_decode(self) -> Load:
        return compiled_load(self.schema)

    def _described(self, refer: Callable[[Any], Json]) -> Json:
        return refer(self.schema)

    def _serialize(self, value: Any, attr: str | None, obj: Any, **_: Any) -> Json:
        return None if value is None and self.nullable else _instance(self.schema).dump(value)


class OneOf(WireField):
    """Nested object with one schema per class of value."""

    json_type = "object"

    def __init__(self, schemas: Mapping[type, type[WireSchema]], **options: Any) -> None:
        super().__init__(**options)
        self.shapes = {kind: Nested(schema) for kind, schema in schemas.items()}

    def replace_schemas(self, replace: Replace) -> OneOf:
        """Return a copy with its schemas replaced, or this field if nothing changes."""
        shapes = {kind: shape.replace_schemas(replace) for kind, shape in self.shapes.items()}
        if shapes == self.shapes:
            return self
        other = copy(self)
        other.shapes = shapes
        return other

    def encode(self, value: Any) -> Json:
        return self.shapes[type(value)].encode(value)

    def decode(self, value: Json) -> Any:
        return self._recognized(value).decode(value)

    def compiled_decode(self) -> Load:
        loads = {id(shape): shape.compiled_decode() for shape in self.shapes.values()}
        return lambda value: loads[id(self._recognized(value))](value)

    def _recognized(self, value: Json) -> Nested:
        for shape in self.shapes.values():
            if shape.required_names <= value.keys():
                return shape
        raise ValueError("has the required members of no kind")

    def _described(self, refer: Callable[[Any], Json]) -> Json:
        return {"anyOf": [refer(shape.schema) for shape in self.shapes.values()]}

    def _serialize(self, value: Any, attr: str | None, obj: Any, **_: Any) -> Json:
        return self.shapes[type(value)]._serialize(value, attr, obj)


class ListOf(WireField):
    """List of values of one encoding; ``null_when_empty`` encodes Go's nil slice."""

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
        self._set_item(item if isinstance(item, WireField) else Nested(item))

    def _set_item(self, item: WireField) -> None:
        self.item = item
        self._encode_item = nullable_encode(item)

    def replace_schemas(self, replace: Replace) -> ListOf:
        """Return a copy with its item replaced, or this field if nothing changes."""
        item = self.item.replace_schemas(replace)
        if item is self.item:
            return self
        other = copy(self)
        other._set_item(item)
        return other

    def encode(self, value: Any) -> Json:
        if not value and self._null_when_empty:
            return None
        encode = self._encode_item
        return [encode(item) for item in value]

    def decode(self, value: Json) -> Any:
        return tuple(self.item.deserialize(item) for item in _checked_list(value))

    def decode_null(self) -> Any:
        # Go: null is an empty slice, whichever way a node encodes its own.
        return None if self.nullable else ()

    def compiled_decode(self) -> Load:
        decode = nullable_decode(self.item)

        def load(value: Json) -> tuple[Any, ...]:
            found: list[Any] = []
            items = _checked_list(value)
            try:
                for item in items:
                    found.append(decode(item))  # noqa: PERF401  # its length is the place
            except (DecodeError, *NOT_DECODED) as error:
                raise _located(error, str(len(found))) from None
            return tuple(found)

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


def nullable_encode(field: WireField) -> Dump:
    """Return the field's ``encode``; ``None`` becomes null if the field is nullable."""
    encode = field.encode
    if not field.nullable:
        return encode
    return lambda value: None if value is None else encode(value)


def nullable_decode(field: WireField) -> Load:
    """Return the field's compiled ``decode`` with its value of null."""
    decode = field.compiled_decode()
    return lambda value: field.decode_null() if value is None else decode(value)


def _checked_list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise ValueError(f"{short_repr(value)} is no list")
    return value


def _located(error: Exception, place: str) -> DecodeError:
    if isinstance(error, DecodeError):
        return DecodeError(error.reason, (place, *error.path))
    return DecodeError(str(error), (place,))


@cache
def _instance(schema: type[WireSchema]) -> WireSchema:
    # Instantiating a schema copies all its fields, and many schemas share the nested ones.
    return schema()


@cache
def compiled(schema: type[WireSchema]) -> Dump:
    """Return a function that dumps an object exactly as ``schema().dump`` does."""
    rows: list[tuple[str, Callable[[Any], Any], Dump]] = []
    optional: dict[str, Callable[[Any], bool]] = {}
    for name, field in _instance(schema).dump_fields.items():
        assert isinstance(field, WireField), f"{schema.__name__}.{name} is no WireField"
        get = field.get or attrgetter(field.attribute or name)
        key = field.data_key or name
        rows.append((key, get, nullable_encode(field)))
        if field.omit_empty or field.omit_none:
            optional[key] = field.omits

    def dump(value: Any) -> Json:
        return {key: encode(get(value)) for key, get, encode in rows}

    def dump_without_omitted(value: Any) -> Json:
        members = {}
        for key, get, encode in rows:
            item = get(value)
            if key not in optional or not optional[key](item):
                members[key] = encode(item)
        return members

    return dump_without_omitted if optional else dump


@cache
def compiled_load(schema: type[WireSchema]) -> Load:
    """Return a function that loads an object exactly as ``schema().load`` does; it raises
    :exc:`~flask_noderpc.errors.DecodeError` at the first member that can't be decoded."""
    rows = []
    for name, field in _instance(schema).load_fields.items():
        assert isinstance(field, WireField), f"{schema.__name__}.{name} is no WireField"
        member = (field.attribute or name, nullable_decode(field), field.decode_missing)
        rows.append((field.data_key or name, *member))

    def load(value: Json) -> Any:
        if not isinstance(value, dict):
            raise DecodeError(f"{short_repr(value)} is no object")
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
