"""Tests of threads that are reserved for requests on servers with a fixed number of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from flask_noderpc.testing import Node, run_node
from flask_noderpc.testing.node import app_for

from ..helpers.http import request
from ..helpers.until import PATIENCE, until
from ..helpers.websocket import WebSocketClient

HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@pytest.fixture
def node() -> Iterator[Node]:
    """A node that is configured for two threads; one of them may be held by a waiting call."""
    with run_node(server_threads=2, broadcast_timeout=PATIENCE) as running:
        yield running


def connected(node: Node) -> WebSocketClient:
    """Return a client, once the threads that others held in this process are free."""
    made: list[WebSocketClient] = []

    def holds() -> bool:
        try:
            made.append(WebSocketClient(node.url))
        except ConnectionRefusedError:
            return False
        return True

    until(holds, "a free thread")
    return made[0]


def test_a_websocket_above_the_limit_is_refused_with_the_setting(node: Node) -> None:
    with closing(connected(node)):
        refused = request(node.url + "/websocket", headers=HANDSHAKE)
        assert refused.status == 503
        assert "occupy 1 of the server's 2 threads" in refused.text
        assert "NODERPC_SERVER_THREADS" in refused.text
    connected(node).close()


def test_a_call_that_waits_on_a_websocket_has_its_thread(node: Node) -> None:
    with closing(connected(node)) as client:
        client.call("broadcast_tx_commit", {"tx": "b3duPTE="})
        assert node.chain.store.wait_for_pending(PATIENCE)
        node.produce()
        assert client.json()["result"]["height"] == "1"


def test_waiting_calls_and_websockets_of_all_mounts_count_together(node: Node) -> None:
    other = app_for(node.chain, server_threads=2).test_client()
    with closing(connected(node)):
        answer: Any = other.get('/broadcast_tx_commit?tx="a=1"').json
        assert "occupy 1 of the server's 2 threads" in answer["error"]["data"]
        assert node.chain.mempool.pending_count().total == 0
        assert other.get("/health").status_code == 200
