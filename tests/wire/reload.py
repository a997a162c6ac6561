"""Dump a loaded value as JSON again, without the domain's classes."""

from __future__ import annotations

from typing import Any

from flask_noderpc.wire.fields import WireField
from flask_noderpc.wire.schema import ListOf, Nested, WireSchema, compiled


def loaded_again(schema: type[WireSchema], shown: Any) -> Any:
    """Return the JSON of a value that the schema loaded from JSON."""
    return _object(schema, schema().load(shown))


def _object(schema: type[WireSchema], loaded: Any) -> Any:
    if schema.domain is not None:
        return compiled(schema)(loaded)
    again = {}
    for name, field in schema().fields.items():
        assert isinstance(field, WireField)
        value = loaded[field.attribute or name]
        if value or not (field.omit_empty or (field.omit_none and value is None)):
            again[field.data_key or name] = _value(field, value)
    return again


def _value(field: WireField, value: Any) -> Any:
    if value is None and field.nullable:
        return None
    if isinstance(field, Nested):
        return _object(field.schema, value)
    if isinstance(field, ListOf) and value:
        return [_value(field.item, item) for item in value]
    return field.encode(value)
