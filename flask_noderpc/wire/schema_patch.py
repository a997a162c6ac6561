"""Replace schemas that are nested in other schemas.

Two versions of a node differ in a few objects that are nested deeply: a vote is part of
evidence, evidence of blocks, and blocks of events. A dialect defines only what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from .dialect import SchemaChoice
from .fields import WireField
from .schema import Choice, WireSchema


class SchemaPatch:
    """Replace schemas at any depth, also within the replacements.

    A schema that contains nothing to replace is returned unchanged.
    """

    def __init__(self, replacements: Mapping[type[WireSchema], type[WireSchema]]) -> None:
        self._replacements = replacements
        self._cache: dict[type[WireSchema], type[WireSchema]] = {}

    def __call__(self, schema: type[WireSchema]) -> type[WireSchema]:
        """Return the replacement of a schema, or the schema itself."""
        if schema not in self._cache:
            self._cache[schema] = self._patched(self._replacements.get(schema, schema))
        return self._cache[schema]

    def _patched(self, schema: type[WireSchema]) -> type[WireSchema]:
        fields = {
            name: cast(WireField, field) for name, field in schema._declared_fields.items()
        }
        replaced = {name: field.replace_schemas(self) for name, field in fields.items()}
        changed = {name: f for name, f in replaced.items() if f is not fields[name]}
        return type(schema.__name__, (schema,), changed) if changed else schema

    def results(self, schemas: Mapping[type, SchemaChoice]) -> dict[type, SchemaChoice]:
        """Return the schemas of a dialect's results with the replacements."""
        return {result: self._patched_choice(choice) for result, choice in schemas.items()}

    def _patched_choice(self, choice: SchemaChoice) -> SchemaChoice:
        if isinstance(choice, type):
            return self(choice)
        return Choice(
            tuple(map(self, choice.shapes)),
            lambda result: self(choice(result)),
            lambda value: self(choice.recognize(value)),
        )
