"""Dialects: the encoding of results and the behaviour of one kind of node.

Handlers return domain values and do not depend on the dialect. A dialect is a frozen value; a
new dialect is derived from another by replacing entries.

Two versions of a node differ in a few deeply nested objects: a vote is part of evidence,
evidence is part of blocks, and blocks are part of events. A dialect defines only the
differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from http import HTTPStatus
from typing import Any, Protocol, Self, TypeVar, cast

from .. import jsoncodec
from ..domain.abci import BlockResults
from ..domain.block import Evidence
from ..domain.events import NewEvidence
from ..errors import ConfigurationError, DecodeError
from ..events.messages import Message
from .envelope import Envelope, nearest
from .events import event_encoder
from .fields import Json, WireField
from .form import attach_form, encode_with_form, has_form
from .json_schema import Components, member_names
from .params import ParamField
from .schema import Choice, Dump, Load, WireSchema, compiled, compiled_load


class Reader(Protocol):
    """Parser of one parameter; both methods raise :exc:`ValueError` with the reason."""

    @property
    def in_uri(self) -> Json:
        """JSON Schema of the value in a URI; arrays and objects are JSON text."""

    @property
    def in_json(self) -> Json:
        """JSON Schema of the JSON parameter."""

    def from_uri(self, text: str, /) -> Any:
        """Parse a URI parameter."""

    def from_json(self, value: Any, /) -> Any:
        """Parse a JSON parameter: a value that :attr:`ParamRules.members` returns."""


def _identity(kind: ParamField) -> Reader:
    return kind


def _members(raw: bytes, names: Sequence[str]) -> Mapping[str, Any]:
    try:
        values = jsoncodec.decode(raw)
    except jsoncodec.NotJSON as error:
        # The whole message was parsed as JSON, but a number in its parameters may be out of
        # range, such as 1e400.
        raise ValueError(f"params can't be parsed: {error}") from None
    if isinstance(values, list):
        values = _by_position(values, names)
    elif not isinstance(values, dict):
        raise ValueError("params must be an object or an array")
    return {name: value for name, value in values.items() if value is not None}


def _by_position(values: list[Any], names: Sequence[str]) -> dict[str, Any]:
    if len(values) > len(names):
        raise ValueError(
            f"expected at most {len(names)} parameters ({', '.join(names)}), got {len(values)}"
        )
    return dict(zip(names, values, strict=False))


def _describe_error(position: int, name: str, error: ValueError, value: Any) -> str:
    return f"{name}: {error}, got {_truncated_json(value)}"


def _required(position: int, name: str, kind: ParamField) -> Any:
    raise ValueError(f"{name}: expected a value, got none")


def _truncated_json(value: Any) -> str:
    text = jsoncodec.encode(value).decode("utf-8", "replace")
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True, slots=True)
class ParamRules:
    """Rules for parsing parameters; the defaults are the document's rules."""

    reader: Callable[[ParamField], Reader] = _identity
    """Function that returns the parser of a parameter type."""
    members: Callable[[bytes, Sequence[str]], Mapping[str, Any]] = _members
    """Function that takes JSON ``params`` and all parameter names in order, and returns the
    values by name, without nulls."""
    describe_error: Callable[[int, str, ValueError, Any], str] = _describe_error
    """Function that returns the error text for an invalid parameter from its position, name,
    reason and value."""
    value_if_omitted: Callable[[int, str, ParamField], Any] = _required
    """Function that returns the value of an omitted parameter without a default, or raises
    :exc:`ValueError`."""
    uri_texts: str = "Write text as it is, in double quotes, or as hex with the prefix 0x"
    """Description of texts in a URI, for OpenAPI documents."""
    uri_prefix: str = ""
    """Prefix of error texts for URI parameters."""
    json_prefix: str = ""
    """Prefix of error texts for parameters in JSON."""


T = TypeVar("T")

