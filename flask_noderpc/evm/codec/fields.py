"""Ethereum's JSON forms, one field class for each."""

from __future__ import annotations

from ...wire.fields import Json, WireField
from . import hex


class Quantity(WireField):
    """A number as hex without leading zeros."""

    def encode(self, value: int) -> Json:
        """The text."""
        return hex.quantity(value)

    def decode(self, value: Json) -> int:
        """The number."""
        return hex.read_quantity(value, bits=256)


class Data(WireField):
    """Bytes as hex, two digits each."""

    def encode(self, value: bytes) -> Json:
        """The text."""
        return hex.data(value)

    def decode(self, value: Json) -> bytes:
        """The bytes."""
        return hex.read_data(value)
