"""Wait for new blocks: the nodes announce them on websockets, or the wait ends for a poll.

Blocks are never read from notifications, as nodes drop some and end slow subscriptions. Only
the height is used, to ignore blocks that are stored already.
"""

from __future__ import annotations

import logging
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, wait
from functools import partial

from wsproto import ConnectionType, WSConnection
from wsproto import events as frames
from wsproto.utilities import ProtocolError

from .. import jsoncodec
from .address import Address
from .threads import started

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
# CometBFT's rpc/jsonrpc/server/ws_handler.go pings every 27 s.
_MAX_SILENCE_S = 60.0
# Seconds between reads of messages, which limits the work if a node sends very many.
_LEAST_S = 0.1
# If a node announced a block within this time, rely on notifications and poll less often.
_LIVE_S = 30.0
_HEIGHT = re.compile(r'"height"\s*:\s*"(\d{1,18})"')
_HEAD_CHARS = 4096
_UNKNOWN = 1 << 63


class Ticker:
    """Subscribes to new blocks of several nodes, with a thread for each node.

    ``nodes`` are the addresses by name. The threads end when ``stopped`` is set.
    """

    def __init__(self, nodes: Mapping[str, Address], stopped: threading.Event) -> None:
        self._stopped = stopped
        self._changed = threading.Condition()
        self._announced: dict[str, int] = {}
        self._announced_at = -_LIVE_S
        self._is_woken = False
        self._threads = [
            threading.Thread(target=self._run, args=each, name="noderpc-ticker", daemon=True)
            for each in nodes.items()
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def wait(self, seconds: float, known: int) -> str:
        """Wait until a node announces a block above ``known``; return the node's name, or an
        empty string after ``seconds``."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_woken or bool(self._above(known)), seconds)
            name = self._above(known)
            self._announced.pop(name, None)
            return name

    def _above(self, known: int) -> str:
        return next((name for name, height in self._announced.items() if height > known), "")

    def is_live(self) -> bool:
        """Return true if a node announced a block within the last 30 seconds."""
        return time.monotonic() - self._announced_at < _LIVE_S

    def wake(self) -> None:
        """Make :meth:`wait` return at once, now and from now on."""
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()

    def close(self) -> None:
        """Wait for the threads, after ``stopped`` is set."""
        self.wake()
        for thread in self._threads:
            thread.join()

    def _run(self, name: str, address: Address) -> None:
        pause = _FIRST_PAUSE_S
        while not self._stopped.is_set():
            if self._listen(name, address):
                pause = _FIRST_PAUSE_S
            self._stopped.wait(pause)
            pause = min(2 * pause, _MAX_PAUSE_S)

    def _listen(self, name: str, address: Address) -> bool:
        """Follow one node until its websocket ends; return true if it announced a block."""
        has_announced = False
        try:
            with _connected(address) as sock:
                for text in self._messages(sock, address):
                    has_announced = True
                    self._note(name, text)
                    self._stopped.wait(_LEAST_S)
        except (OSError, ProtocolError) as error:
            log.info(
                "upstream %s: its websocket ended and is opened again: %s",
                name,
                type(error).__name__,
            )
        return has_announced

    def _note(self, name: str, text: str) -> None:
        # The first message is the response to the subscription, without a height: wake the
        # waiter, as new blocks may exist already.
        found = _HEIGHT.search(text)
        with self._changed:
            self._announced[name] = int(found[1]) if found else _UNKNOWN
            if found:
                self._announced_at = time.monotonic()
            self._changed.notify_all()

    def _messages(self, sock: socket.socket, address: Address) -> Iterator[str]:
        """Subscribe, and yield the first 4,096 characters of each message."""
        text = ""
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
                elif isinstance(event, frames.TextMessage):
                    text = (text + event.data)[:_HEAD_CHARS]
                    if event.message_finished:
                        yield text
                        text = ""

    def _received(self, sock: socket.socket) -> Iterator[bytes]:
        """Yield received bytes; raise ``TimeoutError`` if none arrive for 60 seconds."""
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
    connecting = started(partial(_connect, address), "noderpc-connect")
    if not wait([connecting], _CONNECT_S).done:
        connecting.add_done_callback(_close)
        raise TimeoutError
    return connecting.result()


def _close(connecting: Future[socket.socket]) -> None:
    if connecting.exception() is None:
        connecting.result().close()


def _connect(address: Address) -> socket.socket:
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
        f"{host}:{address.port}", address.below("websocket"), extra_headers=headers
    )
