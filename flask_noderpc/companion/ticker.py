"""Waits for new blocks: a websocket of the nodes says when to look, and a poll does without.

Notifications are never read as data: nodes drop them, and end subscriptions that are slow.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence

from wsproto import ConnectionType, WSConnection
from wsproto import events as frames
from wsproto.utilities import ProtocolError

from .. import jsoncodec
from .address import Address

log = logging.getLogger("flask_noderpc.companion")

_SUBSCRIBE = jsoncodec.encode(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "subscribe",
        "params": {"query": "tm.event='NewBlockHeader'"},
    }
).decode()
_FIRST_PAUSE_S, _MAX_PAUSE_S = 1.0, 30.0
_CONNECT_S, _RECEIVE_S = 5.0, 1.0
# CometBFT: rpc/jsonrpc/server/ws_handler.go; a node pings each 27 s.
_MAX_SILENCE_S = 60.0


class Ticker:
    """Subscribes to new blocks of the first node that accepts it, in a thread of its own."""

    def __init__(self, addresses: Sequence[Address], stopped: threading.Event) -> None:
        self._addresses, self._stopped = addresses, stopped
        self._changed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="noderpc-ticker", daemon=True)

    def start(self) -> None:
        """Start the thread, which ends when ``stopped`` is set."""
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait until a node has told a new block, at most so long; return true if one has."""
        has_told = self._changed.wait(seconds)
        self._changed.clear()
        return has_told

    def close(self) -> None:
        """Wait for the thread, after ``stopped`` is set."""
        self._changed.set()
        self._thread.join()

    def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._stopped.is_set():
            for address in self._addresses:
                if self._listen(address):
                    pause = _FIRST_PAUSE_S
            self._stopped.wait(pause)
            pause = min(2 * pause, _MAX_PAUSE_S)

    def _listen(self, address: Address) -> bool:
        """Follow one node until its websocket ends; return true if it told a block."""
        has_told = False
        try:
            with _connected(address) as sock:
                for _ in self._messages(sock, address):
                    # The first is the answer to the subscription.
                    self._changed.set()
                    has_told = True
        except (OSError, ProtocolError) as error:
            log.info("the websocket of %s ended: %s", address.name, type(error).__name__)
        return has_told

    def _messages(self, sock: socket.socket, address: Address) -> Iterator[None]:
        """Subscribe, and yield at the end of each message; its text is not read."""
        websocket = WSConnection(ConnectionType.CLIENT)
        sock.sendall(websocket.send(_request(address)))
        for data in self._received(sock):
            websocket.receive_data(data or None)
            for event in websocket.events():
                if isinstance(event, frames.AcceptConnection):
                    sock.sendall(websocket.send(frames.TextMessage(_SUBSCRIBE)))
                elif isinstance(event, frames.Ping):
                    sock.sendall(websocket.send(event.response()))
                elif isinstance(event, frames.CloseConnection | frames.RejectConnection):
                    return
                elif isinstance(event, frames.Message) and event.message_finished:
                    yield

    def _received(self, sock: socket.socket) -> Iterator[bytes]:
        """Yield what the node sends; raise ``TimeoutError`` after a silence."""
        last = time.monotonic()
        while not self._stopped.is_set():
            try:
                data = sock.recv(65_536)
            except TimeoutError:
                if time.monotonic() - last > _MAX_SILENCE_S:
                    raise
                continue
            last = time.monotonic()
            yield data
            if not data:
                return


def _connected(address: Address) -> socket.socket:
    sock = socket.create_connection((address.host, address.port), _CONNECT_S)
    try:
        if address.scheme == "https":
            context = ssl.create_default_context()
            sock = context.wrap_socket(sock, server_hostname=address.host)
        sock.settimeout(_RECEIVE_S)
    except BaseException:
        sock.close()
        raise
    return sock


def _request(address: Address) -> frames.Request:
    host = f"[{address.host}]" if ":" in address.host else address.host
    headers = [(name.encode(), value.encode()) for name, value in address.headers.items()]
    return frames.Request(
        f"{host}:{address.port}", address.websocket_path, extra_headers=headers
    )
