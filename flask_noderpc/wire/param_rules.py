"""How a dialect reads parameters: which readers, which containers, which words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .. import jsoncodec
from .fields import Json
from .params import ParamField


class Reader(Protocol):
    """Reads one parameter; both ways raise :exc:`ValueError` with the reason."""

    @property
    def in_uri(self) -> Json:
        """The JSON Schema of a URI's value; arrays and objects are written as JSON."""

    @property
    def in_json(self) -> Json:
        """The JSON Schema of a JSON parameter."""

    def from_uri(self, text: str, /) -> Any:
        """The value of a URI parameter."""

    def from_json(self, value: Any, /) -> Any:
        """The value of a JSON parameter, as the rules' ``members`` hands it over."""


def _identity(kind: ParamField) -> Reader:
    return kind


def _members(raw: bytes, names: Sequence[str]) -> Mapping[str, Any]:
    try:
        values = jsoncodec.decode(raw)
    except jsoncodec.NotJSON as error:
        # Well-formed, as the message was read, and still no value: 1e400.
        raise ValueError(f"params can't be read: {error}") from None
    if isinstance(values, list):
        values = _by_place(values, names)
    elif not isinstance(values, dict):
        raise ValueError("params must be an object or an array")
    return {name: value for name, value in values.items() if value is not None}


def _by_place(values: list[Any], names: Sequence[str]) -> dict[str, Any]:
    if len(values) > len(names):
        raise ValueError(
            f"at most {len(names)} parameters are taken ({', '.join(names)}), got {len(values)}"
        )
    return dict(zip(names, values, strict=False))


def _describe_error(place: int, name: str, error: ValueError, value: Any) -> str:
    return f"{name}: {error}, got {_truncated_json(value)}"


def _required(place: int, name: str, kind: ParamField) -> Any:
    raise ValueError(f"{name}: is required")


def _truncated_json(value: Any) -> str:
    text = jsoncodec.encode(value).decode("utf-8", "replace")
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True, slots=True)
class ParamRules:
    """The document's rules; another dialect replaces entries."""

    reader: Callable[[ParamField], Reader] = _identity
    """Who reads a kind of parameter."""
    members: Callable[[bytes, Sequence[str]], Mapping[str, Any]] = _members
    """The values of a JSON ``params`` by name, without the nulls; takes all names in order."""
    describe_error: Callable[[int, str, ValueError, Any], str] = _describe_error
    """The text for a parameter that can't be read: of its place, name, reason and value."""
    missing: Callable[[int, str, ParamField], Any] = _required
    """The value of a parameter that has no default and is not given, or :exc:`ValueError`."""
    uri_texts: str = "Texts stand as they are, in double quotes, or as hex behind 0x"
    """How a text is written in a URI."""
    uri_prefix: str = ""
    """Before what is said of a URI's parameters."""
    json_prefix: str = ""
    """Before what is said of a JSON ``params``."""
