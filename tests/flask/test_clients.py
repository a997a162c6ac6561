"""Tests of a client's limits, which are the same by GET, POST, in batches and over
websockets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest
from flask import Flask

from flask_noderpc.signals import wait_began
from flask_noderpc.testing import Node, run_node
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.until import PATIENCE

from ..helpers.http import request
from ..helpers.websocket import WebSocketClient

HOG, GUEST = "127.0.0.2", "127.0.0.3"
LONG = {"wait_time": "30s"}
FULL = "raise NODERPC_MAX_WAITING_CALLS"


@pytest.fixture
def node() -> Iterator[Node]:
    with run_node() as running:
        yield running


class Server:
    """An app with a node's chain, which several addresses call."""

    def __init__(self, app: Flask, url: str, threads: ThreadPoolExecutor) -> None:
        self.app, self.url = app, url
        self._threads = threads
        self._began = threading.Semaphore(0)
        wait_began.connect(self._note)

    def _note(self, sender: object) -> None:
        self._began.release()

    def post(self, body: Any, client: str, path: str = "/") -> Any:
        at: Any = self.app.test_client()
        return at.post(path, json=body, environ_base={"REMOTE_ADDR": client}).json

    def get(self, path: str, client: str) -> Any:
        at: Any = self.app.test_client()
        return at.get(path, environ_base={"REMOTE_ADDR": client}).json

    def websocket(self, client: str, path: str = "/websocket") -> WebSocketClient:
        return WebSocketClient(self.url, path=path, source=client)

    def waiting(self, client: str) -> Future[Any]:
        """Return a call as soon as it waits."""
        found = self._threads.submit(self.post, call("events", LONG), client)
        assert self._began.acquire(timeout=PATIENCE)
        return found


@pytest.fixture
def start(node: Node) -> Iterator[Callable[..., Server]]:
    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(10))

        def make(**settings: Any) -> Server:
            app = app_for(node.chain, json_rpc_enable=True, **settings)
            return Server(app, stack.enter_context(serve(app)), threads)

        yield make


def call(method: str, params: Any) -> Any:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.features
def test_the_limit_of_waiting_calls_holds_whichever_way_a_client_asks(
    start: Callable[..., Server], node: Node
) -> None:
    server = start(max_waiting_calls=1)
    waiting = server.waiting(HOG)
    sync = call("eth_sendRawTransactionSync", ["0x00"])
    with (
        closing(server.websocket(HOG)) as socket,
        closing(server.websocket(HOG, "/evm/ws")) as evm_socket,
    ):
        answers = [
            server.get('/events?wait_time="30s"', HOG),
            server.get('/broadcast_tx_commit?tx="a=1"', HOG),
            server.post(call("events", LONG), HOG),
            *server.post([call("events", LONG), call("broadcast_tx_commit", {})], HOG),
            socket.asked("events", LONG),
            server.post(sync, HOG, "/evm"),
            *server.post([sync, sync], HOG, "/evm"),
            evm_socket.asked("eth_sendRawTransactionSync", ["0x00"]),
        ]
    for answer in answers:
        error = answer["error"]
        assert FULL in f"{error['message']} {error.get('data')}"
    assert node.chain.mempool.pending_count().total == 0

    node.produce()
    assert "result" in waiting.result(PATIENCE)
    assert "result" in server.post(call("events", {"wait_time": "10ms"}), HOG)


@pytest.mark.features
@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        ("192.0.2.7:4711", "192.0.2.7:4712", "192.0.2.8:4711"),
        ("[2001:db8::1]:4711", "2001:db8::2", "[2001:db8:0:1::1]:4711"),
        ("::ffff:192.0.2.7", "192.0.2.7", "::ffff:192.0.2.8"),
    ],
)
def test_a_client_is_one_whichever_port_and_form_its_address_has(
    start: Callable[..., Server], node: Node, one: str, same: str, other: str
) -> None:
    server = start(max_waiting_calls=2)
    first, second = server.waiting(one), server.waiting(same)
    assert FULL in server.post(call("events", LONG), same)["error"]["data"]
    assert "result" in server.post(call("events", {"wait_time": "10ms"}), other)
    assert "2 of this client" in first.result(PATIENCE)["error"]["data"]
    node.produce()
    assert "result" in second.result(PATIENCE)


@pytest.mark.features
def test_one_client_cannot_take_all_waiter_slots(
    start: Callable[..., Server], node: Node
) -> None:
    server = start(max_waiting_calls=3)
    hogs = [server.waiting(HOG) for _ in range(3)]
    guest = server.waiting(GUEST)

    received = hogs[0].result(PATIENCE)["error"]["data"]
    assert "3 calls are already waiting, 3 of this client, so this call was dropped" in received
    assert "raise NODERPC_MAX_WAITING_CALLS" in received
    # Two more clients with one call each would leave the hog the same number as each of them.
    again = server.post(call("events", LONG), HOG)["error"]["data"]
    assert again == "3 calls are already waiting; raise NODERPC_MAX_WAITING_CALLS"
    node.produce()
    for each in (*hogs[1:], guest):
        assert "result" in each.result(PATIENCE)


HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


def refused(server: Server, client: str, path: str) -> str:
    """Return the text of the response to a refused handshake."""
    answer = request(server.url + path, headers=HANDSHAKE, source=client)
    assert answer.status == 503
    return answer.text


@pytest.mark.features
def test_a_client_has_so_many_websockets(start: Callable[..., Server]) -> None:
    server = start(max_connections_per_client=2, max_open_connections=3)
    with (
        closing(server.websocket(HOG)),
        closing(server.websocket(HOG, "/evm/ws")),
    ):
        for path in ("/websocket", "/evm/ws"):
            assert refused(server, HOG, path) == (
                "2 websockets of this client are open, its maximum; raise"
                " NODERPC_MAX_CONNECTIONS_PER_CLIENT\n"
            )
        with closing(server.websocket(GUEST)):
            # All websockets of all clients together.
            assert refused(server, GUEST, "/evm/ws") == (
                "3 websockets are open, the maximum; raise NODERPC_MAX_OPEN_CONNECTIONS\n"
            )
            assert server.get("/health", GUEST)["result"] == {}
