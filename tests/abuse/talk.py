"""Bytes that no honest client sends, and how often they were answered."""

from __future__ import annotations

import re
import socket
from contextlib import suppress

from ..server.kit import Node, connect

HEALTH = b'{"jsonrpc":"2.0","id":1,"method":"health"}'
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def post(*lines: str, body: bytes = b"") -> bytes:
    """A request with headers of its own."""
    head = "\r\n".join(["POST / HTTP/1.1", "Host: localhost", *lines, "", ""])
    return head.encode() + body


CLOSING = GET.replace(b"localhost\r", b"localhost\r\nConnection: close\r")
UNFINISHED = {
    "headers": GET[:-10],
    "body": post("Content-Length: 100", body=b"{"),
    "chunks": post("Transfer-Encoding: chunked"),
}
"""Requests of which the server waits for the rest."""


def send(node: Node, data: bytes, own: str = "") -> socket.socket:
    """A connection, from an address of one's own, over which as much was sent as is taken."""
    sock = connect(node.url(), own)
    with suppress(ConnectionError):
        sock.sendall(data)
    return sock


def answers(node: Node, data: bytes, own: str = "") -> list[int]:
    """The status of each answer, once the connection has ended."""
    return [int(status) for status in re.findall(r"HTTP/1\.1 (\d+) ", said(node, data, own))]


def said(node: Node, data: bytes, own: str = "") -> str:
    """All that is answered, once the connection has ended."""
    with send(node, data, own) as sock:
        received = b""
        with suppress(ConnectionError):
            while more := sock.recv(65_536):
                received += more
    return received.decode()
