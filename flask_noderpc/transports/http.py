"""GET with a query string, and POST with a JSON-RPC body."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from flask import Response, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from ..errors import InvalidParams, InvalidRequest, OriginRefused
from ..rpc.dispatch import Dispatcher, Reply, to_rpc_error
from ..rpc.messages import NO_ID, URI_ID, failure
from ..settings import Settings
from .origin import UNWANTED, Standing

# CometBFT: what cacheable answers carry.
_CACHE_CONTROL = "public, max-age=86400"


def answer_get(dispatcher: Dispatcher, name: str, standing: Standing) -> Response:
    """The answer to ``GET /<route>?…``."""
    if not standing.may_read:
        return _unwanted(URI_ID)
    if b"%" in request.query_string and not _is_utf8(unquote_to_bytes(request.query_string)):
        # Werkzeug would leave such an escape as it is, and a transaction would be another.
        error = InvalidParams(
            "the query string is no UTF-8; write other bytes as hex behind 0x"
        )
        return _response(Reply(HTTPStatus.BAD_REQUEST, failure(URI_ID, error)))
    return _response(dispatcher.get(name, request.args, may_write=standing.may_write))


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def answer_post(dispatcher: Dispatcher, settings: Settings, standing: Standing) -> Response:
    """The answer to a JSON-RPC body; its content type does not matter."""
    if not standing.may_read:
        return _unwanted(NO_ID)
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        return _refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"send the body without Content-Encoding: {encoding}",
        )
    limit = min(settings.max_body_bytes, request.max_content_length or settings.max_body_bytes)
    # One more, as werkzeug cuts a body that came without a length, and does not say so.
    request.max_content_length = limit + 1
    try:
        body = request.get_data(cache=False)
    except RequestEntityTooLarge:
        return _too_large(limit)
    except (HTTPException, OSError):
        return _refusal(HTTPStatus.BAD_REQUEST, "the body could not be read to its end")
    if len(body) > limit:
        return _too_large(limit)
    return _response(dispatcher.post(body, may_write=standing.may_write))


def _too_large(limit: int) -> Response:
    return _refusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the body is larger than {limit} bytes (NODERPC_MAX_BODY_BYTES raises it,"
        " MAX_CONTENT_LENGTH of the app lowers it)",
    )


def _unwanted(own_id: bytes) -> Response:
    return _response(
        Reply(HTTPStatus.FORBIDDEN, failure(own_id, to_rpc_error(OriginRefused(UNWANTED))))
    )


def _refusal(status: HTTPStatus, reason: str) -> Response:
    return _response(Reply(status, failure(NO_ID, InvalidRequest(reason))))


def _response(reply: Reply) -> Response:
    response = Response(reply.body, reply.status, mimetype="application/json")
    if reply.cacheable:
        response.headers["Cache-Control"] = _CACHE_CONTROL
    if not reply.body:
        # CometBFT: notifications are answered with nothing, not even a type.
        del response.headers["Content-Type"]
    return response
