"""Parameters of a route: declared as a dataclass, read from a URI or from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Generic, TypeVar

from .. import json
from ..errors import InvalidParams
from ..wire.params import ParamField


@dataclass(frozen=True, slots=True)
class Params:
    """Base of every parameter class; field order is the positional order."""


P = TypeVar("P", bound=Params)


def param(
    kind: ParamField, *, doc: str, default: Any = MISSING, wire: str | None = None
) -> Any:
    """Declare one parameter; without a default it must be given."""
    return field(default=default, metadata={"kind": kind, "doc": doc, "wire": wire})


@dataclass(frozen=True, slots=True)
class NoParams(Params):
    """For routes that take none."""


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """One parameter as callers see it."""

    name: str
    wire: str
    kind: ParamField
    required: bool
    default: Any
    doc: str


def specs(params: type[Params]) -> tuple[ParamSpec, ...]:
    """The parameters of a class, in positional order."""
    return tuple(
        ParamSpec(
            name=row.name,
            wire=row.metadata["wire"] or row.name,
            kind=row.metadata["kind"],
            required=row.default is MISSING,
            default=None if row.default is MISSING else row.default,
            doc=row.metadata["doc"],
        )
        for row in fields(params)
    )


class ParamLoader(Generic[P]):
    """Makes a route's parameters; every failure is an :exc:`InvalidParams` that names one.

    Empty and null values count as not given, as on CometBFT; unknown names are ignored.
    """

    def __init__(self, params: type[P]) -> None:
        self._params = params
        self.specs = specs(params)

    def from_uri(self, values: Mapping[str, str]) -> P:
        """Parameters from a query string; the first of a repeated name counts."""
        given = {}
        for spec in self.specs:
            text = values.get(spec.wire, "")
            if text not in ("", "null"):
                given[spec.name] = _read(spec, spec.kind.from_uri, text)
        return self._made(given)

    def from_json(self, raw: bytes) -> P:
        """Parameters from an object, an array, null, or nothing."""
        if not raw or raw == b"null":
            return self._made({})
        values = _decoded(raw)
        if isinstance(values, list):
            values = self._positional(values)
        elif not isinstance(values, dict):
            raise InvalidParams("params must be an object or an array")
        given = {}
        for spec in self.specs:
            value = values.get(spec.wire)
            if value is not None:
                given[spec.name] = _read(spec, spec.kind.from_json, value)
        return self._made(given)

    def _positional(self, values: list[Any]) -> dict[str, Any]:
        if len(values) > len(self.specs):
            names = ", ".join(spec.wire for spec in self.specs)
            raise InvalidParams(
                f"at most {len(self.specs)} parameters are taken ({names}), got {len(values)}"
            )
        return dict(zip((spec.wire for spec in self.specs), values, strict=False))

    def _made(self, given: dict[str, Any]) -> P:
        for spec in self.specs:
            if spec.required and spec.name not in given:
                raise InvalidParams(f"{spec.wire}: is required")
        return self._params(**given)


def _decoded(raw: bytes) -> Any:
    try:
        return json.decode(raw)
    except json.NotJSON as error:
        # Well-formed, as the message was read, and still no value: 1e400.
        raise InvalidParams(f"params can't be read: {error}") from None


def _read(spec: ParamSpec, reader: Any, value: Any) -> Any:
    try:
        return reader(value)
    except ValueError as error:
        raise InvalidParams(f"{spec.wire}: {error}, got {_shown(value)}") from None


def _shown(value: Any) -> str:
    text = json.encode(value).decode("utf-8", "replace")
    return text if len(text) <= 60 else text[:57] + "..."
