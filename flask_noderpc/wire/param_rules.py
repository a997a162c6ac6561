"""Rules by which a dialect reads parameters: readers, containers, error texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .. import jsoncodec
from .fields import Json
from .params import ParamField


class Reader(Protocol):
    """Reader of one parameter; both methods raise :exc:`ValueError` with the reason."""

    @property
    def in_uri(self) -> Json:
        """JSON Schema of the value in a URI; arrays and objects are JSON text."""

    @property
    def in_json(self) -> Json:
        """JSON Schema of the JSON parameter."""

    def from_uri(self, text: str, /) -> Any:
        """Parse a URI parameter."""

    def from_json(self, value: Any, /) -> Any:
        """Parse a JSON parameter as returned by the rules' ``members``."""


def _identity(kind: ParamField) -> Reader:
    return kind


def _members(raw: bytes, names: Sequence[str]) -> Mapping[str, Any]:
    try:
        values = jsoncodec.decode(raw)
    except jsoncodec.NotJSON as error:
        # The message was valid JSON, but a number may still be out of range: 1e400.
        raise ValueError(f"params can't be read: {error}") from None
    if isinstance(values, list):
        values = _by_position(values, names)
    elif not isinstance(values, dict):
        raise ValueError("params must be an object or an array")
    return {name: value for name, value in values.items() if value is not None}


def _by_position(values: list[Any], names: Sequence[str]) -> dict[str, Any]:
    if len(values) > len(names):
        raise ValueError(
            f"at most {len(names)} parameters are taken ({', '.join(names)}), got {len(values)}"
        )
    return dict(zip(names, values, strict=False))


def _describe_error(position: int, name: str, error: ValueError, value: Any) -> str:
    return f"{name}: {error}, got {_truncated_json(value)}"


def _required(position: int, name: str, kind: ParamField) -> Any:
    raise ValueError(f"{name}: is required")


def _truncated_json(value: Any) -> str:
    text = jsoncodec.encode(value).decode("utf-8", "replace")
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True, slots=True)
class ParamRules:
    """Parameter rules; the defaults are those of the document."""

    reader: Callable[[ParamField], Reader] = _identity
    """Return the reader for a kind of parameter."""
    members: Callable[[bytes, Sequence[str]], Mapping[str, Any]] = _members
    """Return the values of JSON ``params`` by name, without nulls; takes all names in order."""
    describe_error: Callable[[int, str, ValueError, Any], str] = _describe_error
    """Return the error text for an invalid parameter: from position, name, reason and value."""
    missing: Callable[[int, str, ParamField], Any] = _required
    """Return the value of an omitted parameter without default, or raise :exc:`ValueError`."""
    uri_texts: str = "Texts stand as they are, in double quotes, or as hex behind 0x"
    """Description of texts in a URI, for OpenAPI documents."""
    uri_prefix: str = ""
    """Prefix of error texts for URI parameters."""
    json_prefix: str = ""
    """Prefix of error texts for JSON ``params``."""
