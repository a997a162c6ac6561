"""Heads of requests, and responses, as plain values."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

RPC = "rpc"
"""Endpoint of JSON-RPC bodies."""

WEBSOCKET = "websocket"
"""Endpoint of handshakes. Layers have endpoints of their own; every other endpoint is the name
of a route."""

# The default type of Flask's responses.
HTML = "Content-Type", "text/html; charset=utf-8"

# RFC 1952, 2.3: deflate, no flags, no time, fastest algorithm, unknown system.
_GZIP_MEMBER = b"\x1f\x8b\x08\0\0\0\0\0\x04\xff"


class Head(NamedTuple):
    """Head of a request."""

    endpoint: str
    method: str
    host: str
    """Host that the request names, with its port unless that is the scheme's."""
    address: str
    """Address of the client; empty where it has none, as by a Unix socket."""
    fields: Mapping[str, Any]
    """Header fields by their CGI names (RFC 3875), such as ``HTTP_ORIGIN``."""
    content_length: int | None = None
    """``None`` without the field, and of a body in chunks."""
    mimetype: str = ""
    """Media type of the body in lower case, without parameters."""
    max_body: int | None = None
    """Limit of the body that the host application sets."""
    on_loopback: bool = False
    """True if it came to an address that only this machine reaches, and not by a proxy."""

    @property
    def has_body(self) -> bool:
        """True unless there is no body."""
        return bool(self.content_length) or "HTTP_TRANSFER_ENCODING" in self.fields


class Response(NamedTuple):
    """Response to a request."""

    status: HTTPStatus
    headers: list[tuple[str, str]]
    body: bytes
    compressed: Compressed | None = None
    """Parts of the body, if it is compressed."""


class Compressed(NamedTuple):
    """A gzip body, whose opening is stored: replies with other ids share the rest."""

    opening: bytes
    rest: bytes
    deflated: bytes
    """The rest, as the last blocks of a deflate stream."""

    def body(self, opening: bytes) -> bytes:
        """Return the compressed body with this opening, of less than 64 KiB."""
        # RFC 1951, 3.2.4: a stored block, which is not the last.
        size = len(opening)
        stored = struct.pack("<BHH", 0, size, size ^ 0xFFFF) + opening
        checksum = zlib.crc32(self.rest, zlib.crc32(opening))
        trailer = struct.pack("<II", checksum, (size + len(self.rest)) & 0xFFFFFFFF)
        return b"".join((_GZIP_MEMBER, stored, self.deflated, trailer))


def plain_text(text: str, status: HTTPStatus, *headers: tuple[str, str]) -> Response:
    """Return a response of one line."""
    kind = ("Content-Type", "text/plain; charset=utf-8")
    return Response(status, [*headers, kind], f"{text}\n".encode())
