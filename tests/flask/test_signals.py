"""Tests of signals that an app receives from its node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from blinker import NamedSignal

from flask_noderpc import EmbeddedChain
from flask_noderpc.jsonrpc.subscriptions import ClientSubscriptions, EventBuffers, Subscription
from flask_noderpc.signals import (
    block_committed,
    rpc_called,
    subscription_closed,
    subscription_opened,
    wait_began,
    wait_ended,
    websocket_closed,
    websocket_opened,
)
from flask_noderpc.testing import Node, run_node
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.until import PATIENCE
from tests.helpers.websocket import WebSocketClient

QUERY = {"query": "tm.event='Tx'"}


class Heard:
    """Records the arguments of a signal, in order."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self._news = threading.Condition()

    def __call__(self, sender: object, **said: Any) -> None:
        with self._news:
            self.said.append(said)
            self._news.notify_all()

    def wait(self, count: int) -> list[dict[str, Any]]:
        with self._news:
            assert self._news.wait_for(lambda: len(self.said) >= count, PATIENCE), self.said
        return self.said


@contextmanager
def hearing(signal: NamedSignal, sender: object) -> Iterator[Heard]:
    heard = Heard()
    with signal.connected_to(heard, sender=sender):
        yield heard


@pytest.fixture
def node() -> Iterator[Node]:
    with run_node() as running:
        yield running


def test_rpc_called_has_method_outcome_and_transport(node: Node) -> None:
    client = app_for(node.chain, max_batch=3).test_client()
    with hearing(rpc_called, node.chain) as heard:
        client.get("/health")
        client.get("/block?height=7")
        client.post("/", data=b'{"id":1,"method":"nonsense"}')
        client.post(
            "/",
            data=b'[{"id":1,"method":"health"},{"id":2,"method":"block","params":{"height":[]}}]',
        )

    assert [(each["method"], each["outcome"], each["transport"]) for each in heard.said] == [
        ("health", 0, "get"),
        ("block", -32603, "get"),
        ("unknown", -32601, "post"),
        ("health", 0, "post"),
        ("block", -32602, "post"),
    ]
    assert all(each["seconds"] > 0 for each in heard.said)


def test_signals_are_sent_for_websockets_and_subscriptions(node: Node) -> None:
    with (
        hearing(websocket_opened, node.chain) as opened,
        hearing(websocket_closed, node.chain) as closed,
        hearing(subscription_opened, node.chain) as began,
        hearing(subscription_closed, node.chain) as ended,
        hearing(rpc_called, node.chain) as calls,
    ):
        with closing(WebSocketClient(node.url)) as client:
            client.asked("subscribe", QUERY)
            client.asked("unsubscribe", QUERY)
            client.asked("subscribe", QUERY)
            client.asked("unsubscribe_all", {})
            client.asked("subscribe", QUERY)
            client.asked("subscribe", QUERY)
        closed.wait(1)

    assert (len(opened.said), len(began.said)) == (1, 3)
    assert [each["reason"] for each in ended.said] == [
        "unsubscribed",
        "unsubscribed",
        "disconnected",
    ]
    assert [(each["method"], each["outcome"]) for each in calls.said] == [
        ("subscribe", 0),
        ("unsubscribe", 0),
        ("subscribe", 0),
        ("unsubscribe_all", 0),
        ("subscribe", 0),
        ("subscribe", -32603),
    ]
    assert {each["transport"] for each in calls.said} == {"websocket"}


def test_a_slow_subscriber_is_signalled_as_slow() -> None:
    rings = EventBuffers[str](max_events=1)
    sender, wake = object(), threading.Event().set
    held = ClientSubscriptions[str](rings, wake, sender)
    ring, cursor = rings.join("blocks", wake)
    with hearing(subscription_closed, sender) as ended:
        held.add("one", Subscription(b"1", ring, cursor, b""))
        held.begin()
        for _ in range(3):
            ring.extend([b"a block's", b"events"])
        list(held.pull(lambda _: ()))

    assert ended.said == [{"reason": "too slow"}]


@pytest.mark.features
def test_rpc_called_has_the_codes_of_the_evm_layer(node: Node) -> None:
    app = app_for(node.chain, json_rpc_enable=True)
    with (
        serve(app) as url,
        hearing(rpc_called, node.chain) as calls,
        hearing(subscription_closed, node.chain) as ended,
        closing(WebSocketClient(url, path="/evm/ws")) as client,
    ):
        name = client.asked("eth_subscribe", ["newHeads"])["result"]
        client.asked("eth_unsubscribe", [name])
        failed = client.asked("eth_getBalance", ["0x" + "00" * 20, "latest"])["error"]["code"]

    assert [(each["method"], each["outcome"]) for each in calls.said] == [
        ("eth_subscribe", 0),
        ("eth_unsubscribe", 0),
        ("eth_getBalance", failed),
    ]
    assert [each["reason"] for each in ended.said] == ["unsubscribed"]


def test_signals_are_sent_for_blocks_and_waiting_calls(node: Node) -> None:
    with (
        hearing(block_committed, node.chain) as blocks,
        hearing(wait_began, node.chain) as began,
        hearing(wait_ended, node.chain) as ended,
    ):
        client = app_for(node.chain).test_client()
        caller = threading.Thread(target=client.get, args=('/broadcast_tx_commit?tx="a=1"',))
        caller.start()
        began.wait(1)
        # The wait may begin before its transaction is pending.
        assert node.chain.store.wait_for_pending(PATIENCE)
        node.produce()
        ended.wait(1)
        caller.join()

    assert blocks.said == [{"height": 1}]


def test_a_failing_receiver_affects_nothing_else(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(sender: EmbeddedChain, **said: object) -> None:
        raise RuntimeError("not today")

    receiver: Callable[..., None] = fail
    with rpc_called.connected_to(receiver), block_committed.connected_to(receiver):
        assert app_for(node.chain).test_client().get("/health").status_code == 200
        assert node.produce() == 1

    failures = (record for record in caplog.records if record.name == "flask_noderpc.signals")
    assert [record.getMessage() for record in failures] == [
        "a receiver of the signal rpc-called raised an error",
        "a receiver of the signal block-committed raised an error",
    ]
