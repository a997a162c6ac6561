"""A dialect: one node's way of saying what the handlers answer.

Handlers return domain values and never learn the dialect. A dialect is a frozen value;
a new one is a parent with entries replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import Any

from .. import json
from ..errors import ConfigurationError, NodeRPCError
from ..events.messages import Message
from .events import event_encoder
from .param_rules import ParamRules
from .schema import Dump, WireSchema, compiled

SchemaChoice = type[WireSchema] | Callable[[Any], type[WireSchema]]
"""The schema of a result, or a function that chooses it by the result."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The few behaviours, beside shapes, in which dialects differ."""

    lone_reply_is_bare: bool = True
    """CometBFT: a batch with one reply is answered with that reply, not a list."""
    tells: Callable[[Iterable[Message]], Iterable[Message]] = iter
    """What is told of a block's messages: of which, and with which keys."""


@dataclass(frozen=True)
class Dialect:
    """Shapes, status codes and rules of one kind of node."""

    name: str
    node_version: str
    """What ``node_info.version`` says, by which clients choose their decoder."""
    schemas: Mapping[type, SchemaChoice]
    events: Mapping[type, type[WireSchema]]
    """The shape of each kind of event data."""
    statuses: Mapping[type[NodeRPCError], HTTPStatus]
    """The status of a GET that failed so; the nearest kind counts, 500 is of all others."""
    error_member: tuple[type, ...] = ()
    """Results whose envelope also carries an empty ``error``."""
    rules: Rules = field(default_factory=Rules)
    params: ParamRules = field(default_factory=ParamRules)
    lacks: frozenset[str] = frozenset()
    """The routes that this kind of node does not have."""
    ignored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By route, the parameters that follow ours in an array, and have no effect here."""
    mounts: tuple[str, ...] = ("",)
    """Before the paths of all routes; each path is served under every one."""

    @cached_property
    def _dumps(self) -> dict[type, Dump]:
        return {result: _dump(choice) for result, choice in self.schemas.items()}

    @cached_property
    def encode_event(self) -> Callable[[Message], bytes]:
        """Encodes what all subscribers of a message share."""
        return event_encoder(self.events)

    def require(self, results: Mapping[str, type]) -> None:
        """Raise :exc:`ConfigurationError` unless every route's result has a schema."""
        for route, result in results.items():
            if result not in self.schemas:
                raise ConfigurationError(
                    f"dialect {self.name} has no shape for {result.__name__} of {route}"
                )

    def encode(self, result: object) -> bytes:
        """The result as JSON."""
        return json.encode(self._dumps[type(result)](result))

    def status_of(self, error: NodeRPCError) -> HTTPStatus:
        """The status of a GET that failed."""
        kinds = (kind for kind in type(error).__mro__ if kind in self.statuses)
        kind = next(kinds, None)
        return self.statuses[kind] if kind else HTTPStatus.INTERNAL_SERVER_ERROR


def _dump(choice: SchemaChoice) -> Dump:
    if isinstance(choice, type):
        return compiled(choice)
    made: dict[type[WireSchema], Dump] = {}

    def dump(value: Any) -> Any:
        schema = choice(value)
        if schema not in made:
            made[schema] = compiled(schema)
        return made[schema](value)

    return dump
