"""Schemas: the one definition of a shape, for loading, dumping and documentation.

A :class:`WireSchema` is a marshmallow schema whose fields are those of :mod:`.fields`.
Loading goes through marshmallow. Dumping goes through :func:`compiled`, which turns the
schema into closures once; tests hold both to the same result.
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
"""A schema, or the one that stands in its place."""


class WireSchema(Schema):
    """A JSON object; ``domain`` is the class that loading makes."""

    domain: ClassVar[Callable[..., Any] | None] = None

    class Meta:
        unknown = EXCLUDE
        # Marshmallow's registry is global to the process, and we look nothing up by name.
        register = False

    @post_load
    def _make(self, values: dict[str, Any], **_: Any) -> Any:
        return self.domain(**values) if self.domain else values


@dataclass(frozen=True, slots=True)
class Choice:
    """Several schemas of one kind of result, and which of them is that of a value."""

    shapes: tuple[type[WireSchema], ...]
    choose: Callable[[Any], type[WireSchema]]

    def __call__(self, value: Any) -> type[WireSchema]:
        return self.choose(value)


class Shape(WireField):
    """A nested object."""

    json_type = "object"

    def __init__(self, schema: type[WireSchema], **options: Any) -> None:
        super().__init__(**options)
        self._hold(schema)

    def _hold(self, schema: type[WireSchema]) -> None:
        self.schema = schema
        self._dump = compiled(schema)

    def rebuilt(self, replace: Replace) -> Shape:
        """This field, holding what its schema is replaced with."""
        schema = replace(self.schema)
        if schema is self.schema:
            return self
        other = copy(self)
        other._hold(schema)
        return other

    @property
    def names(self) -> set[str]:
        """The names that members have."""
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
    """A nested object whose kind chooses its shape."""

    json_type = "object"

    def __init__(self, schemas: Mapping[type, type[WireSchema]], **options: Any) -> None:
        super().__init__(**options)
        self.shapes = {kind: Shape(schema) for kind, schema in schemas.items()}

    def rebuilt(self, replace: Replace) -> OneOf:
        """This field, with the schemas in its shapes replaced."""
        shapes = {kind: shape.rebuilt(replace) for kind, shape in self.shapes.items()}
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
    """A list of values of one encoding; ``null_when_empty`` is Go's nil slice."""

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
        self._hold(item if isinstance(item, WireField) else Shape(item))

    def _hold(self, item: WireField) -> None:
        self.item = item
        self._encode_item = nullable_encode(item)

    def rebuilt(self, replace: Replace) -> ListOf:
        """This field, with the schemas in its items replaced."""
        item = self.item.rebuilt(replace)
        if item is self.item:
            return self
        other = copy(self)
        other._hold(item)
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
    """The field's ``encode``, letting ``None`` through where the field may be null."""
    encode = field.encode
    if not field.nullable:
        return encode
    return lambda value: None if value is None else encode(value)


@cache
def _instance(schema: type[WireSchema]) -> WireSchema:
    # Each copies all its fields, and the same shape is in many.
    return schema()


@cache
def compiled(schema: type[WireSchema]) -> Dump:
    """A function from an object to its JSON, the same as ``schema().dump``."""
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

    def dump_what_is_there(value: Any) -> Json:
        shown = {}
        for key, get, encode in rows:
            found = get(value)
            if key not in optional or not optional[key](found):
                shown[key] = encode(found)
        return shown

    return dump_what_is_there if optional else dump
