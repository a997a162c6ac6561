"""Tests that slow subscribers get an error, that no other is delayed, and that nothing
leaks."""

from __future__ import annotations

import gc
import json
import os
import socket
import threading
from collections.abc import Callable

import pytest

from flask_noderpc.jsonrpc import subscriptions
from flask_noderpc.signals import websocket_closed
from flask_noderpc.testing import Node
from flask_noderpc.web.connection import Timing
from flask_noderpc.web.connections import WebSocketServer

from ..helpers.until import PATIENCE, until
from ..helpers.websocket import WebSocketClient
from .conftest import Connect

ALL_TXS = {"query": "tm.event='Tx'"}


@pytest.mark.parametrize("count", [1, 201, 2000])
def test_a_block_of_any_size_cancels_no_reading_subscriber(
    node: Node, connect: Connect, count: int
) -> None:
    stalled, clients = connect(), [connect() for _ in range(5)]
    for client in (stalled, *clients):
        client.asked("subscribe", ALL_TXS)
    for index in range(count):
        node.chain.mempool.submit(b"k%d=v" % index)
    node.produce()

    # All clients read, and none waits for another.
    for index in range(count):
        for client in clients:
            assert client.json()["result"]["data"]["value"]["TxResult"]["index"] == index


def test_a_slow_subscriber_is_cancelled_and_may_resubscribe(
    start: Callable[..., Node], connect: Connect
) -> None:
    node = start(event_buffer=5, max_body_bytes=4_000_000)
    slow, quick = connect(node), connect(node)
    slow.asked("subscribe", ALL_TXS, "slow")
    quick.asked("subscribe", ALL_TXS)
    for height in range(30):
        # The events are larger than the sockets' buffers, so that the writer blocks.
        node.chain.mempool.submit(b"k%d=" % height + b"x" * 900_000)
        node.produce()
        assert quick.json()["result"]["data"]["value"]["TxResult"]["height"] == str(height + 1)

    while "error" not in (received := slow.json()):
        assert received["id"] == "slow"

    assert received["error"]["code"] == -32000
    assert "subscription was canceled" in received["error"]["data"]
    assert "NODERPC_EVENT_BUFFER" in received["error"]["data"]
    assert slow.asked("subscribe", ALL_TXS)["result"] == {}


def test_a_non_reading_subscriber_is_closed_with_a_reason(
    start: Callable[..., Node], connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WebSocketServer, "timing", Timing(write_s=0.5, close_s=0.5))
    monkeypatch.setattr(subscriptions, "MAX_BUFFER_BYTES", 100_000_000)
    node = start()
    closed = threading.Event()
    with websocket_closed.connected_to(lambda sender: closed.set()):
        stalled = connect(node)
        stalled.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        stalled.asked("subscribe", ALL_TXS, "stalled")
        # The events are larger than the kernel's buffers for one connection.
        for index in range(200):
            node.chain.mempool.submit(b"k%d=" % index + b"x" * 50_000)
        node.produce()
        assert closed.wait(PATIENCE)

    *events, notice = (json.loads(text) for text in iter(stalled.read, None))
    assert stalled.closed == 1013
    assert notice["id"] == "stalled"
    assert notice["error"]["code"] == -32000
    assert "slow client" in notice["error"]["data"]
    indexes = [each["result"]["data"]["value"]["TxResult"]["index"] for each in events]
    assert indexes == list(range(len(indexes)))
    assert len(indexes) < 200


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_nothing_is_left_of_clients_that_vanish(node: Node, connect: Connect) -> None:
    def once() -> None:
        client = WebSocketClient(node.url)
        client.asked("subscribe", ALL_TXS)
        client.close()

    once()
    # Fewer than one file for each client; the store may open a few more for reads.
    threads, most_files = set(threading.enumerate()), open_files() + 12
    for _ in range(50):
        once()

    def left() -> list[str]:
        names = [t.name for t in threading.enumerate() if t not in threads]
        # Feed and listener threads stay as long as the node.
        return [name for name in names if "feed" not in name and "listener" not in name]

    until(lambda: not left(), "their threads end")
    gc.collect()
    until(lambda: open_files() <= most_files, "their files are closed")