_JSON: Mapping[type, Json] = {
    dict: {"type": "object"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
}
"""JSON Schemas of the Python types that are encoded as JSON without a schema."""

SchemaChoice = type[WireSchema] | Choice
"""Schema of a result, or a choice of several schemas."""


@dataclass(frozen=True, slots=True)
class Behaviours:
    """Differences in the behaviour of dialects, apart from schemas."""

    filter_events: Callable[[Iterable[Message]], Iterable[Message]] = iter
    """Function that takes the messages of a block and returns the ones that subscribers get,
    with the event keys that they get."""
    unknown_block_is_null: bool = False
    """True if the result for an unknown block has no block, as in CometBFT, instead of being an
    error."""
    proves_each_block: bool = False
    """True if, without empty blocks, a block that changed the application's state is followed
    by another block, as in CometBFT. The second block contains the hash of that state."""
    failed_check_is_error: bool = False
    """True if a transaction that CheckTx rejects is an error instead of a result, as in
    CometBFT 1.0."""
    closed_while_catching_up: bool = False
    """True if the broadcast methods reject transactions while the node is catching up, as in
    CometBFT 1.0."""
    keeps_form: bool = False
    """True if decoded results keep null, empty, absent and additional members of the node's
    JSON, and are encoded with them."""
    bad_tx_order: str = "expected order_by to be either `asc` or `desc` or empty"
    """Error text for an invalid ``order_by`` of ``tx_search``; ``{}`` is replaced with its
    value."""


@dataclass(frozen=True, slots=True)
class HttpProfile:
    """HTTP behaviour of a node, apart from status codes and bodies."""

    any_method: bool = False
    """True if a route accepts every HTTP method, and also parses parameters from a form
    body."""
    posts_cacheable: bool = False
    """True if responses to POST have ``Cache-Control`` when all calls of the body allow it."""
    server_time: bool = False
    """True if responses have ``X-Server-Time``, in seconds."""
    websocket_routes: bool = False
    """True if the methods that need a WebSocket, such as ``subscribe``, also have HTTP routes,
    whose response is "not found"."""
    wrong_websocket_version: HTTPStatus = HTTPStatus.UPGRADE_REQUIRED
    """Status of a handshake with a WebSocket version other than 13."""
    plain_index: bool = False
    """True if programs get CometBFT's plain list of links as the index page."""
    mounts: tuple[str, ...] = ("",)
    """Path prefixes; every route is served under each prefix."""


@dataclass(frozen=True)
class Dialect:
    """Schemas, status codes and rules of one kind of node."""

    name: str
    node_version: str
    """Value of ``node_info.version``, by which clients select their decoder."""
    schemas: Mapping[type, SchemaChoice]
    events: Mapping[type, type[WireSchema]]
    """Schema of each class of event data."""
    statuses: Mapping[type[Exception], HTTPStatus]
    """Status of a failed GET by the nearest class of its error; 500 for other errors."""
    error_member: tuple[type, ...] = ()
    """Result classes whose envelope also has an empty ``error``."""
    behaviours: Behaviours = field(default_factory=Behaviours)
    params: ParamRules = field(default_factory=ParamRules)
    omits_routes: frozenset[str] = frozenset()
    """Routes that this kind of node does not have."""
    ignored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Additional positional parameters of each route that are ignored."""
    envelope: Envelope = field(default_factory=Envelope)
    http: HttpProfile = field(default_factory=HttpProfile)

    @cached_property
    def _dumps(self) -> dict[type, Dump]:
        """Functions that dump results, by class; the function of a schema is added when it is
        first used."""
        # Pre-encoded documents and the JSON values that a host application's routes return are
        # already JSON.
        plain = {jsoncodec.Raw, *_JSON} - self.schemas.keys()
        return dict.fromkeys(plain, _itself)

    def _has_schema(self, result: type) -> bool:
        return result in self.schemas or result in self._dumps

    @cached_property
    def encode_event(self) -> Callable[[Message], bytes]:
        """Encoder of the part of a notification that all subscribers share."""
        return event_encoder(self.events, self.envelope.json)

    def with_schemas(self, more: Mapping[type, type[WireSchema]]) -> Self:
        """Return the dialect with schemas for additional classes of results.

        Raise :exc:`ConfigurationError` if it already has a schema for one of the classes.
        """
        for result in more:
            if self._has_schema(result):
                raise ConfigurationError(
                    f"dialect {self.name} already has a schema for {_name(result)}:"
                    " return a class of your own from your route"
                )
            compiled(more[result])
        return replace(self, schemas={**self.schemas, **more}) if more else self

    def compile(self) -> None:
        """Compile all schemas, which are otherwise compiled at their first use.

        Raise :exc:`ConfigurationError` for a schema with fields that are not this package's.
        """
        choices = (*self.schemas.values(), *self.events.values())
        for choice in choices:
            for schema in (choice,) if isinstance(choice, type) else choice.schemas:
                compiled(schema)

    def require(self, results: Mapping[str, type]) -> None:
        """Raise :exc:`ConfigurationError` unless the result of every route has a schema."""
        for route, result in results.items():
            if not self._has_schema(result):
                raise ConfigurationError(
                    f"dialect {self.name} has no schema for {_name(result)} of {route}:"
                    f" return {', '.join(map(_name, _JSON))} from your route,"
                    " or pass the schema of its result as schema=..."
                )

    def described(self, result: type, components: Components) -> Json:
        """Return the JSON Schema of a class of results."""
        # An empty schema allows every value: the content of a pre-encoded document is unknown.
        if result is jsoncodec.Raw:
            return {}
        return _JSON.get(result) or components.of(self.schemas[result])

    def evidence(self, piece: Evidence) -> Mapping[str, Any]:
        """Return a piece of evidence as the JSON object that ``broadcast_evidence``
        accepts."""
        event = NewEvidence(piece.height, piece, ())
        shown: Mapping[str, Any] = compiled(self.events[NewEvidence])(event)["evidence"]
        return shown

    def encode(self, result: object) -> bytes:
        """Return a result as JSON bytes; ``None`` is encoded as null."""
        if result is None:
            return b"null"
        return self.envelope.json(
            encode_with_form(result, self.name, self._dump_of(type(result)))
        )

    def _dump_of(self, result: type) -> Dump:
        """Return the function that dumps a class of results; raise :exc:`TypeError` if the
        class has no schema."""
        dump = self._dumps.get(result)
        if dump is None:
            if result not in self.schemas:
                raise TypeError(f"dialect {self.name} has no schema for {_name(result)}")
            dump = self._dumps[result] = _dump(self.schemas[result])
        return dump

    @cached_property
    def _loads(self) -> dict[type, Load]:
        loads = ((result, _load(choice)) for result, choice in self.schemas.items())
        return {result: load for result, load in loads if load is not None}

    def decode(self, result: type[T], document: jsoncodec.Document) -> T:
        """Decode a result from the JSON of a node of this dialect.

        Raise :exc:`~flask_noderpc.errors.DecodeError`, which names the first invalid member.
        """
        try:
            if result is BlockResults and jsoncodec.is_large(document):
                whole = jsoncodec.decode(document, jsoncodec.Raw)
                return self.load(result, jsoncodec.opened(whole))
            return self.load(result, jsoncodec.decode(document))
        except jsoncodec.NotJSON as error:
            raise DecodeError(f"not JSON: {error}") from None

    def load(self, result: type[T], value: Json) -> T:
        """Load a result from its parsed JSON; raise as :meth:`decode` does."""
        load = self._loads.get(result)
        if load is None:
            raise TypeError(
                f"dialect {self.name} encodes {_name(result)}, but can't decode it: set the"
                " attribute domain of its schema to the class of the decoded value"
            )
        found: T = load(value)
        if self.behaviours.keeps_form and has_form(result):
            own = self._dump_of(result)(found)
            known = self._member_names[result]
            return cast(T, attach_form(found, self.name, own, value, load, known))
        return found

    @cached_property
    def _member_names(self) -> dict[type, frozenset[str]]:
        """Names of all members, at any depth, of each class of results that keeps its form."""
        kinds = filter(has_form, self.schemas)
        return {kind: member_names(self.schemas[kind]) for kind in kinds}

    @property
    def failures(self) -> set[HTTPStatus]:
        """Statuses that a failed GET can have."""
        return {*self.statuses.values(), HTTPStatus.INTERNAL_SERVER_ERROR}

    def status_of(self, error: Exception) -> HTTPStatus:
        """Return the status of a failed GET."""
        return nearest(self.statuses, error)


def _name(kind: object) -> str:
    return getattr(kind, "__name__", repr(kind))


def _itself(value: Any) -> Any:
    return value


def _dump(choice: SchemaChoice) -> Dump:
    if isinstance(choice, type):
        return compiled(choice)
    return lambda value: compiled(choice(value))(value)


def _load(choice: SchemaChoice) -> Load | None:
    if isinstance(choice, type):
        return compiled_load(choice) if choice.domain else None
    return lambda value: compiled_load(choice.recognize(value))(value)


class SchemaPatch:
    """Function that replaces schemas at any depth, even inside the replacement schemas.

    A schema that contains nothing to replace is returned unchanged.
    """

    def __init__(self, replacements: Mapping[type[WireSchema], type[WireSchema]]) -> None:
        self._replacements = replacements
        self._cache: dict[type[WireSchema], type[WireSchema]] = {}

    def __call__(self, schema: type[WireSchema]) -> type[WireSchema]:
        """Return the replacement of a schema, or the schema itself."""
        if schema not in self._cache:
            self._cache[schema] = self._patched(self._replacements.get(schema, schema))
        return self._cache[schema]

    def _patched(self, schema: type[WireSchema]) -> type[WireSchema]:
        fields = {
            name: cast(WireField, field) for name, field in schema._declared_fields.items()
        }
        replaced = {name: field.replace_schemas(self) for name, field in fields.items()}
        changed = {name: f for name, f in replaced.items() if f is not fields[name]}
        return type(schema.__name__, (schema,), changed) if changed else schema

    def results(self, schemas: Mapping[type, SchemaChoice]) -> dict[type, SchemaChoice]:
        """Return the schemas of a dialect's results with the replacements."""
        return {result: self._patched_choice(choice) for result, choice in schemas.items()}

    def _patched_choice(self, choice: SchemaChoice) -> SchemaChoice:
        if isinstance(choice, type):
            return self(choice)
        return Choice(
            tuple(map(self, choice.schemas)),
            lambda result: self(choice(result)),
            lambda value: self(choice.recognize(value)),
        )
