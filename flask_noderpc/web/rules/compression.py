"""Compression of large responses with gzip (RFC 1952), for clients that accept it."""

from __future__ import annotations

import re
import zlib
from functools import partial
from http import HTTPStatus

from ...concurrency import in_thread
from .client_address import is_loopback
from .head import Compressed, Head, Response

VARY = "Vary", "Accept-Encoding"

MIN_BYTES = 16_384
"""Size of the smallest response that is compressed, in bytes."""

# Level 1 takes a third of the time of the usual 6, for a tenth more bytes.
_LEVEL = 1
# It takes as long as a handful of requests, longer than the way to a thread.
_LARGE = 128 * 1024
# RFC 9110, 12.5.3: refused with a weight of 0.
_GZIP = re.compile(
    r"(?:^|,)\s*gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[\d.]+\s*)?(?:,|$)", re.I
)
_OPENING = re.compile(rb'\{"jsonrpc":"2\.0","id":[^,]{0,60}')


def compress(head: Head, response: Response, size: int) -> Response:
    """Return a response that is compressed if it is large and its client accepts that.

    ``size`` is that of the body in bytes, which a 304 leaves out.
    """
    if size < MIN_BYTES:
        return response
    # Caches on the way need to know, whatever this client accepts.
    headers = [*response.headers, VARY]
    if not _is_accepted(head):
        return response._replace(headers=headers)
    # RFC 9110, 8.8.3.3: its bytes are others.
    headers = [(name, f"W/{value}" if name == "ETag" else value) for name, value in headers]
    if response.status is HTTPStatus.NOT_MODIFIED:
        # RFC 9110, 15.4.5: with the fields ETag and Vary of the 200.
        return response._replace(headers=headers)
    compressed = _compressed(response.body)
    return Response(
        response.status,
        [*headers, ("Content-Encoding", "gzip")],
        compressed.body(compressed.opening),
        compressed,
    )


def _is_accepted(head: Head) -> bool:
    # On one machine it takes longer to compress than to send; that is true of its proxies too.
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
    # zlib lets other threads run.
    return compress() if len(data) < _LARGE else in_thread(compress)
