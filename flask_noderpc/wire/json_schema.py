"""JSON Schemas of results and parameters, for OpenAPI and OpenRPC documents."""

from __future__ import annotations

from .fields import Json, WireField
from .schema import Choice, WireSchema


class Components:
    """Named JSON Schemas of objects, each of which is defined once and then referenced."""

    def __init__(self) -> None:
        self.schemas: dict[str, Json] = {}
        self._names: dict[type[WireSchema], str] = {}

    def refer(self, schema: type[WireSchema]) -> Json:
        """Return a reference to an object's schema."""
        if schema not in self._names:
            self._names[schema] = name = self._unused_name(schema.__name__.lstrip("_"))
            # Add an empty entry first, so that the schemas stay in the order of their first
            # reference.
            self.schemas[name] = {}
            self.schemas[name] = self._object(schema)
        return {"$ref": f"#/components/schemas/{self._names[schema]}"}

    def of(self, choice: type[WireSchema] | Choice) -> Json:
        """Return the JSON Schema of a result."""
        if isinstance(choice, Choice):
            return {"anyOf": [self.refer(schema) for schema in choice.schemas]}
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


def member_names(choice: type[WireSchema] | Choice) -> frozenset[str]:
    """Return the names of the members of a result, at any depth."""
    components = Components()
    components.of(choice)
    objects = components.schemas.values()
    return frozenset(name for each in objects for name in each["properties"])


# RFC 8259, section 7; lone surrogates are not characters.
_UNIT = (
    r"[0-9a-cefA-CEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}"
    r"|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_QUOTED = r'"([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u(' + _UNIT + r')))*"'
_DIGITS = r"-?(0|[1-9][0-9]*)"
_HEX = r"([0-9a-fA-F]{2})*"
_0X_HEX = rf"0[xX]{_HEX}"
_BASE64 = r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_HASH = r"[0-9a-fA-F]{64}"
_DURATION = r"[0-9]{1,20}(\.[0-9]{1,20})?(ms|s|m)?"


def typed(*types: str) -> Json:
    """Return the JSON Schema of a value of one of the JSON types ``types``."""
    return {"type": list(types) if len(types) > 1 else types[0]}


def _like(pattern: str) -> Json:
    return {"type": "string", "pattern": f"^({pattern})$"}


QUOTED = _like(f"{_QUOTED}|{_0X_HEX}")
"""JSON Schema of text or bytes in a URI, in double quotes or as hex."""
TEXT = _like(rf'{_QUOTED}|{_0X_HEX}|[^"0][\s\S]*|0([^xX][\s\S]*)?')
"""JSON Schema of text or bytes in a URI with optional quotes."""
FLAG = {"type": ["boolean", "string"], "enum": [True, False, "true", "false"]}
DIGITS = _like(_DIGITS)
HEX = _like(_HEX)
BASE64 = _like(_BASE64)
HASH = _like(f"{_0X_HEX}|{_BASE64}")
HASH_IN_URI = _like(f"(0[xX])?{_HASH}|[A-Za-z0-9+/]{{43}}=")
DURATION = _like(_DURATION)
NANOSECONDS_OR_DURATION = {**DURATION, "type": ["integer", "string"], "minimum": 0}
CURSOR = _like("[0-9A-F]{16}-[0-9A-F]{8}")
TEXTS = {"type": "array", "items": {"type": "string"}}
FILTER = {"type": "object", "properties": {"query": {"type": "string"}}}
EVIDENCE = {
    "type": "object",
    "properties": {"type": {"type": "string"}, "value": {"type": "object"}},
    "required": ["type", "value"],
}


def integer(minimum: int, maximum: int) -> Json:
    """Return the JSON Schema of an integer."""
    return {"type": "integer", "minimum": minimum, "maximum": maximum}
