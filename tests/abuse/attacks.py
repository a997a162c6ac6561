"""Attacks that run until they are stopped, or have sent their limit."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from ..helpers.http import connection_to
from ..helpers.raw_http import connect, post
from ..helpers.until import PATIENCE
from ..helpers.websocket import WebSocketClient
from ..server.node_process import Node

CHUNKED = post("Transfer-Encoding: chunked")
_PIECE = 65_536

TRAILERS = CHUNKED + b"0\r\n", b"A: " + b"b" * 8000 + b"\r\n"
"""The beginning of a request, and the bytes that are then sent repeatedly."""
TINY_CHUNKS = CHUNKED, b"1\r\n \r\n"
UNREAD_BODY = post("Content-Length: 1000000000000"), b" " * 1000

BLANKS = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX:" + b" \t" * 30_000 + b"\0\r\n\r\n"
"""A request that is refused for its last byte."""


def _call(method: str, *params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def _whole(body: bytes) -> bytes:
    return post(f"Content-Length: {len(body)}") + body


_ADDRESSES = [f"0x{number:040x}" for number in range(40_000)]
_ACCOUNT = {"code": "0x" + "00" * 1_000, "stateDiff": {f"0x{1:064x}": f"0x{1:064x}"}}
_LARGE = {"to": _ADDRESSES[1], "data": "0x" + "00" * 2_400_000}
HEAVY = {
    name: _whole(body)
    for name, body in {
        "480,000 keys": b"{%s}" % b",".join(b'"%x":1' % number for number in range(480_000)),
        "5 MB of JSON without an end": b'{"a":[' + b"1," * 2_500_000,
        "40,000 addresses": _call(
            "eth_getStorageValues", {address: [] for address in _ADDRESSES}, "latest"
        ),
        "overrides of 1,900 accounts": _call(
            "eth_call", {}, "latest", dict.fromkeys(_ADDRESSES[:1_900], _ACCOUNT)
        ),
        "2.4 MB of calldata": _call("eth_call", _LARGE, "latest"),
        "20,000 simulated calls": _call(
            "eth_simulateV1", {"blockStateCalls": [{"calls": [{}] * 20_000}]}, "latest"
        ),
    }.items()
}
"""Single requests to the EVM layer that are expensive to read or to refuse."""

FLOODS = {
    "pings": (b"", b"\x89\x80\0\0\0\0"),
    "pongs": (b"", b"\x8a\x80\0\0\0\0"),
    "parts of a byte": (b"\x01\x81\0\0\0\0 ", b"\x00\x81\0\0\0\0 "),
    "empty parts": (b"\x01\x81\0\0\0\0 ", b"\x00\x80\0\0\0\0"),
    "parts of 64 bytes": (b"\x01\x81\0\0\0\0 ", b"\x00\xc0\0\0\0\0" + b" " * 64),
    "notifications": (b"", b"\x81\x93\0\0\0\0" + b'{"method":"health"}'),
    "calls": (b"", b"\x81\x9a\0\0\0\0" + b'{"method":"status","id":1}'),
}
"""The first frame of a websocket, and the frame that is then sent repeatedly."""


class Attack(threading.Thread):
    """Sends the same bytes repeatedly, over a new connection if one was closed."""

    def __init__(
        self, open_: Callable[[], socket.socket], again: bytes, most: int = 1 << 40
    ) -> None:
        super().__init__(daemon=True)
        self._open = open_
        self._again = again
        self._left = most
        self._over = threading.Event()
        self.connections = 0

    @property
    def is_over(self) -> bool:
        """Return true if everything was sent."""
        return self._left <= 0

    def run(self) -> None:
        while not self.is_over and not self._over.is_set():
            with suppress(OSError), self._open() as sock:
                self.connections += 1
                self._send(sock)

    def _send(self, sock: socket.socket) -> None:
        piece = self._again * max(1, _PIECE // len(self._again))
        sock.settimeout(0.05)
        begun = 0
        while not self.is_over and not self._over.is_set():
            try:
                sent = sock.send(piece[begun:])
            except TimeoutError:
                # Read the response, or nothing if the server sends nothing more.
                with suppress(TimeoutError):
                    sock.recv(1 << 20)
                continue
            begun = (begun + sent) % len(self._again)
            self._left -= sent

    def stop(self) -> None:
        """Stop sending."""
        self._over.set()
        self.join(PATIENCE)


def requests(node: Node, first: bytes, title: str = "node RPC") -> Callable[[], socket.socket]:
    """Return a function that opens a connection and sends the beginning of a request."""

    def open_() -> socket.socket:
        sock = connect(node.url(title))
        sock.sendall(first)
        return sock

    return open_


def websockets(node: Node, first: bytes) -> Callable[[], socket.socket]:
    """Return a function that opens a websocket and sends a first frame."""

    def open_() -> socket.socket:
        client = WebSocketClient(node.url(), timeout=PATIENCE)
        client.raw(first)
        return client.sock

    return open_


@contextmanager
def under(*attacks: Attack) -> Iterator[None]:
    """Run attacks within the context."""
    for attack in attacks:
        attack.start()
    try:
        yield
    finally:
        for attack in attacks:
            attack.stop()


def timed_health(node: Node, until: Callable[[], bool], most: int = 1 << 40) -> list[float]:
    """Request /health repeatedly, and return the seconds of each response."""
    took: list[float] = []
    with closing(connection_to(node.url())) as honest:
        while len(took) < most and not until():
            began = time.monotonic()
            honest.request("GET", "/health")
            assert json.load(honest.getresponse())["result"] == {}
            took.append(time.monotonic() - began)
    return took
