"""Test whether a node accepts a subscription to new blocks on its websocket."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator

from wsproto import ConnectionType, WSConnection
from wsproto import events as frames
from wsproto.utilities import ProtocolError

from .. import jsoncodec
from ..errors import short_repr
from .address import Address

_CALL = {"method": "subscribe", "params": {"query": "tm.event='NewBlock'"}}
_SUBSCRIBE = jsoncodec.encode({"jsonrpc": "2.0", "id": 1, **_CALL}).decode()
_MAX_CHARS = 100_000


class _Answer(jsoncodec.Struct):
    id: object = None
    result: dict[str, object] | None = None
    error: object = None


def reason_against(address: Address, seconds: float) -> str:
    """Subscribe at a node; return why that failed within ``seconds``, or an empty string."""
    deadline = time.monotonic() + seconds
    try:
        with _connected(address, deadline) as sock:
            text = _answer(sock, address, deadline)
        found: _Answer = jsoncodec.decode(text.encode(), _Answer)
    except TimeoutError:
        return "no response to subscribe; check whether a proxy in between passes websockets"
    except jsoncodec.NotJSON as error:
        return f"invalid response to subscribe: {error}"
    except (OSError, ProtocolError) as error:
        return f"no websocket: {error or type(error).__name__}"
    if found.error:
        return f"a subscription is refused: {short_repr(found.error)}"
    if found.result is None or found.id != 1:
        return f"invalid response to subscribe: {short_repr(text)}"
    return ""


def _answer(sock: socket.socket, address: Address, deadline: float) -> str:
    """Subscribe and return the first text message; raise ``ConnectionError`` if the socket
    closes."""
    websocket = WSConnection(ConnectionType.CLIENT)
    sock.sendall(websocket.send(_request(address)))
    text = ""
    for data in _received(sock, deadline):
        websocket.receive_data(data or None)
        for event in websocket.events():
            if isinstance(event, frames.AcceptConnection):
                sock.sendall(websocket.send(frames.TextMessage(_SUBSCRIBE)))
            elif isinstance(event, frames.Ping):
                sock.sendall(websocket.send(event.response()))
            elif isinstance(event, frames.RejectConnection):
                raise ConnectionError(
                    f"the websocket handshake got status {event.status_code}, expected 101"
                )
            elif isinstance(event, frames.TextMessage):
                text = (text + event.data)[:_MAX_CHARS]
                if event.message_finished:
                    return text
    raise ConnectionError("the node closed the connection")


def _received(sock: socket.socket, deadline: float) -> Iterator[bytes]:
    data = b"begun"
    while data:
        sock.settimeout(_left(deadline))
        data = sock.recv(65_536)
        yield data


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _connected(address: Address, deadline: float) -> socket.socket:
    sock = socket.create_connection((address.host, address.port), _left(deadline))
    if address.scheme != "https":
        return sock
    try:
        sock.settimeout(_left(deadline))
        return ssl.create_default_context().wrap_socket(sock, server_hostname=address.host)
    except BaseException:
        sock.close()
        raise


def _request(address: Address) -> frames.Request:
    host = f"[{address.host}]" if ":" in address.host else address.host
    headers = [(name.encode(), value.encode()) for name, value in address.headers.items()]
    return frames.Request(
        f"{host}:{address.port}", address.below("websocket"), extra_headers=headers
    )
