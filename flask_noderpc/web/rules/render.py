"""Responses to admitted requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus

from ...jsonrpc.dispatch import Dispatcher
from ...jsonrpc.reply import Reply
from .admit import Admitted, Policy, Refusal
from .compression import VARY, compress
from .head import Head, Response

# RFC 9110, 8.8.3; some clients leave the quotes out.
_TAG = re.compile(r'(?:W/)?"([^"]*)"|([^",\s]+)')
_JSON = "Content-Type", "application/json"
# CometBFT: the header of cacheable answers.
_CACHE_CONTROL = "Cache-Control", "public, max-age=86400"


def render(admitted: Admitted, reply: Reply, now: int) -> Response:
    """Return the response to an admitted request, at a time in seconds."""
    policy, head = admitted.policy, admitted.head
    return add_headers(policy, head, render_reply(policy, head, reply), now)


def render_reply(policy: Policy, head: Head, reply: Reply) -> Response:
    """Return the response without the headers that every response of a mount has."""
    return compress(head, _plain(head, reply), len(reply.body))


def _plain(head: Head, reply: Reply) -> Response:
    # CometBFT: notifications are answered with nothing, not even a type.
    headers = [_JSON, *reply.headers] if reply.body else []
    if reply.cacheable:
        headers.append(_CACHE_CONTROL)
    if reply.etag:
        headers.append(("ETag", f'"{reply.etag}"'))
        if "HTTP_IF_NONE_MATCH" in head.fields and _is_known(head, reply.etag):
            # RFC 9110, 15.4.5: without the fields that describe a body.
            return Response(HTTPStatus.NOT_MODIFIED, headers[1:], b"")
    return Response(reply.status, headers, reply.body)


def render_refusal(
    policy: Policy, head: Head, refusal: Refusal, dispatcher: Dispatcher
) -> Response:
    """Return the response to a refused request, without the headers that every response has."""
    if refusal.response is not None:
        return refusal.response
    assert refusal.error is not None
    return render_reply(policy, head, dispatcher.error_reply(refusal.error, refusal.request_id))


def _is_known(head: Head, etag: str) -> bool:
    """Return true if the client has this result."""
    # RFC 9110, 13.1.2: a proxy that compresses makes the tag a weak one.
    field = head.fields["HTTP_IF_NONE_MATCH"].strip()
    tags = [quoted or bare for quoted, bare in _TAG.findall(field)]
    return head.method in ("GET", "HEAD") and (field == "*" or etag in tags)


def added_headers(policy: Policy, head: Head, now: int) -> Iterator[tuple[str, str]]:
    """Yield the headers that every response of a mount has, also Flask's own errors."""
    if policy.server_time:
        yield "X-Server-Time", str(now)
    vary = dict.fromkeys((*policy.cors.vary(head), *policy.origins.vary))
    if vary:
        yield "Vary", ", ".join(vary)
    yield from policy.cors.headers_for(head)


def add_headers(policy: Policy, head: Head, response: Response, now: int) -> Response:
    """Return a response with its length and the headers that every response has."""
    headers = list(response.headers)
    if response.status is not HTTPStatus.NOT_MODIFIED:
        headers.append(("Content-Length", str(len(response.body))))
    for name, value in added_headers(policy, head, now):
        if name == "Vary" and VARY in headers:
            headers[headers.index(VARY)] = name, f"{VARY[1]}, {value}"
        else:
            headers.append((name, value))
    return response._replace(headers=headers)
