"""Protobuf messages as .proto files declare them, and the encoder that the declarations give.

Beside protobuf's own types, ``Dec`` is a text with 18 decimals without its point, and ``Int`` a
text with a whole number. ``!`` marks a message that JSON has even if it is empty, and ``?`` one
that JSON leaves out if it is absent, where others are null; a text with ``!`` is required in a
genesis state. ``field(attribute)`` reads the value of a field from an attribute with another
name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..source import Scope, attribute, function
from .protobuf import framed, timestamp, varint

Encode = Callable[[Any], bytes]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message; ``mark`` is ``!``, ``?`` or empty."""

    number: int
    name: str
    type: str
    repeated: bool
    mark: str
    attribute: str

    @property
    def json_name(self) -> str:
        """Name that clients may use as well."""
        first, *rest = self.name.split("_")
        return first + "".join(map(str.capitalize, rest))


_MESSAGE = re.compile(r"message ([\w.]+) \{([^}]*)\}")
_FIELD = re.compile(r"(repeated )?([\w.]+)([!?]?) (\w+)(?:\(([\w.]+)\))? = (\d+);")


def _text(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


_TIMES = ("Timestamp", "Duration")
# The types of fields whose values have a length, but for messages.
_BODIES: dict[str, Encode] = {
    "bytes": bytes,
    **dict.fromkeys(("string", "Dec", "Int"), _text),
    # A Duration has the fields of a Timestamp; both are nanoseconds.
    **dict.fromkeys(_TIMES, timestamp),
}


class Messages(dict[str, tuple[Field, ...]]):
    """Fields of each message by its name, in the order of their encoding."""

    def __init__(
        self,
        text: str,
        known: Mapping[str, tuple[Field, ...]] = MappingProxyType({}),
        encoders: Mapping[str, Encode] = MappingProxyType({}),
    ) -> None:
        """Declare the messages of a text beside the ``known`` ones; ``encoders`` are those of
        types that are not declared."""
        super().__init__(known)
        self._encoders = dict(encoders)
        for name, body in _MESSAGE.findall(text):
            self[name] = tuple(
                Field(int(number), own, kind, bool(many), mark, source or own)
                for many, kind, mark, own, source, number in _FIELD.findall(body)
            )

    def encode(self, name: str, /, **values: Any) -> bytes:
        """Encode the message of these values; without one, a field is left out."""
        return self.encoder(name)(values)

    def encoder(self, name: str) -> Encode:
        """Return the function that encodes a message.

        It takes an object that has the values as attributes, a dictionary of them, or bytes,
        which are the encoded message.
        """
        if name not in self._encoders:
            scope = Scope()
            scope.names |= {"encoder": self.encoder, "Values": _Values}
            scope.names |= {"framed": framed, "varint": varint}
            parts = "".join(f"{self._part(field, scope)}, " for field in self[name])
            lines = (
                "if type(value) is bytes:",
                "    return value",
                "if type(value) is dict:",
                "    value = Values(value)",
                f"return b''.join(({parts}))",
            )
            self._encoders[name] = function("value", lines, name, scope)
        return self._encoders[name]

    def _part(self, field: Field, scope: Scope) -> str:
        """Return the expression of an encoded field."""
        given, value = attribute(field.attribute, None, scope), scope.variable()
        is_message = field.type in self or field.type in self._encoders
        if not is_message and field.type not in _BODIES:
            # Repeated numbers are packed.
            number = f"{varint(field.number << 3)!r} + varint({value})"
            packed = f"{_tag(field)}, b''.join(map(varint, {value})))"
            return f"{packed if field.repeated else number} if ({value} := {given}) else b''"
        # A message may have itself within, so its encoder is looked up when it is called.
        encode = f"encoder({field.type!r})" if is_message else scope.bind(_BODIES[field.type])
        if field.repeated:
            bodies = f"map({encode}, {given} or ())"
            return f"b''.join([{_tag(field)}, {value}) for {value} in {bodies}])"
        body = value if field.type == "bytes" else f"{encode}({value})"
        is_there = "is not None" if is_message or field.type in _TIMES else ""
        return f"{_tag(field)}, {body}) if ({value} := {given}) {is_there} else b''"


def _tag(field: Field) -> str:
    return f"framed({varint(field.number << 3 | 2)!r}"


class _Values:
    """Values of a dictionary as attributes; others are ``None``."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__ = values

    def __getattr__(self, name: str) -> None:
        return None
