"""Result schema of the method ``events``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .events import TYPES
from .fields import Cursor, Flag, Json, Text, WireField
from .schema import ListOf, WireSchema, compiled


class EventData(WireField):
    """Event data with its type name."""

    json_type = "object"

    def __init__(self, schemas: Mapping[type, type[WireSchema]], **options: Any) -> None:
        super().__init__(**options)
        self._dumps = {kind: compiled(schema) for kind, schema in schemas.items()}

    def encode(self, value: Any) -> Json:
        """Return the type name and the encoded value."""
        kind = type(value)
        return {"type": TYPES[kind], "value": self._dumps[kind](value)}


def event_page(schemas: Mapping[type, type[WireSchema]]) -> type[WireSchema]:
    """Return the schema of ``events``, that of Tendermint 0.36, for a dialect's event data."""

    class EventItem(WireSchema):
        cursor = Cursor(attribute="place")
        event = Text(attribute="category")
        data = EventData(schemas, attribute="value")

    class EventPage(WireSchema):
        items = ListOf(EventItem)
        more = Flag()
        oldest = Cursor()
        newest = Cursor()

    return EventPage
