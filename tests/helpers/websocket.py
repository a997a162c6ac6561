"""A websocket client of raw frames, also for frames that no real client sends."""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Ping, Pong, TextMessage

from .until import PATIENCE


def frame(opcode: int, payload: bytes, fin: bool = True, size: int = -1) -> bytes:
    """Return a masked frame, with another length than its own if ``size`` is given."""
    length = len(payload) if size < 0 else size
    head = bytes((opcode | (0x80 if fin else 0),))
    if length < 126:
        head += bytes((0x80 | length,))
    elif length < 1 << 16:
        head += b"\xfe" + struct.pack("!H", length)
    else:
        head += b"\xff" + struct.pack("!Q", length)
    return head + b"\0\0\0\0" + payload


class WebSocketClient:
    """A websocket client that connects from the address ``source`` and reads text messages.

    ``closed`` and ``reason`` are the code and the reason of the Close frame that it received;
    ``early`` are messages that it sends together with its handshake.
    """

    def __init__(
        self,
        url: str,
        path: str = "/websocket",
        timeout: float = PATIENCE,
        headers: Mapping[str, str] | None = None,
        source: str = "",
        tls: SSLContext | None = None,
        early: Sequence[str] = (),
    ) -> None:
        parts = urlsplit(url)
        self.sock = socket.create_connection(
            (parts.hostname, parts.port or 80), timeout, (source, 0) if source else None
        )
        if tls is not None:
            self.sock = tls.wrap_socket(self.sock, server_hostname=parts.hostname)
        self.closed: int | None = None
        self.reason: str | None = None
        self.pongs: list[bytes] = []
        self._texts: list[str] = []
        self._partial = ""
        self._frames = Connection(ConnectionType.CLIENT)
        try:
            frames = b"".join(frame(1, text.encode()) for text in early)
            self._shake(path, {"Host": parts.netloc, **(headers or {})}, frames)
        except OSError:
            self.close()
            raise

    def _shake(self, path: str, headers: Mapping[str, str], behind: bytes) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.sock.sendall(
            f"GET {path} HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n{lines}\r\n".encode()
            + behind
        )
        head = b""
        while b"\r\n\r\n" not in head:
            received = self.sock.recv(1)
            if not received:
                raise ConnectionResetError(head.decode())
            head += received
        if not head.startswith(b"HTTP/1.1 101 "):
            raise ConnectionRefusedError(head.decode())

    def raw(self, data: bytes) -> None:
        self.sock.sendall(data)

    def frame(self, opcode: int, payload: bytes, fin: bool = True, size: int = -1) -> None:
        """Send a frame."""
        self.raw(frame(opcode, payload, fin, size))

    def text(self, text: str) -> None:
        self.frame(1, text.encode())

    def call(self, method: str, params: Any = None, request_id: Any = 1) -> None:
        body = {"jsonrpc": "2.0", "id": request_id, "method": method}
        self.text(json.dumps(body if params is None else {**body, "params": params}))

    def read(self) -> str | None:
        """Return the next text message; ``None`` once the connection has ended."""
        while not self._texts:
            try:
                received = self.sock.recv(1 << 20)
            except ConnectionError:
                received = b""
            if not received:
                return None
            self._frames.receive_data(received)
            self._gather()
        return self._texts.pop(0)

    def _gather(self) -> None:
        for event in self._frames.events():
            if isinstance(event, TextMessage):
                self._partial += event.data
                if event.message_finished:
                    self._texts.append(self._partial)
                    self._partial = ""
            elif isinstance(event, CloseConnection):
                # A client that has read a Close frame sends nothing more; the server may be
                # gone.
                self.closed, self.reason = event.code, event.reason
                with suppress(OSError):
                    self.sock.shutdown(socket.SHUT_WR)
            elif isinstance(event, Pong):
                self.pongs.append(bytes(event.payload))
            elif isinstance(event, Ping):
                self.raw(self._frames.send(event.response()))

    def json(self) -> Any:
        text = self.read()
        assert text is not None
        return json.loads(text)

    def asked(self, method: str, params: Any = None, request_id: Any = 1) -> Any:
        """Return the response to one call."""
        self.call(method, params, request_id)
        return self.json()

    def close(self) -> None:
        self.sock.close()
