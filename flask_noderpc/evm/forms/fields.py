"""Ethereum's JSON forms, one field class for each."""

from __future__ import annotations

from ...wire.fields import Json, WireField
from . import hexes


class Quantity(WireField):
    """A number as hex without leading zeros."""

    def encode(self, value: int) -> Json:
        """The text."""
        return hexes.quantity(value)

    def decode(self, value: Json) -> int:
        """The number."""
        return hexes.read_quantity(value, bits=256)


class Data(WireField):
    """Bytes as hex, two digits each."""

    def encode(self, value: bytes) -> Json:
        """The text."""
        return hexes.data(value)

    def decode(self, value: Json) -> bytes:
        """The bytes."""
        return hexes.read_data(value)
