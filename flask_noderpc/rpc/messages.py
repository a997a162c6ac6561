"""JSON-RPC 2.0 messages: bytes to calls, results and errors to bytes.

Ids and parameters stay raw bytes: an id is echoed as it came, digit for digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import json
from ..errors import InvalidRequest, ParseError, RPCError

NO_ID = b"null"
# CometBFT: every answer to a GET carries this id.
URI_ID = b"-1"


class _Message(json.Struct):
    """A request object, its members unread."""

    jsonrpc: json.Raw = json.Raw(b"")
    id: json.Raw = json.Raw(b"")
    method: json.Raw = json.Raw(b"")
    params: json.Raw = json.Raw(b"")


@dataclass(frozen=True, slots=True)
class Call:
    """One call; without an id it is a notification and gets no reply."""

    method: str
    params: bytes
    id: bytes | None


@dataclass(frozen=True, slots=True)
class BadCall:
    """Something in the place of a call that is none."""

    error: RPCError
    id: bytes = NO_ID


@dataclass(frozen=True, slots=True)
class Calls:
    """The content of one body."""

    items: tuple[Call | BadCall, ...]
    is_batch: bool


def parse(body: bytes, max_batch: int) -> Calls:
    """The calls of a body.

    Raise :exc:`~flask_noderpc.errors.ParseError` for what is not JSON, and
    :exc:`~flask_noderpc.errors.InvalidRequest` for an empty or oversize batch.
    """
    try:
        if body.lstrip()[:1] != b"[":
            return Calls((_call(body),), is_batch=False)
        elements = json.decode(body, list[json.Raw])
    except json.NotJSON as error:
        raise ParseError(str(error)) from None
    if not elements:
        raise InvalidRequest("the batch is empty")
    if len(elements) > max_batch:
        raise InvalidRequest(
            f"batch request exceeds maximum ({max_batch}) allowed number of requests"
            " (NODERPC_MAX_BATCH raises it)"
        )
    return Calls(tuple(_call(bytes(element)) for element in elements), is_batch=True)


def parse_one(body: bytes) -> Call | BadCall:
    """The one call of a body; raise :exc:`~flask_noderpc.errors.ParseError`."""
    try:
        return _call(body)
    except json.NotJSON as error:
        raise ParseError(str(error)) from None


def _call(document: bytes) -> Call | BadCall:
    if document.lstrip()[:1] != b"{":
        json.decode(document, json.Raw)
        return BadCall(InvalidRequest("a request is a JSON object"))
    message = json.decode(document, _Message)
    own_id = _id(bytes(message.id))
    if isinstance(own_id, BadCall):
        return own_id
    # Only a text is read: a number may be JSON and still be out of every range.
    if bytes(message.method)[:1] != b'"':
        return BadCall(InvalidRequest("method must be a text"), own_id or NO_ID)
    return Call(json.decode(message.method, str), bytes(message.params), own_id)


def _id(raw: bytes) -> bytes | BadCall | None:
    if raw in (b"", b"null"):
        return None
    # Bool, object and array are no ids; strings and numbers of any size are.
    if raw[:1] in b'"-0123456789':
        return raw
    return BadCall(InvalidRequest("id must be a text, a number or null"))


def success(own_id: bytes, result: bytes, error_member: bool) -> bytes:
    """A reply with an encoded result."""
    tail = b',"error":""}' if error_member else b"}"
    return b'{"jsonrpc":"2.0","id":' + own_id + b',"result":' + result + tail


def failure(own_id: bytes, error: RPCError) -> bytes:
    """A reply with an error object."""
    body: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return b'{"jsonrpc":"2.0","id":' + own_id + b',"error":' + json.encode(body) + b"}"


def batch(replies: Sequence[bytes]) -> bytes:
    """Several replies as one array."""
    return b"[" + b",".join(replies) + b"]"
