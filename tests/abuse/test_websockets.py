"""Tests of websockets at ``noderpc start``: invalid handshakes, and endless subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ..helpers.raw_http import answers
from ..helpers.until import PATIENCE
from ..helpers.websocket import WebSocketClient
from ..server.node_process import Node, client_seconds, started

CYCLES = 10_000
MEMORY_KB = 8_000
HANDSHAKE = (
    b"GET /websocket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node")
    with started(folder, limits=client_seconds(1, idle=1)) as found:
        found.until_up()
        yield found
        assert "Traceback" not in found.log.read_text()


@pytest.mark.parametrize(
    ("handshake", "status"),
    [
        (HANDSHAKE.replace(b"Version: 13", b"Version: 8"), 426),
        (HANDSHAKE.replace(b"Sec-WebSocket-Key", b"X"), 400),
        (HANDSHAKE.replace(b"Upgrade: websocket", b"Upgrade: h2c"), 400),
        (HANDSHAKE.replace(b"GET", b"POST"), 405),
        (HANDSHAKE + b"Sec-WebSocket-Extensions: " + b"a," * 40_000 + b"\r\n", 400),
        (HANDSHAKE + b"Content-Length: 10\r\nTransfer-Encoding: chunked\r\n", 400),
    ],
    ids=["version", "key", "upgrade", "post", "extensions", "framing"],
)
def test_a_handshake_that_is_none_is_the_client_s_fault(
    node: Node, handshake: bytes, status: int
) -> None:
    assert answers(node, handshake + b"\r\n") == [status]


def test_many_extensions_are_passed_over(node: Node) -> None:
    offered = ", ".join(["permessage-deflate; client_max_window_bits"] * 1000)
    headers = {"Sec-WebSocket-Extensions": offered}
    with closing(WebSocketClient(node.url(), timeout=PATIENCE, headers=headers)) as client:
        assert client.asked("health")["result"] == {}


def memory_kb(node: Node) -> int:
    (pid,) = node.children()
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if "VmRSS" in line).split()[1])


def test_subscribing_and_leaving_again_and_again_costs_nothing(node: Node) -> None:
    params = {"query": "tm.event='Tx'"}
    with closing(WebSocketClient(node.url(), timeout=PATIENCE)) as client:
        for cycle in range(CYCLES + 500):
            if cycle == 500:
                before = memory_kb(node)
            client.call("subscribe", params)
            client.call("unsubscribe", params)
            assert client.json()["result"] == client.json()["result"] == {}
        grown = memory_kb(node) - before
    assert grown < MEMORY_KB
