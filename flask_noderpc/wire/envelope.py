"""The envelope of calls and replies: JSON-RPC 2.0, bytes to calls and replies to bytes.

Ids and parameters stay raw bytes: an id is echoed as it came, digit for digit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import ClassVar, Literal

from .. import jsoncodec
from ..errors import (
    BatchTooLarge,
    BodyEncoded,
    BodyTooLarge,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    RPCError,
)

# CometBFT: every answer to a GET carries this id.
URI_ID = b"-1"


_MAX_NAME_SHOWN = 64


class Message(jsoncodec.Struct):
    """A request object, its members unread."""

    jsonrpc: jsoncodec.Raw = jsoncodec.Raw(b"")
    id: jsoncodec.Raw = jsoncodec.Raw(b"")
    method: jsoncodec.Raw = jsoncodec.Raw(b"")
    params: jsoncodec.Raw = jsoncodec.Raw(b"")


class Call(jsoncodec.Struct, frozen=True):
    """One call; without an id it is a notification and gets no reply."""

    method: str
    params: bytes
    id: bytes | None


class _PlainCall(jsoncodec.Struct):
    """A call of a kind that every envelope takes, and for the same."""

    jsonrpc: Literal["2.0"]
    id: jsoncodec.Raw
    method: str
    params: jsoncodec.Raw = jsoncodec.Raw(b"")


@dataclass(frozen=True, slots=True)
class BadCall:
    """Something in the place of a call that is none."""

    error: RPCError
    id: bytes | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """The content of one body."""

    items: tuple[Call | BadCall, ...]
    is_batch: bool


class Envelope:
    """The document's envelope: JSON-RPC 2.0; another dialect overrides entries."""

    lone_reply_is_bare = True
    """CometBFT: a batch with one reply is answered with that reply, not a list."""
    empty_body_is_index = False
    """Whether a call without a body gets the index page."""
    runs_notifications = False
    """CometBFT: a call without an id is not even executed."""
    names_cures = True
    """Whether errors say what to do about them, beside what a real node says."""
    nobody = b'"id":null,'
    """In the place of an id that could not be read."""
    statuses: ClassVar[Mapping[type[Exception], HTTPStatus]] = {
        InvalidRequest: HTTPStatus.BAD_REQUEST,
        ParseError: HTTPStatus.BAD_REQUEST,
        BodyTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        BodyEncoded: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    }
    """Of a body that holds no calls, by what is wrong with it; a call that fails is a 200."""

    def parse(self, body: bytes, max_batch: int) -> Calls:
        """The calls of a body.

        Raise :exc:`~flask_noderpc.errors.ParseError` for what is not JSON, and
        :exc:`~flask_noderpc.errors.InvalidRequest` for an empty or oversize batch.
        """
        return _plain_batch(body, max_batch) or self._parse(body, max_batch)

    def _parse(self, body: bytes, max_batch: int) -> Calls:
        """The same of a body whatever it holds."""
        try:
            if body.lstrip()[:1] != b"[":
                return Calls((self._call(body),), is_batch=False)
            elements = jsoncodec.decode(body, list[jsoncodec.Raw])
        except jsoncodec.NotJSON as error:
            raise ParseError(str(error)) from None
        if not elements:
            raise InvalidRequest("the batch is empty")
        if len(elements) > max_batch:
            raise BatchTooLarge(max_batch)
        return Calls(tuple(self._call(bytes(element)) for element in elements), is_batch=True)

    def parse_one(self, body: bytes) -> Call | BadCall:
        """The one call of a body; raise :exc:`~flask_noderpc.errors.ParseError`."""
        try:
            return self._call(body)
        except jsoncodec.NotJSON as error:
            raise ParseError(str(error)) from None

    def _call(self, document: bytes) -> Call | BadCall:
        if document.lstrip()[:1] != b"{":
            jsoncodec.decode(document, jsoncodec.Raw)
            return BadCall(InvalidRequest("a request is a JSON object"))
        message = jsoncodec.decode(document, Message)
        request_id = _id(bytes(message.id))
        if isinstance(request_id, BadCall):
            return request_id
        # Only a text is read: a number may be JSON and still be out of every range.
        if bytes(message.method)[:1] != b'"':
            return BadCall(InvalidRequest("method must be a text"), request_id)
        return Call(jsoncodec.decode(message.method, str), bytes(message.params), request_id)

    def status_of(self, error: RPCError) -> HTTPStatus:
        """The status for a body that holds no calls."""
        return nearest(self.statuses, error)

    def unknown_method(self, name: str, hint: str) -> RPCError:
        """The error for a method that is not there; ``hint`` says what would bring it."""
        return MethodNotFound(hint=hint or f"no method {name[:_MAX_NAME_SHOWN]!r}")

    def refusal(self, error: RPCError) -> bytes:
        """The reply to a body that holds no calls."""
        return self.failure(None, error)

    def over_websocket(self, error: RPCError) -> RPCError:
        """The error of a call as it is said over a websocket."""
        return error

    def code(self, error: RPCError) -> int:
        """The code that an error is told with."""
        return error.code

    def success(
        self, request_id: bytes, result: bytes | memoryview, error_member: bool
    ) -> bytes:
        """A reply with an encoded result."""
        before, behind = self.around(request_id, error_member)
        return b"".join((before, result, behind))

    def around(self, request_id: bytes, error_member: bool) -> tuple[bytes, bytes]:
        """What stands before and behind a result."""
        return (
            b'{"jsonrpc":"2.0","id":' + request_id + b',"result":',
            b',"error":""}' if error_member else b"}",
        )

    def failure(self, request_id: bytes | None, error: RPCError) -> bytes:
        """A reply with an error object; without an id where it could not be read."""
        body: dict[str, object] = {"code": error.code, "message": error.message}
        said = error.text_with_hint if self.names_cures else error.text
        if said:
            body["data"] = said
        shown_id = self.nobody if request_id is None else b'"id":' + request_id + b","
        return b'{"jsonrpc":"2.0",' + shown_id + b'"error":' + jsoncodec.encode(body) + b"}"

    def batch(self, replies: Sequence[bytes]) -> bytes:
        """Several replies as one array."""
        return b"[" + b",".join(replies) + b"]"


def nearest(statuses: Mapping[type[Exception], HTTPStatus], error: Exception) -> HTTPStatus:
    """The status of the nearest kind of this error; 500 is of all others."""
    for kind in type(error).__mro__:
        if kind in statuses:
            return statuses[kind]
    return HTTPStatus.INTERNAL_SERVER_ERROR


def _plain_batch(body: bytes, max_batch: int) -> Calls | None:
    """The calls of a batch in one go, if there is nothing else in it; most are such."""
    if body[:1] != b"[":
        return None
    try:
        found = jsoncodec.decode(body, list[_PlainCall])
    except jsoncodec.NotJSON:
        return None
    if not 0 < len(found) <= max_batch:
        return None
    calls = []
    for one in found:
        request_id = bytes(one.id)
        if not _names(request_id) or not 0 < len(one.method) <= _MAX_NAME_SHOWN:
            return None
        calls.append(Call(one.method, bytes(one.params), request_id))
    return Calls(tuple(calls), is_batch=True)


def _names(request_id: bytes) -> bool:
    """Whether an id is a text or a number."""
    return request_id[:1] in b'"-0123456789'


def _id(raw: bytes) -> bytes | BadCall | None:
    if raw in (b"", b"null"):
        return None
    # Bool, object and array are no ids; strings and numbers of any size are.
    if _names(raw):
        return raw
    return BadCall(InvalidRequest("id must be a text, a number or null"))
