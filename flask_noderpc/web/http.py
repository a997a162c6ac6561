"""GET with a query string, and POST with a JSON-RPC body."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from http import HTTPStatus

from flask import Response, request
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import HTTP_STATUS_CODES

from ..errors import (
    BodyEncoded,
    BodyTooLarge,
    InvalidParams,
    InvalidRequest,
    OriginRefused,
    RPCError,
)
from ..jsonrpc.dispatch import Dispatcher
from ..jsonrpc.query import check_text, is_utf8, not_utf8, values_of
from ..jsonrpc.reply import Reply
from ..wire.envelope import URI_ID
from .client import sender_of
from .origin import ORIGIN_DENIED, Permissions

REPRODUCIBLE = "flask_noderpc.reproducible"
"""Environ key of a request's reproducible result."""

# CometBFT: the header of cacheable answers.
_CACHE_CONTROL = "public, max-age=86400"

_PART = 1 << 16
"""Bytes of a discarded body that are read at once."""

_FORM_METHODS = ("POST", "PUT", "PATCH")
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def answer_get(
    dispatcher: Dispatcher, name: str, permissions: Permissions, max_form: int | None = None
) -> Response:
    """Return the answer to ``/<route>`` with its parameters; those of the URL precede those
    of a form, whose body may have ``max_form`` bytes."""
    if not permissions.may_read:
        return _response(dispatcher.failed(URI_ID, OriginRefused(ORIGIN_DENIED)))
    try:
        values = request.query_string if max_form is None else _with_form(max_form)
    except InvalidParams as error:
        return _response(dispatcher.failed(URI_ID, error))
    except InvalidRequest as error:
        return refuse(dispatcher, error)
    return _response(dispatcher.get(name, values, sender_of(permissions)))


def _with_form(max_body: int) -> bytes | Mapping[str, str]:
    """Return the query string, or the values of it and of the form."""
    is_plain = request.mimetype == _FORMS[0]
    # Go: net/http, Request.ParseForm: with other methods such a form is not read.
    if request.mimetype not in _FORMS or (is_plain and request.method not in _FORM_METHODS):
        return request.query_string
    body, limit = _body(max_body, cache=True)
    if is_plain:
        check_text("form", body)
        # Flask bounds the parts of the other kind alone.
        if body.count(b"&") >= (request.max_form_parts or len(body)):
            raise BodyTooLarge(limit)
    elif not is_utf8(body):
        raise not_utf8("form")
    try:
        return ChainMap(dict(values_of(request.query_string)), request.form)
    except RequestEntityTooLarge:
        raise BodyTooLarge(limit) from None


def answer_post(dispatcher: Dispatcher, body: bytes, permissions: Permissions) -> Response:
    """Return the answer to a JSON-RPC body; its content type does not matter."""
    if not permissions.may_read:
        return _response(dispatcher.failed(None, OriginRefused(ORIGIN_DENIED)))
    return _response(dispatcher.post(body, sender_of(permissions)))


def read_body(max_body: int) -> bytes:
    """Return the request's body; raise :exc:`~flask_noderpc.errors.InvalidRequest`."""
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        discard_body(max_body)
        raise BodyEncoded(f"send the body without Content-Encoding: {encoding}")
    return _body(max_body, cache=False)[0]


def _body(max_body: int, *, cache: bool) -> tuple[bytes, int]:
    """Return the body and its limit; raise :exc:`~flask_noderpc.errors.InvalidRequest`."""
    limit = _limit_body(max_body)
    try:
        body = request.get_data(cache=cache)
    except RequestEntityTooLarge:
        discard_body(limit)
        raise BodyTooLarge(limit) from None
    except Exception:
        # Each server has errors of its own, gunicorn plain ones for broken chunks.
        raise InvalidRequest("the body could not be read to its end") from None
    if len(body) > limit:
        raise BodyTooLarge(limit)
    return body, limit


def discard_body(limit: int) -> None:
    """Read a body that is refused, if it is at most twice as long as it may be.

    A server that is to close while somebody sends cuts the connection, and then a proxy answers
    its client with a bad gateway instead.
    """
    size = request.content_length or 0
    # A client that expects 100-continue gets the answer now.
    if not 0 < size <= 2 * limit or "HTTP_EXPECT" in request.environ:
        return
    # Werkzeug knows what is left, where a host has read of it.
    request.max_content_length = size
    with suppress(Exception):
        while request.stream.read(_PART):
            pass


def _limit_body(max_body: int) -> int:
    limit = min(max_body, request.max_content_length or max_body)
    # One more, as werkzeug cuts a body that came without a length, and does not say so.
    request.max_content_length = limit + 1
    return limit


def refuse(dispatcher: Dispatcher, error: RPCError) -> Response:
    """Return the answer to a body that can't be read."""
    return _response(dispatcher.refused(error))


class _RPCResponse(Response):
    # CometBFT: notifications are answered with nothing, not even a type.
    default_mimetype = None


def _response(reply: Reply) -> Response:
    headers = [("Content-Type", "application/json")] if reply.body else []
    if reply.cacheable:
        headers.append(("Cache-Control", _CACHE_CONTROL))
    environ = request.environ
    if reply.reproducible is not None:
        environ[REPRODUCIBLE] = reply.reproducible
    if reply.etag:
        headers.append(("ETag", f'"{reply.etag}"'))
        if "HTTP_IF_NONE_MATCH" in environ and _is_known(reply.etag):
            return _RPCResponse(b"", status_line(HTTPStatus.NOT_MODIFIED), headers)
    return _RPCResponse(reply.body, status_line(reply.status), headers)


@cache
def status_line(status: HTTPStatus) -> str:
    """Return the status with its phrase as in RFC 9110; Werkzeug's is upper case."""
    return f"{status.value} {HTTP_STATUS_CODES[status.value]}"


def _is_known(etag: str) -> bool:
    is_read = request.method in ("GET", "HEAD")
    # RFC 9110, 13.1.2: a proxy that compresses makes the tag a weak one.
    return is_read and request.if_none_match.contains_weak(etag)
