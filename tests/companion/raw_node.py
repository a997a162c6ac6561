"""A node that answers each request with bytes that the test chooses, or not at all."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

Respond = Callable[[socket.socket, bytes], None]
"""A function that answers a request's body on its connection, which is then closed."""


@contextmanager
def raw_node(respond: Respond, *, whole_request: bool = False) -> Iterator[str]:
    """Serve requests within the context; yield the URL.

    ``respond`` gets the body alone, or the ``whole_request``.
    """
    read = _request if not whole_request else _head
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, read, respond), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        # Shutting down wakes the thread that accepts connections.
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


Read = Callable[[socket.socket], bytes]


def _accept(listener: socket.socket, read: Read, respond: Respond) -> None:
    with suppress(OSError):
        while True:
            peer, _ = listener.accept()
            threading.Thread(target=_serve, args=(peer, read, respond), daemon=True).start()


def _serve(peer: socket.socket, read: Read, respond: Respond) -> None:
    with peer, suppress(OSError):
        respond(peer, read(peer))


def _head(peer: socket.socket) -> bytes:
    """Return the head of a request."""
    text = b""
    while b"\r\n\r\n" not in text:
        text += peer.recv(65536)
    return text


def _request(peer: socket.socket) -> bytes:
    """Return the body of a request."""
    text = _head(peer)
    head, _, body = text.partition(b"\r\n\r\n")
    lengths = [
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    ]
    if not lengths:
        raise ConnectionAbortedError("the handshake of a websocket")
    (size,) = lengths
    while len(body) < size:
        body += peer.recv(65536)
    return body


def http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """Return a response with this body."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def hang(peer: socket.socket, body: bytes) -> None:
    """Wait until the client closes the connection."""
    peer.recv(1)


def sends(text: bytes) -> Respond:
    """Return a function that sends these bytes for every request."""
    return lambda peer, body: peer.sendall(text)


def results(result: Any) -> Respond:
    """Return a function that gives the same result for every call, also in a batch."""

    def respond(peer: socket.socket, body: bytes) -> None:
        asked = json.loads(body)
        calls = asked if isinstance(asked, list) else [asked]
        found = [{"jsonrpc": "2.0", "id": each["id"], "result": result} for each in calls]
        answer = found if isinstance(asked, list) else found[0]
        peer.sendall(http(json.dumps(answer).encode(), Content_Type="application/json"))

    return respond
