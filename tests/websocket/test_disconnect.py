"""Tests that a server which shuts down closes its websockets and refuses new ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask import Flask

from flask_noderpc import MemoryChain, hang_up
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for, serve
from flask_noderpc.web.connection import Timing
from flask_noderpc.web.connections import Connections
from tests.helpers.growing import grow

from ..helpers.http import get
from ..helpers.until import PATIENCE
from ..helpers.websocket import WebSocketClient
from .socket_pair import served

PATHS = ["/websocket", "/evm/ws"]


@pytest.fixture
def app() -> Flask:
    maker = ChainMaker()
    backend = ChainBackend(MemoryChain(maker.genesis, state=maker.state))
    grow(backend, maker.block())
    return app_for(backend, json_rpc_enable=True)


@pytest.fixture
def url(app: Flask) -> Iterator[str]:
    with serve(app) as url:
        yield url


@pytest.mark.features
@pytest.mark.parametrize("path", PATHS)
def test_new_websockets_get_503_with_retry_after_at_shutdown(
    app: Flask, url: str, path: str
) -> None:
    client = WebSocketClient(url, path)
    hang_up(app)

    with pytest.raises(ConnectionRefusedError) as refused:
        WebSocketClient(url, path)

    head = str(refused.value)
    assert head.startswith("HTTP/1.1 503 ")
    assert "\r\nRetry-After: 1\r\n" in head
    assert client.read() is None
    assert client.closed == 1001
    client.close()
    # Requests in flight may still be served.
    assert get(url, "/health").status == 200


def test_a_handshake_during_shutdown_gets_close_1001() -> None:
    connections = Connections(tick_s=0.01)
    with connections.slot("client"):
        connections.close()
        with served(Timing(close_s=PATIENCE), connections=connections) as pair:
            assert pair.read(4)[2:] == (1001).to_bytes(2)
            pair.peer.sendall(b"\x88\x82\0\0\0\0" + (1001).to_bytes(2))
            assert pair.ended.wait(PATIENCE)
