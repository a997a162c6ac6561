"""JSON-RPC 2.0 envelope: parses request bodies into calls, and encodes responses.

IDs and parameters stay raw bytes, as a response repeats the ID byte for byte.
"""

from __future__ import annotations

import re
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
    ValueRefused,
)

# CometBFT: ID of every response to a GET.
URI_ID = b"-1"


_MAX_NAME_SHOWN = 64


class Message(jsoncodec.Struct):
    """Request object with its members as raw JSON; an empty one is missing."""

    jsonrpc: jsoncodec.Raw = jsoncodec.Raw(b"")
    id: jsoncodec.Raw = jsoncodec.Raw(b"")
    method: jsoncodec.Raw = jsoncodec.Raw(b"")
    params: jsoncodec.Raw = jsoncodec.Raw(b"")


class Call(jsoncodec.Struct, frozen=True):
    """JSON-RPC call; without an ID it is a notification and gets no response."""

    method: str
    params: bytes
    id: bytes | None


class _PlainCall(jsoncodec.Struct):
    """Call with exactly these members and types, which all dialects parse alike."""

    jsonrpc: Literal["2.0"]
    id: jsoncodec.Raw
    method: str
    params: jsoncodec.Raw = jsoncodec.Raw(b"")


@dataclass(frozen=True, slots=True)
class BadCall:
    """Element of a batch that is not a valid call."""

    error: RPCError
    id: bytes | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of one request body."""

    items: tuple[Call | BadCall, ...]
    is_batch: bool


class LargeBody:
    """A response in parts, so that several responses share the memory of a large result."""

    def __init__(self, *parts: bytes | memoryview) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __bytes__(self) -> bytes:
        return b"".join(self.parts)


ResponseBody = bytes | LargeBody
# Size of a result from which its responses are large bodies.
_LARGE_BYTES = 1 << 20


class Envelope:
    """JSON-RPC 2.0 envelope of the document; other dialects override its attributes."""

    lone_reply_is_bare = True
    """True if a batch with only one response gets this response without an array around it, as
    in CometBFT."""
    empty_body_is_index = False
    """True if the response to a POST without a body is the index page."""
    runs_notifications = False
    """True if a call without an ID is executed; CometBFT ignores it."""
    has_own_messages = True
    """True if the message about a refused value is not the one of a real node."""
    shows_hints = True
    """True if errors contain hints in addition to the texts of a real node."""
    null_id_member = b'"id":null,'
    """ID member of the response to a call whose ID could not be parsed."""
    json = staticmethod(jsoncodec.encode)
    """Function that encodes a result, an error or an event."""
    statuses: ClassVar[Mapping[type[Exception], HTTPStatus]] = {
        InvalidRequest: HTTPStatus.BAD_REQUEST,
        ParseError: HTTPStatus.BAD_REQUEST,
        BodyTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        BodyEncoded: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    }
    """HTTP status of the response to an invalid body, by class of the error; the response to a
    failed call has the status 200."""

    def parse(self, body: bytes, max_batch: int) -> Calls:
        """Parse the calls of a body.

        Raise :exc:`~flask_noderpc.errors.ParseError` if the body is not JSON, and
        :exc:`~flask_noderpc.errors.InvalidRequest` for an empty or oversize batch.
        """
        return _plain_calls(body, max_batch) or self._parse(body, max_batch)

    def _parse(self, body: bytes, max_batch: int) -> Calls:
        """Parse a body that :func:`_plain_calls` does not parse."""
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
        """Parse the single call of a body; raise :exc:`~flask_noderpc.errors.ParseError`."""
        try:
            return self._call(body)
        except jsoncodec.NotJSON as error:
            raise ParseError(str(error)) from None

    def _call(self, document: bytes) -> Call | BadCall:
        if document.lstrip()[:1] != b"{":
            jsoncodec.decode(document, jsoncodec.Raw)
            return BadCall(InvalidRequest("expected a JSON object as request"))
        message = jsoncodec.decode(document, Message)
        request_id = _id(bytes(message.id))
        if isinstance(request_id, BadCall):
            return request_id
        # Decode the method only if it is a string: a number may be valid JSON but out of
        # range.
        if bytes(message.method)[:1] != b'"':
            return BadCall(InvalidRequest("method must be a string"), request_id)
        return Call(jsoncodec.decode(message.method, str), bytes(message.params), request_id)

    def status_of(self, error: RPCError) -> HTTPStatus:
        """Return the HTTP status of the response to an invalid body."""
        return nearest(self.statuses, error)

    def unknown_method(self, name: str, hint: str) -> RPCError:
        """Return the error for an unknown method; ``hint`` names the setting that enables the
        method, or is empty."""
        return MethodNotFound(hint=hint or f"no method {name[:_MAX_NAME_SHOWN]!r}")

    def invalid_body_response(self, error: RPCError) -> bytes:
        """Return the response to an invalid body."""
        return self.failure(None, error)

    def over_websocket(self, error: RPCError) -> RPCError:
        """Return the error that a WebSocket client gets for the error of a call."""
        return error

    def code(self, error: RPCError) -> int:
        """Return the JSON-RPC code of an error."""
        return error.code

    def success(
        self, request_id: bytes, result: bytes | memoryview, error_member: bool
    ) -> ResponseBody:
        """Return the response of a call whose result is encoded; ``error_member`` adds an
        empty ``error``."""
        before, behind = self.result_frame(request_id, error_member)
        if len(result) > _LARGE_BYTES:
            return LargeBody(before, result, behind)
        return b"".join((before, result, behind))

    def result_frame(self, request_id: bytes, error_member: bool) -> tuple[bytes, bytes]:
        """Return the bytes before and after a result in its response."""
        return (
            b'{"jsonrpc":"2.0","id":' + request_id + b',"result":',
            b',"error":""}' if error_member else b"}",
        )

    def failure(self, request_id: bytes | None, error: RPCError) -> bytes:
        """Return the response with an error object; the ID is null if ``request_id`` is
        ``None``."""
        body: dict[str, object] = {"code": error.code, "message": error.message}
        if self.has_own_messages and isinstance(error, ValueRefused):
            body["message"] = error.own_message
        detail = error.text_with_hint if self.shows_hints else error.text
        if detail:
            body["data"] = detail
        shown_id = self.null_id_member if request_id is None else b'"id":' + request_id + b","
        return b'{"jsonrpc":"2.0",' + shown_id + b'"error":' + self.json(body) + b"}"

    def batch(self, replies: Sequence[bytes]) -> bytes:
        """Join several responses into one JSON array."""
        return b"[" + b",".join(replies) + b"]"


def nearest(statuses: Mapping[type[Exception], HTTPStatus], error: Exception) -> HTTPStatus:
    """Return the status of the class of an error, or of its nearest base class in
    ``statuses``; 500 if neither is listed."""
    for kind in type(error).__mro__:
        if kind in statuses:
            return statuses[kind]
    return HTTPStatus.INTERNAL_SERVER_ERROR


# A string, or a whole number that fits in 64 bits: some versions of CometBFT refuse others.
_PLAIN_ID = re.compile(rb'".*"|-?\d{1,18}', re.DOTALL)


def _plain_calls(body: bytes, max_batch: int) -> Calls | None:
    """Parse plain calls, as most are, in one pass; return ``None`` for other bodies."""
    is_batch = body[:1] == b"["
    try:
        if is_batch:
            found = jsoncodec.decode(body, list[_PlainCall])
        else:
            found = [jsoncodec.decode(body, _PlainCall)]
    except jsoncodec.NotJSON:
        return None
    if not 0 < len(found) <= max_batch:
        return None
    calls = []
    for one in found:
        request_id = bytes(one.id)
        if not _PLAIN_ID.fullmatch(request_id) or not 0 < len(one.method) <= _MAX_NAME_SHOWN:
            return None
        calls.append(Call(one.method, bytes(one.params), request_id))
    return Calls(tuple(calls), is_batch)


def _is_valid_id(request_id: bytes) -> bool:
    """Return True if an ID is a string or a number."""
    return request_id[:1] in b'"-0123456789'


def _id(raw: bytes) -> bytes | BadCall | None:
    if raw in (b"", b"null"):
        return None
    # The ID is not decoded, so that numbers may have any size.
    if _is_valid_id(raw):
        return raw
    return BadCall(InvalidRequest("id must be a string, a number or null"))
