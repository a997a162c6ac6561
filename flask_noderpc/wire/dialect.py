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

from .. import jsoncodec
from ..errors import ConfigurationError
from ..events.messages import Message
from .envelope import Envelope, nearest
from .events import event_encoder
from .fields import Json
from .json_schema import Components
from .param_rules import ParamRules
from .schema import Choice, Dump, WireSchema, compiled

_JSON: Mapping[type, Json] = {
    dict: {"type": "object"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
}
"""The types that JSON itself has, with their JSON Schema."""

SchemaChoice = type[WireSchema] | Choice
"""The schema of a result, or those of which it is one."""


@dataclass(frozen=True, slots=True)
class Behaviours:
    """The few behaviours, beside shapes, in which dialects differ."""

    filter_events: Callable[[Iterable[Message]], Iterable[Message]] = iter
    """What is told of a block's messages: of which, and with which keys."""
    unknown_block_is_null: bool = False
    """CometBFT: a block that is not there is an answer without a block, not an error."""
    proves_each_block: bool = False
    """CometBFT: without empty blocks, a block that changed the application's state is
    still followed by one more, which carries that state's hash."""
    failed_check_is_error: bool = False
    """CometBFT 1.0: a transaction that the application refuses is an error, no result."""
    closed_while_catching_up: bool = False
    """CometBFT 1.0: no transactions are taken while blocks are fetched from elsewhere."""
    bad_tx_order: str = "expected order_by to be either `asc` or `desc` or empty"
    """What is said of another order of ``tx_search``, which stands in place of ``{}``."""


@dataclass(frozen=True, slots=True)
class HttpProfile:
    """How a node speaks HTTP, beside statuses and bodies."""

    any_method: bool = False
    """Whether a route answers every method, and reads its parameters from a form too."""
    posts_cacheable: bool = False
    """Whether ``Cache-Control`` is also on answers to POST, where all their calls allow it."""
    server_time: bool = False
    """Whether answers carry ``X-Server-Time``, in seconds."""
    websocket_routes: bool = False
    """Whether the methods of the websocket have routes, which say that they are not found."""
    wrong_websocket_version: HTTPStatus = HTTPStatus.UPGRADE_REQUIRED
    """The answer to a handshake of another version than 13."""
    plain_index: bool = False
    """Whether the index page is CometBFT's line of links."""
    mounts: tuple[str, ...] = ("",)
    """Before the paths of all routes; each path is served under every one."""


@dataclass(frozen=True)
class Dialect:
    """Shapes, status codes and rules of one kind of node."""

    name: str
    node_version: str
    """What ``node_info.version`` says, by which clients choose their decoder."""
    schemas: Mapping[type, SchemaChoice]
    events: Mapping[type, type[WireSchema]]
    """The shape of each kind of event data."""
    statuses: Mapping[type[Exception], HTTPStatus]
    """The status of a GET that failed so; the nearest kind counts, 500 is of all others."""
    error_member: tuple[type, ...] = ()
    """Results whose envelope also carries an empty ``error``."""
    behaviours: Behaviours = field(default_factory=Behaviours)
    params: ParamRules = field(default_factory=ParamRules)
    omits_routes: frozenset[str] = frozenset()
    """The routes that this kind of node does not have."""
    ignored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By route, the parameters that follow ours in an array, and have no effect here."""
    envelope: Envelope = field(default_factory=Envelope)
    http: HttpProfile = field(default_factory=HttpProfile)

    @cached_property
    def _dumps(self) -> dict[type, Dump]:
        shapes = {result: _dump(choice) for result, choice in self.schemas.items()}
        # A document that was written elsewhere, or JSON of a host's own route.
        return dict.fromkeys((jsoncodec.Raw, *_JSON), _itself) | shapes

    @cached_property
    def encode_event(self) -> Callable[[Message], bytes]:
        """Encodes what all subscribers of a message share."""
        return event_encoder(self.events)

    def require(self, results: Mapping[str, type]) -> None:
        """Raise :exc:`ConfigurationError` unless every route's result has a schema."""
        for route, result in results.items():
            if result not in self._dumps:
                raise ConfigurationError(
                    f"dialect {self.name} has no shape for {_name(result)} of {route}:"
                    f" a route of your own answers with {', '.join(map(_name, _JSON))}"
                )

    def described(self, result: type, components: Components) -> Json:
        """The JSON Schema of a kind of result."""
        # Of a document that was written elsewhere nothing is known.
        if result is jsoncodec.Raw:
            return {}
        return _JSON.get(result) or components.of(self.schemas[result])

    def encode(self, result: object) -> bytes:
        """The result as JSON; no result is null."""
        if result is None:
            return b"null"
        dump = self._dumps.get(type(result))
        if dump is None:
            raise TypeError(f"dialect {self.name} has no shape for {_name(type(result))}")
        return jsoncodec.encode(dump(result))

    @property
    def failures(self) -> set[HTTPStatus]:
        """Every status that a GET may fail with."""
        return {*self.statuses.values(), HTTPStatus.INTERNAL_SERVER_ERROR}

    def status_of(self, error: Exception) -> HTTPStatus:
        """The status of a GET that failed."""
        return nearest(self.statuses, error)


def _name(kind: object) -> str:
    return getattr(kind, "__name__", repr(kind))


def _itself(value: Any) -> Any:
    return value


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
