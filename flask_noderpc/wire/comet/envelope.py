"""CometBFT's JSON-RPC envelope, with its errors for invalid bodies.

CometBFT: rpc/jsonrpc. Versions 0.34 to 0.39 and 1.0 behave alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import ClassVar

from ... import jsoncodec
from ...errors import (
    BatchTooLarge,
    BodyTooLarge,
    InternalError,
    InvalidParams,
    ParseError,
    RPCError,
)
from ..envelope import BadCall, Call, Calls, Envelope, Message
from . import gojson
from .gojson import GoError

# CometBFT: types.RPCRequest is decoded through an anonymous struct, and Go's errors show this
# text as its type.
_REQUEST = (
    'struct { JSONRPC string "json:\\"jsonrpc\\""; ID interface {} "json:\\"id,omitempty\\"";'
    ' Method string "json:\\"method\\""; Params json.RawMessage "json:\\"params\\"" }'
)
_NOTIFICATION = Call("", b"", None)
# Go: format of an ID that is neither a string nor a number.
_ID_KINDS = {
    "bool": "bool",
    "object": "map[string]interface {}",
    "array": "[]interface {}",
}


class CometEnvelope(Envelope):
    """Envelope that accepts the same bodies as a CometBFT node, with the node's error texts."""

    empty_body_is_index = True
    has_own_messages = False
    shows_hints = False
    # CometBFT: the response to a call that can't be parsed has no ID.
    null_id_member = b""
    # Encode with a Go node's escapes.
    json = staticmethod(gojson.encode)
    statuses: ClassVar[Mapping[type[Exception], HTTPStatus]] = {
        **Envelope.statuses,
        ParseError: HTTPStatus.INTERNAL_SERVER_ERROR,
        BatchTooLarge: HTTPStatus.OK,
        BodyTooLarge: HTTPStatus.BAD_REQUEST,
    }

    def _parse(self, body: bytes, max_batch: int) -> Calls:
        """Parse the calls of a body; one invalid call invalidates the whole batch."""
        try:
            if body.lstrip()[:1] != b"[":
                return Calls((self._call(body),), is_batch=False)
            elements = _elements(body)
            if len(elements) > max_batch:
                raise BatchTooLarge(max_batch)
            return Calls(tuple(self._in_batch(bytes(each)) for each in elements), True)
        except GoError as error:
            raise _unreadable(error) from None

    def parse_one(self, body: bytes) -> Call | BadCall:
        """Parse the single call of a WebSocket message."""
        try:
            return self._call(body)
        except GoError as error:
            # Go: WebSocket messages are read as streams, whose error text at the end of input
            # differs.
            cut = str(error) == "unexpected end of JSON input"
            raise _unreadable(GoError("unexpected EOF") if cut else error) from None

    def over_websocket(self, error: RPCError) -> RPCError:
        """Return the error as a WebSocket client gets it; CometBFT: invalid parameters on a
        WebSocket are internal errors."""
        if isinstance(error, InvalidParams):
            return InternalError(error.text, error.hint)
        return error

    def _in_batch(self, element: bytes) -> Call:
        try:
            return self._call(element)
        except GoError:
            # CometBFT: a body that is not a list of calls is decoded again as a single call.
            raise gojson.mismatch(b"[", _REQUEST) from None

    def _call(self, document: bytes) -> Call:
        try:
            message = jsoncodec.decode(document, Message)
        except jsoncodec.NotJSON as error:
            if document.strip() == b"null":
                return _NOTIFICATION
            raise _why(document, error) from None
        _text(bytes(message.jsonrpc), "jsonrpc")
        method = _text(bytes(message.method), "method")
        request_id = self._id(bytes(message.id))
        if not request_id:
            return _NOTIFICATION
        return Call(method, bytes(message.params), request_id)

    def _id(self, raw: bytes) -> bytes | None:
        """Return the ID of a call, or ``None`` for a notification."""
        kind = gojson.kind_of(raw) if raw else "null"
        if kind == "null":
            return None
        if kind not in _ID_KINDS:
            return raw
        shown = raw.decode("utf-8", "replace") if kind == "bool" else "..."
        raise GoError(f"json-rpc ID ({shown}) is of unknown type ({_ID_KINDS[kind]})")


def _unreadable(error: GoError) -> ParseError:
    return ParseError(f"error unmarshaling request: {error}")


def _elements(body: bytes) -> list[jsoncodec.Raw]:
    try:
        return jsoncodec.decode(body, list[jsoncodec.Raw])
    except jsoncodec.NotJSON as error:
        raise _why(body, error) from None


def _why(document: bytes, error: jsoncodec.NotJSON) -> GoError:
    if len(document) > gojson.MAX_EXPLAINED:
        return GoError(str(error))
    try:
        gojson.check(document)
    except GoError as reason:
        return reason
    if gojson.kind_of(document) == "object":
        # Go would accept invalid UTF-8 and lone surrogates.
        return GoError("a string is not valid Unicode")
    return gojson.mismatch(document, _REQUEST)


def _text(raw: bytes, field: str) -> str:
    kind = gojson.kind_of(raw) if raw else "null"
    if kind == "null":
        return ""
    if kind != "string":
        raise GoError(
            f"json: cannot unmarshal {kind} into Go struct field .{field} of type string"
        )
    return gojson.string(raw)
