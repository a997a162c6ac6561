"""Raw bytes over a socket, for requests that no HTTP client sends."""

from __future__ import annotations

import re
import socket
from contextlib import suppress

from ..server.node_process import Node
from .until import PATIENCE

HEALTH = b'{"jsonrpc":"2.0","id":1,"method":"health"}'
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def post(*lines: str, body: bytes = b"") -> bytes:
    """Build a POST with exactly these header lines."""
    head = "\r\n".join(["POST / HTTP/1.1", "Host: localhost", *lines, "", ""])
    return head.encode() + body


CLOSING = GET.replace(b"localhost\r", b"localhost\r\nConnection: close\r")
UNFINISHED = {
    "headers": GET[:-10],
    "body": post("Content-Length: 100", body=b"{"),
    "chunks": post("Transfer-Encoding: chunked"),
}
"""Requests that never end."""


def connect(url: str, source: str = "") -> socket.socket:
    """Connect to the host and port of a URL, from the address ``source``."""
    host, port = re.findall(r"//(.+):(\d+)", url)[0]
    bind = (source, 0) if source else None
    return socket.create_connection((host, int(port)), PATIENCE, bind)


def send(node: Node, data: bytes, source: str = "") -> socket.socket:
    """Connect from the address ``source``, and send as many bytes as are accepted."""
    sock = connect(node.url(), source)
    with suppress(ConnectionError):
        sock.sendall(data)
    return sock


def answers(node: Node, data: bytes, source: str = "") -> list[int]:
    """Return the status of each response, once the server has closed the connection."""
    return [
        int(status) for status in re.findall(r"HTTP/1\.1 (\d+) ", exchange(node, data, source))
    ]


def exchange(node: Node, data: bytes, source: str = "") -> str:
    """Return all bytes of the response, once the server has closed the connection."""
    with send(node, data, source) as sock:
        received = b""
        with suppress(ConnectionError):
            while more := sock.recv(65_536):
                received += more
    return received.decode()
