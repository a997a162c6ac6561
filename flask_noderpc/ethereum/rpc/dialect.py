"""The ``evm`` dialect: Ethereum's JSON encodings in geth's JSON-RPC envelope.

geth: rpc/json.go, rpc/handler.go. Every response has status 200; IDs are returned unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from http import HTTPStatus
from itertools import islice
from types import NoneType
from typing import Any, ClassVar

from ... import jsoncodec
from ...errors import (
    AnswerTooLarge,
    BatchTimedOut,
    BatchTooLarge,
    CallFailed,
    Forbidden,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    RPCError,
)
from ...wire.dialect import Dialect
from ...wire.envelope import BadCall, Call, Calls, Envelope, Message
from ...wire.fields import Json
from ...wire.json_schema import Components
from ...wire.schema import Dump
from ..domain.records import PlainNumber
from .codec import hex
from .codec.params import GETH_PARAMS
from .codec.schemas import SCHEMAS
from .errors import RESPONSE_TOO_LARGE, SERVER_ERROR, TIMED_OUT, EvmError

# geth: rpc/handler.go, maxMethodNameLength.
_LONGEST_METHOD = 2048

_WEBSOCKET_METHODS = ("eth_subscribe", "eth_unsubscribe")
_VERSION = "2.0"
# A string is one token, even if it does not end, so brackets inside it are not counted; a
# search that restarts at each escaped quote would take quadratic time.
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[][{}]', re.DOTALL)
_SCALAR = re.compile(
    rb"true|false|null|"
    rb"-?[0-9]+(?![0-9])(?:\.[0-9]+(?![0-9])|(?!\.))(?:[eE][-+]?[0-9]+|(?![eE]))"
)
# Maximum number of commas in a body. Parsing a million small values would block the process
# for a second; filters and batches have a few thousand.
_MAX_VALUES = 100_000
# Limits for finding the end of the first value in a body with several: number of strings and
# brackets, and bytes. Scanning 5 MB would delay other requests by a tenth of a second.
_MAX_TOKENS, _MAX_SCANNED = 50_000, 1 << 20
_NESTING = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


class _TooManyCalls(BatchTooLarge):
    """Error for a batch over the limit; ``id`` is the ID of its first call."""

    def __init__(self, limit: int, request_id: bytes | None) -> None:
        super().__init__(limit)
        self.id = request_id


class GethEnvelope(Envelope):
    """JSON-RPC bodies by geth's rules, with geth's error messages."""

    lone_reply_is_bare = False
    runs_notifications = True
    statuses: ClassVar[Mapping[type[Exception], HTTPStatus]] = {RPCError: HTTPStatus.OK}

    def _parse(self, body: bytes, max_batch: int) -> Calls:
        """Return the calls of a body; if it has several JSON values, only the first is
        used."""
        values = body.count(b",")
        if values > _MAX_VALUES:
            raise InvalidRequest(
                f"expected at most {_MAX_VALUES} values in a body, got {values};"
                " send several bodies"
            )
        document = _first_value(body)
        if document[:1] != b"[":
            return Calls((_call(document),), is_batch=False)
        elements = jsoncodec.decode(document, list[jsoncodec.Raw])
        if not elements:
            raise InvalidRequest("empty batch")
        if len(elements) > max_batch:
            # Search only this many elements for an ID: a body may have a million elements that
            # are not calls.
            raise _TooManyCalls(max_batch, _first_id(_parsed_calls(elements[:max_batch])))
        return Calls(tuple(_parsed_calls(elements)), is_batch=True)

    def parse_one(self, body: bytes) -> Call | BadCall:
        """Return the single call of a body."""
        return _call(_first_value(body))

    def unknown_method(self, name: str, hint: str) -> RPCError:
        """Return geth's error for an unknown method, with a hint how to enable the method."""
        if name in _WEBSOCKET_METHODS and not hint:
            return MethodNotFound("notifications not supported")
        return MethodNotFound(f"the method {name} does not exist/is not available", hint)

    def invalid_body_response(self, error: RPCError) -> bytes:
        """Return the response to a body that can't be parsed; for a batch over the limit, a
        list with one error."""
        if isinstance(error, _TooManyCalls):
            return b"[" + self.failure(error.id, error) + b"]"
        return self.failure(None, error)

    def code(self, error: RPCError) -> int:
        """Return the JSON-RPC code of an error."""
        return _code_and_text(error)[0]

    def failure(self, request_id: bytes | None, error: RPCError) -> bytes:
        """Return a response with an error object."""
        code, text = _code_and_text(error)
        body: dict[str, object] = {"code": code, "message": text}
        if isinstance(error, EvmError) and error.data is not None:
            body["data"] = error.data
        shown_id = b"null" if request_id is None else request_id
        return (
            b'{"jsonrpc":"2.0","id":' + shown_id + b',"error":' + jsoncodec.encode(body) + b"}"
        )


