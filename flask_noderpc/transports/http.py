"""GET with a query string, and POST with a JSON-RPC body."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from flask import Response, request
from werkzeug.datastructures import CombinedMultiDict
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from ..errors import (
    BodyEncoded,
    BodyTooLarge,
    InvalidParams,
    InvalidRequest,
    OriginRefused,
    RPCError,
)
from ..rpc.dispatch import Dispatcher, Reply
from ..wire.envelope import URI_ID
from .origin import UNWANTED, Standing

# CometBFT: what cacheable answers carry.
_CACHE_CONTROL = "public, max-age=86400"
# Go: net/http, Request.ParseForm: with other methods such a form is not read.
_FORM = "application/x-www-form-urlencoded"
_FORM_METHODS = ("POST", "PUT", "PATCH")


def answer_get(
    dispatcher: Dispatcher, name: str, standing: Standing, values: Mapping[str, str]
) -> Response:
    """The answer to ``/<route>`` with its parameters."""
    if not standing.may_read:
        return _response(dispatcher.failed(URI_ID, OriginRefused(UNWANTED)))
    return _response(dispatcher.get(name, values, may_write=standing.may_write))


def sent_values(max_body: int, *, forms: bool) -> Mapping[str, str]:
    """The parameters of the URL, and with ``forms`` behind them those of a form in the body.

    Raise :exc:`~flask_noderpc.errors.InvalidParams` for what is no text, and
    :exc:`~flask_noderpc.errors.BodyTooLarge`.
    """
    _require_text(request.query_string, "query string")
    is_plain = request.mimetype == _FORM
    if not forms or (is_plain and request.method not in _FORM_METHODS):
        return request.args
    limit = _limit_body(max_body)
    try:
        if is_plain:
            _require_text(request.get_data(), "form")
        return CombinedMultiDict([request.args, request.form])
    except RequestEntityTooLarge:
        raise BodyTooLarge(limit) from None


def _require_text(escaped: bytes, what: str) -> None:
    # Werkzeug would leave an escape as it is, and a transaction would be another.
    try:
        unquote_to_bytes(escaped).decode()
    except UnicodeDecodeError:
        raise InvalidParams(
            f"the {what} is no UTF-8; write other bytes as hex behind 0x"
        ) from None


def answer_post(dispatcher: Dispatcher, body: bytes, standing: Standing) -> Response:
    """The answer to a JSON-RPC body; its content type does not matter."""
    if not standing.may_read:
        return _response(dispatcher.failed(None, OriginRefused(UNWANTED)))
    return _response(dispatcher.post(body, may_write=standing.may_write))


def read_body(max_body: int) -> bytes:
    """The body of the current request; raise :exc:`~flask_noderpc.errors.InvalidRequest`."""
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise BodyEncoded(f"send the body without Content-Encoding: {encoding}")
    limit = _limit_body(max_body)
    try:
        body = request.get_data(cache=False)
    except RequestEntityTooLarge:
        raise BodyTooLarge(limit) from None
    except (HTTPException, OSError):
        raise InvalidRequest("the body could not be read to its end") from None
    if len(body) > limit:
        raise BodyTooLarge(limit)
    return body


def _limit_body(max_body: int) -> int:
    limit = min(max_body, request.max_content_length or max_body)
    # One more, as werkzeug cuts a body that came without a length, and does not say so.
    request.max_content_length = limit + 1
    return limit


def refuse_get(dispatcher: Dispatcher, error: RPCError) -> Response:
    """The answer to parameters that can't be read."""
    return _response(dispatcher.failed(URI_ID, error))


def refuse(dispatcher: Dispatcher, error: RPCError) -> Response:
    """The answer to a body that can't be read."""
    return _response(dispatcher.refused(error))


def _response(reply: Reply) -> Response:
    response = Response(reply.body, reply.status, mimetype="application/json")
    if reply.cacheable:
        response.headers["Cache-Control"] = _CACHE_CONTROL
    if not reply.body:
        # CometBFT: notifications are answered with nothing, not even a type.
        del response.headers["Content-Type"]
    return response
