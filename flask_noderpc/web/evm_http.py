"""HTTP of the EVM layer, with geth's checks of requests."""

from __future__ import annotations

from http import HTTPStatus

from flask import Response, request

from ..errors import InvalidRequest, ParseError
from ..jsonrpc.dispatch import Dispatcher
from .http import answer_post, discard_body, read_body, refuse
from .origin import Permissions

# geth: rpc/http.go.
_CONTENT_TYPES = {"application/json", "application/json-rpc", "application/jsonrequest"}


def answer_evm(dispatcher: Dispatcher, max_body: int, permissions: Permissions) -> Response:
    """Answer a request of the EVM layer."""
    if request.method == "GET" and not request.content_length and not request.query_string:
        # geth: the health check of load balancers.
        return Response(b"", HTTPStatus.OK)
    refusal = _refusal(max_body)
    if refusal is not None:
        discard_body(max_body)
        return refusal
    try:
        body = read_body(max_body)
    except InvalidRequest:
        # geth: it reads as far as it may, and that is no JSON.
        return refuse(dispatcher, ParseError("parse error"))
    return answer_post(dispatcher, body, permissions) if body else Response(b"", HTTPStatus.OK)


def _refusal(max_body: int) -> Response | None:
    size = request.content_length or 0
    if request.method in ("PUT", "DELETE"):
        return _plain_text("method not allowed", HTTPStatus.METHOD_NOT_ALLOWED)
    if size > max_body:
        return _plain_text(
            f"content length too large ({size}>{max_body});"
            " NODERPC_EVM_MAX_BODY_BYTES raises it",
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        )
    if request.mimetype not in _CONTENT_TYPES:
        return _plain_text(
            "invalid content type, only application/json is supported",
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )
    return None


def _plain_text(text: str, status: HTTPStatus) -> Response:
    return Response(f"{text}\n", status, {"X-Content-Type-Options": "nosniff"}, "text/plain")
