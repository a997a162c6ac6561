"""Plain values for request heads and responses, and functions for client addresses."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any, NamedTuple

from ...wire.envelope import ResponseBody

RPC = "rpc"
"""Endpoint of the node's JSON-RPC."""

WEBSOCKET = "websocket"
"""Endpoint of websocket handshakes. Layers have their own endpoints; every other endpoint is
the name of a route."""

# The default content type of Flask's responses.
HTML = "Content-Type", "text/html; charset=utf-8"

# gzip header (RFC 1952, 2.3): deflate, no flags, no time, fastest algorithm, unknown system.
_GZIP_MEMBER = b"\x1f\x8b\x08\0\0\0\0\0\x04\xff"


class Head(NamedTuple):
    """Head of a request."""

    endpoint: str
    method: str
    host: str
    """Host that the client requests, with the port unless it is the default of the scheme."""
    address: str
    """Address of the client; empty on a Unix socket."""
    fields: Mapping[str, Any]
    """Header fields by their CGI names (RFC 3875), such as ``HTTP_ORIGIN``."""
    content_length: int | None = None
    """Length of the body in bytes; ``None`` if the header is missing or the body is
    chunked."""
    mimetype: str = ""
    """Media type of the body in lower case, without parameters."""
    max_body: int | None = None
    """Limit on the body's bytes that the app has set (``MAX_CONTENT_LENGTH``)."""
    on_loopback: bool = False
    """True if the request came to an address that only this machine can reach, and not through
    a proxy."""

    @property
    def has_body(self) -> bool:
        """True if the request has a body."""
        return bool(self.content_length) or "HTTP_TRANSFER_ENCODING" in self.fields


class Response(NamedTuple):
    """Response to a request."""

    status: HTTPStatus
    headers: list[tuple[str, str]]
    body: ResponseBody
    compressed: Compressed | None = None
    """Parts of the body, if it is compressed."""


class Compressed(NamedTuple):
    """A gzip body with an uncompressed opening, which has the call's ID, so that responses
    with other IDs can share the compressed rest."""

    opening: bytes
    rest: bytes
    deflated: bytes
    """``rest`` as the last blocks of a deflate stream."""

    def body(self, opening: bytes) -> bytes:
        """Return the gzip body with this opening, which must have less than 64 KiB."""
        # RFC 1951, 3.2.4: the opening is a stored block that is not the last block.
        size = len(opening)
        stored = struct.pack("<BHH", 0, size, size ^ 0xFFFF) + opening
        checksum = zlib.crc32(self.rest, zlib.crc32(opening))
        trailer = struct.pack("<II", checksum, (size + len(self.rest)) & 0xFFFFFFFF)
        return b"".join((_GZIP_MEMBER, stored, self.deflated, trailer))


def plain_text(text: str, status: HTTPStatus, *headers: tuple[str, str]) -> Response:
    """Return a plain-text response of one line."""
    kind = ("Content-Type", "text/plain; charset=utf-8")
    return Response(status, [*headers, kind], f"{text}\n".encode())


_CONNECTIONS_PER_CLIENT = 256


@dataclass(frozen=True, slots=True)
class ClientLimit:
    """Maximum connections of one client, from ``NODERPC_MAX_CONNECTIONS_PER_CLIENT``.

    Without the setting, clients on this machine, such as proxies, have no limit.
    """

    configured: int | None = None

    @property
    def count(self) -> int:
        """Maximum number of connections."""
        return _CONNECTIONS_PER_CLIENT if self.configured is None else self.configured

    def counts(self, client: str) -> bool:
        """Return true if the limit applies to a client; it never does to one without
        address."""
        return bool(client) and (self.configured is not None or not is_loopback(client))


@lru_cache
def client_key(address: str) -> str:
    """Return the key by which limits identify the client at an address: its IPv4 address or
    /64 IPv6 network."""
    host = _without_port(address)
    if ":" not in host:
        return host
    try:
        wide = IPv6Address(host)
    except ValueError:
        # Proxies and Unix sockets may have names instead of addresses.
        return host
    if wide.is_loopback:
        return str(wide)
    # RFC 4291: the last 64 bits identify an interface, and one host can use all of them.
    network = wide.ipv4_mapped or IPv6Network((int(wide), 64), strict=False)
    return str(network)


def unmapped(address: str) -> str:
    """Return a client's address, with an IPv4-mapped IPv6 address as IPv4."""
    # A socket for both families shows IPv4 clients like this (RFC 4291, 2.5.5.2).
    mapped = address.removeprefix("::ffff:")
    return mapped if "." in mapped else address


def _without_port(address: str) -> str:
    # Remove the port that some proxies add, as it differs for each connection.
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def is_ip(name: str) -> bool:
    """Return true for an IP address, and false for a name."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@lru_cache
def is_loopback(address: str | None) -> bool:
    """Return true for an IP address that only this machine can reach."""
    try:
        found = ip_address(address or "")
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