def _code_and_text(error: RPCError) -> tuple[int, str]:
    match error:
        case BatchTooLarge():
            return error.code, "batch too large (NODERPC_EVM_MAX_BATCH raises it)"
        case AnswerTooLarge():
            return RESPONSE_TOO_LARGE, f"response too large ({error.hint})"
        case BatchTimedOut():
            return TIMED_OUT, f"request timed out ({error.hint})"
        case CallFailed():
            return SERVER_ERROR, error.text_with_hint
        case _:
            return error.code, error.text_with_hint or error.message.lower()


def _first_value(body: bytes) -> bytes:
    """Return the first JSON value of a body; raise :exc:`ParseError` if it has none."""
    body = body.strip(b" \t\r\n")
    try:
        if not _is_json(body):
            # Go's json.Decoder reads a stream of values, and geth uses only the first.
            str(body, "utf-8")
            body = body[: _end_of_value(body)]
            jsoncodec.decode(body, jsoncodec.Raw)
    except (jsoncodec.NotJSON, UnicodeDecodeError):
        raise ParseError("parse error") from None
    return body


def _is_json(body: bytes) -> bool:
    """Return true if the body is one JSON value."""
    try:
        jsoncodec.decode(body, jsoncodec.Raw)
    except jsoncodec.NotJSON:
        return False
    return True


def _end_of_value(body: bytes) -> int:
    """Return the length of the value at the start of a body, 0 if it is incomplete."""
    if body[:1] not in (b"[", b"{", b'"'):
        scalar = _SCALAR.match(body)
        return scalar.end() if scalar else 0
    depth = 0
    for token in islice(_STRING_OR_BRACKET.finditer(body, 0, _MAX_SCANNED), _MAX_TOKENS):
        depth += _NESTING.get(token[0], 0)
        if depth == 0:
            return token.end()
    return 0


def _parsed_calls(elements: Sequence[jsoncodec.Raw]) -> Iterator[Call | BadCall]:
    return (_call(bytes(element)) for element in elements)


def _first_id(items: Iterable[Call | BadCall]) -> bytes | None:
    calls = (item for item in items if isinstance(item, Call))
    return next((call.id for call in calls if call.id is not None), None)


def _call(document: bytes) -> Call | BadCall:
    if document.lstrip()[:1] != b"{":
        return BadCall(InvalidRequest("invalid request"))
    try:
        message = jsoncodec.decode(document, Message)
        method, version = _text(bytes(message.method)), _version(bytes(message.jsonrpc))
    except jsoncodec.NotJSON:
        return BadCall(ParseError("parse error"))
    request_id = bytes(message.id) or None
    if request_id is not None and request_id[:1] in b"{[":
        return BadCall(InvalidRequest("invalid request"))
    if not method or version != _VERSION:
        return BadCall(InvalidRequest("invalid request"), request_id)
    size = len(method.encode())
    if size > _LONGEST_METHOD:
        reason = f"method name too long: {size} > {_LONGEST_METHOD}"
        return BadCall(InvalidRequest(reason), request_id)
    return Call(method, bytes(message.params), request_id)


def _version(raw: bytes) -> str:
    # Evmos accepts calls without this member, and its examples omit it; geth refuses them.
    return _text(raw) if raw else _VERSION


def _text(raw: bytes) -> str:
    return jsoncodec.decode(raw, str) if raw[:1] == b'"' else ""


_PLAIN: dict[type, Json] = {
    NoneType: {"type": "null"},
    bool: {"type": "boolean"},
    str: {"type": "string"},
    float: {"type": "number"},
    int: {"type": "string", "pattern": "^0x(0|[1-9a-f][0-9a-f]*)$"},
    bytes: {"type": "string", "pattern": "^0x([0-9a-f]{2})*$"},
    PlainNumber: {"type": "integer"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
}


class EvmDialect(Dialect):
    """A dialect that encodes every number as a QUANTITY and all bytes as DATA."""

    @cached_property
    def _dumps(self) -> dict[type, Dump]:
        plain: dict[type, Dump] = {
            NoneType: _itself,
            bool: _itself,
            str: _itself,
            float: _itself,
            int: hex.quantity,
            PlainNumber: int,
            bytes: hex.data,
            tuple: self._list,
            dict: self._object,
            object: self._any,
        }
        return super()._dumps | plain

    def described(self, result: type, components: Components) -> Json:
        """Return the JSON Schema of a result type, which also allows null for objects that
        don't exist."""
        if result in (object, jsoncodec.Raw):
            return {}
        found = _PLAIN.get(result) or super().described(result, components)
        return {"anyOf": [found, {"type": "null"}]}

    def _list(self, values: Iterable[Any]) -> Json:
        return [self._any(value) for value in values]

    def _object(self, members: dict[str, Any]) -> Json:
        return {name: self._any(value) for name, value in members.items()}

    def _any(self, value: Any) -> Json:
        return None if value is None else self._dump_of(type(value))(value)


def _itself(value: Any) -> Json:
    return value


EVM = EvmDialect(
    name="evm",
    node_version="",
    schemas=SCHEMAS,
    events={},
    statuses={Forbidden: HTTPStatus.FORBIDDEN},
    envelope=GethEnvelope(),
    params=GETH_PARAMS,
)
