"""Responses to admitted requests; large ones are compressed with gzip (RFC 1952) for clients
that accept it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus

from ...concurrency import in_thread
from ...jsonrpc.dispatch import Dispatcher
from ...jsonrpc.reply import Reply
from .admit import Admitted, Policy, Refusal
from .head import Compressed, Head, Response, is_loopback

# An entity tag with or without quotes (RFC 9110, 8.8.3), as some clients omit them.
_TAG = re.compile(r'(?:W/)?"([^"]*)"|([^",\s]+)')
_JSON = "Content-Type", "application/json"
# CometBFT: the header of cacheable responses.
_CACHE_CONTROL = "Cache-Control", "public, max-age=86400"


def render(admitted: Admitted, reply: Reply, now: int) -> Response:
    """Return the response to an admitted request; ``now`` is the time in seconds since
    1970."""
    policy, head = admitted.policy, admitted.head
    return add_headers(policy, head, render_reply(policy, head, reply), now)


def is_usual(head: Head, reply: Reply) -> bool:
    """Return true if the headers of the response, except length and ETag, depend only on
    ``head``, the status, whether HTTP caches may keep the response, and whether it has an
    ETag."""
    is_plain = 0 < len(reply.body) < MIN_BYTES and not reply.headers
    return is_plain and "HTTP_IF_NONE_MATCH" not in head.fields


def render_reply(policy: Policy, head: Head, reply: Reply) -> Response:
    """Return the response without the headers that are added to every response of a mount."""
    return _compress(head, _plain(head, reply), len(reply.body))


def _plain(head: Head, reply: Reply) -> Response:
    # CometBFT: the empty response to a notification has no content type.
    headers = [_JSON, *reply.headers] if reply.body else []
    if reply.cacheable:
        headers.append(_CACHE_CONTROL)
    if reply.etag:
        headers.append(("ETag", f'"{reply.etag}"'))
        if "HTTP_IF_NONE_MATCH" in head.fields and _is_known(head, reply.etag):
            # RFC 9110, 15.4.5: a 304 omits the content type.
            return Response(HTTPStatus.NOT_MODIFIED, headers[1:], b"")
    return Response(reply.status, headers, reply.body)


def render_refusal(
    policy: Policy, head: Head, refusal: Refusal, dispatcher: Dispatcher
) -> Response:
    """Return the response to a refused request, without the headers that are added to every
    response of a mount."""
    if refusal.response is not None:
        return refusal.response
    assert refusal.error is not None
    return render_reply(policy, head, dispatcher.error_reply(refusal.error, refusal.request_id))


def _is_known(head: Head, etag: str) -> bool:
    """Return true if the client already has the result with this entity tag."""
    # Also accept weak tags (RFC 9110, 13.1.2), as a proxy that compresses makes tags weak.
    field = head.fields["HTTP_IF_NONE_MATCH"].strip()
    tags = [quoted or bare for quoted, bare in _TAG.findall(field)]
    return head.method in ("GET", "HEAD") and (field == "*" or etag in tags)


def added_headers(policy: Policy, head: Head, now: int) -> Iterator[tuple[str, str]]:
    """Yield the headers to add to every response of a mount, including Flask's own errors."""
    if policy.server_time:
        yield "X-Server-Time", str(now)
    vary = dict.fromkeys((*policy.cors.vary(head), *policy.origins.vary))
    if vary:
        yield "Vary", ", ".join(vary)
    yield from policy.cors.headers_for(head)


def add_headers(policy: Policy, head: Head, response: Response, now: int) -> Response:
    """Return a response with ``Content-Length`` and the headers that every response gets."""
    headers = list(response.headers)
    if response.status is not HTTPStatus.NOT_MODIFIED:
        headers.append(("Content-Length", str(len(response.body))))
    for name, value in added_headers(policy, head, now):
        if name == "Vary" and VARY in headers:
            headers[headers.index(VARY)] = name, f"{VARY[1]}, {value}"
        else:
            headers.append((name, value))
    return response._replace(headers=headers)


VARY = "Vary", "Accept-Encoding"

MIN_BYTES = 16_384
"""Responses of at least this many bytes are compressed."""

# Level 1 takes a third of the time of the default, 6, and produces a tenth more bytes.
_LEVEL = 1
# From this size on, compress in a thread: it takes as long as several requests.
_LARGE = 128 * 1024
# Matches an Accept-Encoding with gzip, unless its weight is 0 (RFC 9110, 12.5.3).
_GZIP = re.compile(
    r"(?:^|,)\s*gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[\d.]+\s*)?(?:,|$)", re.I
)
_OPENING = re.compile(rb'\{"jsonrpc":"2\.0","id":[^,]{0,60}')


def _compress(head: Head, response: Response, size: int) -> Response:
    """Compress a large response for a client that accepts gzip; return it.

    ``size`` is the size of the body in bytes, also for a 304, which omits the body.
    """
    if size < MIN_BYTES:
        return response
    # Caches need Vary for every client, whether its response is compressed or not.
    headers = [*response.headers, VARY]
    if not _is_accepted(head):
        return response._replace(headers=headers)
    # RFC 9110, 8.8.3.3: the tag becomes weak, as the compressed bytes differ.
    headers = [(name, f"W/{value}" if name == "ETag" else value) for name, value in headers]
    if response.status is HTTPStatus.NOT_MODIFIED:
        # RFC 9110, 15.4.5: a 304 has the same ETag and Vary as the 200.
        return response._replace(headers=headers)
    compressed = _compressed(bytes(response.body))
    return Response(
        response.status,
        [*headers, ("Content-Encoding", "gzip")],
        compressed.body(compressed.opening),
        compressed,
    )


def _is_accepted(head: Head) -> bool:
    # Don't compress for clients and proxies on this machine, where sending is faster.
    if not head.address or is_loopback(head.address):
        return False
    return _GZIP.search(head.fields.get("HTTP_ACCEPT_ENCODING", "")) is not None


def _compressed(body: bytes) -> Compressed:
    found = _OPENING.match(body)
    size = found.end() if found else 0
    rest = body[size:]
    return Compressed(body[:size], rest, _deflated(rest))


def _deflated(data: bytes) -> bytes:
    compress = partial(zlib.compress, data, _LEVEL, -zlib.MAX_WBITS)
    # A thread does not block others, as zlib releases the GIL.
    return compress() if len(data) < _LARGE else in_thread(compress)
