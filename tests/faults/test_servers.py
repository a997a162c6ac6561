"""Tests that the websocket works in the same way under every server."""

from __future__ import annotations

import base64
import struct
import time
from contextlib import closing
from pathlib import Path

import pytest

from ..helpers.until import PATIENCE
from ..helpers.websocket import WebSocketClient
from .processes import check_duration
from .servers import GRACE_S, SERVERS, SOME, UNPATCHED, serving

ALL_TXS = {"query": "tm.event='Tx'"}


def encoded(tx: bytes) -> str:
    return base64.b64encode(tx).decode()


@pytest.mark.parametrize("kind", SERVERS)
def test_a_conversation_from_the_handshake_to_the_server_s_end(
    kind: str, tmp_path: Path
) -> None:
    with serving(kind, tmp_path / "chain.db") as server:
        first, second = (WebSocketClient(server.url, timeout=PATIENCE) for _ in range(2))
        with closing(first), closing(second):
            assert first.asked("subscribe", ALL_TXS, "events")["result"] == {}
            assert first.asked("health", request_id="here")["result"] == {}
            assert second.asked("broadcast_tx_sync", {"tx": encoded(b"a=1")})["id"] == 1
            assert first.json()["result"]["events"]["app.key"] == ["a", "1"]

            first.frame(9, b"ping")
            first.call("nosuch", request_id="after")
            assert first.json()["error"]["code"] == -32601
            assert first.pongs == [b"ping"]

            first.frame(8, struct.pack("!H", 1000))
            assert first.read() is None
            assert first.closed == 1000

            assert second.asked("unsubscribe_all")["error"]["code"] == -32603
            began = time.monotonic()
            assert server.stop() == 0
            assert second.read() is None
        # gunicorn waits for open connections, and a busy machine takes the rest.
        check_duration(time.monotonic() - began, GRACE_S + 10)
        assert "Traceback" not in server.log()


def test_an_unpatched_gevent_host_gets_an_error_and_continues_to_serve(tmp_path: Path) -> None:
    with serving(UNPATCHED, tmp_path / "chain.db") as server:
        with pytest.raises(ConnectionRefusedError, match="501"):
            WebSocketClient(server.url)

        assert server.get("/health") == {}
        assert server.get("/status")["node_info"]
        message = server.log().splitlines()

    assert message == [
        "no websocket: gevent is not patched: call gevent.monkey.patch_all() before other"
        " imports"
    ]


@pytest.mark.parametrize("kind", SOME)
def test_bytes_after_a_websocket_close_are_ignored(kind: str, tmp_path: Path) -> None:
    with serving(kind, tmp_path / "chain.db") as server:
        with closing(WebSocketClient(server.url, timeout=PATIENCE)) as client:
            client.raw(
                b"\x88\x80\0\0\0\0GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000
            )
            assert client.read() is None
        assert server.get("/health") == {}
        assert server.stop() == 0
        assert server.log() == ""


@pytest.mark.parametrize("kind", SOME)
def test_calls_sent_with_the_handshake_are_answered(kind: str, tmp_path: Path) -> None:
    call = '{"jsonrpc":"2.0","id":%d,"method":"health"}'
    # The message is longer than one read of a server.
    early = [call % 1 + " " * 10_000, call % 2]
    with serving(kind, tmp_path / "chain.db") as server:
        with closing(WebSocketClient(server.url, timeout=PATIENCE, early=early)) as client:
            assert [client.json()["id"] for _ in early] == [1, 2]
            assert client.asked("health", request_id=3)["id"] == 3
        assert server.log() == ""
