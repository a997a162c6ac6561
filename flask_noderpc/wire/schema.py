"""Marshmallow schemas of JSON objects, for loading, dumping and documentation.

A :class:`WireSchema` is a marshmallow schema whose fields are those of :mod:`.fields`.
Loading goes through marshmallow. Dumping goes through :func:`compiled`, which turns the
schema into closures once; tests check that both give the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar

from marshmallow import EXCLUDE, Schema, post_load
from marshmallow.utils import is_collection

from ..errors import short_repr
from .fields import Json, WireField

Dump = Callable[[Any], Json]
Replace = Callable[[type], type]
"""Map a schema to its replacement, or to itself."""


class WireSchema(Schema):
    """A JSON object; ``domain`` is the class that loading makes."""

    domain: ClassVar[Callable[..., Any] | None] = None

    class Meta:
        unknown = EXCLUDE
        # Marshmallow's registry is global to the process, and no schema is looked up by name.
        register = False

    @post_load
    def _make(self, values: dict[str, Any], **_: Any) -> Any:
        return self.domain(**values) if self.domain else values


@dataclass(frozen=True, slots=True)
class Choice:
    """Several schemas of one kind of result, and the function that selects one by value."""

    shapes: tuple[type[WireSchema], ...]
    choose: Callable[[Any], type[WireSchema]]

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
    def names(self) -> set[str]:
        """Names of the members in JSON."""
        fields = _instance(self.schema).fields.items()
        return {field.data_key or name for name, field in fields}

    def encode(self, value: Any) -> Json:
        return self._dump(value)

    def decode(self, value: Json) -> Any:
        return _instance(self.schema).load(value)

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
        for shape in self.shapes.values():
            if value.keys() <= shape.names:
                return shape.decode(value)
        raise ValueError("no kind has all these members")

    def _described(self, refer: Callable[[Any], Json]) -> Json:
        return {"anyOf": [refer(shape.schema) for shape in self.shapes.values()]}

    def _serialize(self, value: Any, attr: str | None, obj: Any, **_: Any) -> Json:
        return self.shapes[type(value)]._serialize(value, attr, obj)


class ListOf(WireField):
    """List of values of one encoding; ``null_when_empty`` encodes Go's nil slice."""

    json_type = "array"

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
        if not is_collection(value):
            raise ValueError(f"{short_repr(value)} is no list")
        return tuple(self.item.deserialize(item) for item in value)

    @property
    def may_be_null(self) -> bool:
        return self.nullable or self._null_when_empty

    def _described(self, refer: Callable[[Any], Json]) -> Json:
        return {"type": "array", "items": self.item.described(refer)}

    def deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        if value is None and self._null_when_empty:
            return ()
        return super().deserialize(value, *args, **options)

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
