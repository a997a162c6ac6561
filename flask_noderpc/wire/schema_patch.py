"""Schemas with some of the schemas in them replaced by others.

One version of a node differs from the next in a few shapes, which stand deep in many
others: a vote is in evidence, that is in blocks, and those are in events. Only what differs
is written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from .dialect import SchemaChoice
from .fields import WireField
from .schema import Choice, WireSchema


class SchemaPatch:
    """Replaces schemas at any depth; the replacements' own parts are replaced too.

    A schema in which there is nothing to replace stays as it is.
    """

    def __init__(self, parts: Mapping[type[WireSchema], type[WireSchema]]) -> None:
        self._parts = parts
        self._made: dict[type[WireSchema], type[WireSchema]] = {}

    def __call__(self, schema: type[WireSchema]) -> type[WireSchema]:
        """The schema, or the one that stands in its place."""
        if schema not in self._made:
            self._made[schema] = self._rebuilt(self._parts.get(schema, schema))
        return self._made[schema]

    def _rebuilt(self, schema: type[WireSchema]) -> type[WireSchema]:
        fields = {name: cast(WireField, own) for name, own in schema._declared_fields.items()}
        others = {name: own.rebuilt(self) for name, own in fields.items()}
        changed = {name: own for name, own in others.items() if own is not fields[name]}
        return type(schema.__name__, (schema,), changed) if changed else schema

    def results(self, schemas: Mapping[type, SchemaChoice]) -> dict[type, SchemaChoice]:
        """The schemas of a dialect's results, replaced."""
        return {result: self._chosen(choice) for result, choice in schemas.items()}

    def _chosen(self, choice: SchemaChoice) -> SchemaChoice:
        if isinstance(choice, type):
            return self(choice)
        return Choice(tuple(map(self, choice.shapes)), lambda result: self(choice(result)))
