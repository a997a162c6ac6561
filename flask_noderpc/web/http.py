"""Flask's adapter to the HTTP rules: heads and bodies of requests, and responses."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from http import HTTPStatus

from flask import Response, request
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import HTTP_STATUS_CODES

from ..errors import BodyTooLarge, InvalidRequest
from ..jsonrpc.dispatch import Dispatcher
from ..jsonrpc.query import check_text, is_utf8, not_utf8, values_of
from .rules import head as rules
from .rules.admit import FORM, Refusal
from .rules.render import render_refusal

LOOPBACK = "noderpc.loopback"
"""Set in the environ by a server whose address only this machine reaches, and no proxy."""

_PART = 1 << 16
"""Bytes of a discarded body that are read at once."""


def head_of(endpoint: str = "", *, has_body: bool = False) -> rules.Head:
    """Return the head of the current request; with what describes its body if it may have one.

    Host and client are those that the application's own middleware left.
    """
    environ = request.environ
    head = rules.Head(
        endpoint,
        request.method,
        request.host,
        request.remote_addr or "",
        environ,
        on_loopback=LOOPBACK in environ,
    )
    if not has_body:
        return head
    return head._replace(
        content_length=request.content_length,
        mimetype=request.mimetype,
        max_body=request.max_content_length,
    )


class _Response(Response):
    # The rules say of what type a body is; an empty one has none.
    default_mimetype = None


def to_flask(response: rules.Response) -> Response:
    """Return a response as Flask's."""
    return _Response(response.body, status_line(response.status), response.headers)


@cache
def status_line(status: HTTPStatus) -> str:
    """Return the status with its phrase as in RFC 9110; Werkzeug's is upper case."""
    return f"{status.value} {HTTP_STATUS_CODES.get(status.value, status.phrase)}"


def refuse(head: rules.Head, refusal: Refusal, dispatcher: Dispatcher) -> Response:
    """Discard the body of a refused request; return the response."""
    if refusal.max_body:
        _discard(refusal.bytes_to_discard(head))
    return to_flask(render_refusal(head, refusal, dispatcher))


def read_body(limit: int, *, cache: bool = False) -> bytes:
    """Return the request's body; raise :exc:`~flask_noderpc.errors.InvalidRequest`."""
    # One more, as werkzeug cuts a body that came without a length, and does not say so.
    request.max_content_length = limit + 1
    try:
        body = request.get_data(cache=cache)
    except RequestEntityTooLarge:
        raise BodyTooLarge(limit) from None
    except Exception:
        # Each server has errors of its own, gunicorn plain ones for broken chunks.
        raise InvalidRequest("the body could not be read to its end") from None
    if len(body) > limit:
        raise BodyTooLarge(limit)
    return body


def read_form(limit: int) -> Mapping[str, str]:
    """Return the values of the URL and the form, those of the URL first.

    Raise :exc:`~flask_noderpc.errors.InvalidRequest`, or
    :exc:`~flask_noderpc.errors.InvalidParams` for values that are not UTF-8.
    """
    body = read_body(limit, cache=True)
    if request.mimetype == FORM:
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


def _discard(size: int) -> None:
    if not size:
        return
    # Werkzeug knows what is left, where a host has read of it.
    request.max_content_length = size
    with suppress(Exception):
        while request.stream.read(_PART):
            pass
