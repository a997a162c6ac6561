"""JSON Schemas of :mod:`.schema`, for OpenAPI and OpenRPC documents."""

from __future__ import annotations

from .fields import Json, WireField
from .schema import Choice, WireSchema


class Components:
    """Named schemas, each defined once and referenced."""

    def __init__(self) -> None:
        self.schemas: dict[str, Json] = {}
        self._names: dict[type[WireSchema], str] = {}

    def refer(self, schema: type[WireSchema]) -> Json:
        """Return a reference to an object's schema."""
        if schema not in self._names:
            self._names[schema] = name = self._unused_name(schema.__name__.lstrip("_"))
            # The entry is reserved first, so that schemas stay in the order of reference.
            self.schemas[name] = {}
            self.schemas[name] = self._object(schema)
        return {"$ref": f"#/components/schemas/{self._names[schema]}"}

    def of(self, choice: type[WireSchema] | Choice) -> Json:
        """Return the JSON Schema of a result."""
        if isinstance(choice, Choice):
            return {"anyOf": [self.refer(shape) for shape in choice.shapes]}
        return self.refer(choice)

    def _unused_name(self, name: str) -> str:
        count = sum(other.rstrip("0123456789") == name for other in self.schemas)
        return f"{name}{count + 1}" if count else name

    def _object(self, schema: type[WireSchema]) -> Json:
        members: dict[str, Json] = {}
        required = []
        for name, field in schema().dump_fields.items():
            assert isinstance(field, WireField)
            key = field.data_key or name
            members[key] = field.described(self.refer)
            if not (field.omit_empty or field.omit_none):
                required.append(key)
        described: dict[str, Json] = {"type": "object", "properties": members}
        if required:
            described["required"] = required
        return described
