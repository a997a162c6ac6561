"""Tests of subscribe, unsubscribe, unsubscribe_all, and the events of subscribers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.errors import StoreError
from flask_noderpc.testing import Node
from flask_noderpc.testing.node import app_for, serve

from ..helpers.websocket import WebSocketClient
from .conftest import Connect

BLOCKS = {"query": "tm.event='NewBlockHeader'"}


def test_a_subscriber_gets_events_that_match_its_query(node: Node, connect: Connect) -> None:
    client = connect()
    query = "tm.event = 'Tx' AND app.key='name'"
    assert client.asked("subscribe", {"query": query}, "s1") == {
        "jsonrpc": "2.0",
        "id": "s1",
        "result": {},
    }
    node.chain.mempool.submit(b"other=1")
    node.chain.mempool.submit(b"name=satoshi")
    node.produce()

    received = client.json()

    assert (received["id"], received["result"]["query"]) == ("s1", query)
    assert received["result"]["data"]["type"] == "tendermint/event/Tx"
    assert received["result"]["data"]["value"]["TxResult"]["index"] == 1
    assert received["result"]["events"]["app.key"] == ["name", "satoshi"]


@pytest.mark.parametrize("params", [BLOCKS, [BLOCKS["query"]]])
def test_a_query_comes_in_an_object_or_alone_in_an_array(
    node: Node, connect: Connect, params: Any
) -> None:
    client = connect()

    assert client.asked("subscribe", params)["result"] == {}
    node.produce()

    assert client.json()["result"]["data"]["value"]["header"]["height"] == "1"


def test_every_category_of_a_block_can_be_read(node: Node, connect: Connect) -> None:
    categories = ["NewRound", "NewRoundStep", "CompleteProposal", "Vote", "Polka", "Lock"]
    categories += ["ValidBlock", "NewBlock", "NewBlockHeader", "NewBlockEvents", "Tx"]
    clients = {category: connect() for category in categories}
    for category, client in clients.items():
        client.asked("subscribe", {"query": f"tm.event='{category}'"})
    node.chain.mempool.submit(b"a=1")
    node.produce()

    for category, client in clients.items():
        received = client.json()["result"]
        assert received["events"]["tm.event"] == [category]


def test_subscribing_to_a_category_without_events_succeeds(connect: Connect) -> None:
    assert connect().asked("subscribe", {"query": "tm.event='TimeoutWait'"})["result"] == {}


def test_every_other_route_answers_on_the_same_socket(node: Node, connect: Connect) -> None:
    client = connect()

    assert client.asked("health", request_id=7) == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert client.asked("broadcast_tx_sync", {"tx": "YT0x"})["result"]["code"] == "0"
    assert client.asked("block", {"height": "x"})["error"]["code"] == -32602
    assert client.asked("nosuch")["error"]["code"] == -32601
    assert node.chain.mempool.pending_count().total == 1


def test_events_come_in_order_and_once_to_everyone(node: Node, connect: Connect) -> None:
    clients = [connect() for _ in range(3)]
    for client in clients:
        client.asked("subscribe", {"query": "tm.event='Tx'"})
    for height in range(4):
        for index in range(60):
            node.chain.mempool.submit(b"k%d.%d=v" % (height, index))
        node.produce()

    expected = [(str(height), index) for height in range(1, 5) for index in range(60)]
    for client in clients:
        received = [client.json()["result"]["data"]["value"]["TxResult"] for _ in expected]
        assert [(tx["height"], tx["index"]) for tx in received] == expected


def test_a_query_is_known_by_its_normal_form(connect: Connect) -> None:
    client = connect()
    client.asked("subscribe", {"query": "tm.event='Tx'"})

    again = client.asked("subscribe", {"query": "tm.event  =  'Tx'"})
    ended = client.asked("unsubscribe", {"query": "tm.event= 'Tx'"})

    assert again["error"]["data"] == "already subscribed"
    assert ended["result"] == {}


def test_after_unsubscribing_nothing_is_read(node: Node, connect: Connect) -> None:
    client = connect()
    client.asked("subscribe", BLOCKS)
    client.asked("subscribe", {"query": "tm.event='Tx'"})

    assert client.asked("unsubscribe_all")["result"] == {}
    node.produce()

    assert client.asked("health", request_id="next")["id"] == "next"


@pytest.mark.parametrize(
    ("method", "params", "text"),
    [
        ("unsubscribe", BLOCKS, "subscription not found"),
        ("unsubscribe_all", None, "subscription not found"),
        ("subscribe", {"query": "x="}, "failed to parse query: offset 2: EOF"),
        ("subscribe", {"query": "x='" + "y" * 509 + "'"}, "expected at most 512 bytes"),
        ("subscribe", {"query": 5}, "query: expected a string"),
        ("subscribe", None, "query: expected a value, got none"),
        ("subscribe", ["a='1'", "b='2'"], "at most 1 parameters"),
    ],
)
def test_invalid_subscriptions_get_clear_errors(
    connect: Connect, method: str, params: Any, text: str
) -> None:
    assert text in connect().asked(method, params)["error"]["data"]


def test_a_query_of_just_the_longest_length_is_taken(connect: Connect) -> None:
    query = "x='" + "y" * (512 - 4) + "'"

    assert connect().asked("subscribe", {"query": query})["result"] == {}


def test_a_client_may_have_five_subscriptions(connect: Connect) -> None:
    client = connect()
    for number in range(5):
        assert client.asked("subscribe", {"query": f"a.b='{number}'"})["result"] == {}

    refused = client.asked("subscribe", {"query": "a.b='5'"})

    assert "NODERPC_MAX_SUBSCRIPTIONS_PER_CLIENT" in refused["error"]["data"]


def test_a_disconnect_releases_the_subscription_slot(
    start: Callable[..., Node], connect: Connect
) -> None:
    node = start(max_subscription_clients=1)
    first, second = connect(node), connect(node)
    first.asked("subscribe", BLOCKS)

    refused = second.asked("subscribe", BLOCKS)
    first.asked("unsubscribe_all")

    assert "max_subscription_clients 1 reached" in refused["error"]["data"]
    assert second.asked("subscribe", BLOCKS)["result"] == {}


@pytest.mark.parametrize(
    ("text", "code"),
    [("[]", -32600), ("[", -32700), ('[{"id":1,"method":"health"}]', -32600), ("5", -32600)],
)
def test_an_invalid_message_is_an_error_and_the_socket_stays_open(
    connect: Connect, text: str, code: int
) -> None:
    client = connect()
    client.text(text)

    assert client.json()["error"]["code"] == code
    assert client.asked("health")["result"] == {}


def test_a_notification_gets_no_answer(connect: Connect) -> None:
    client = connect()
    client.text('{"method":"health"}')

    assert client.asked("health", request_id="next")["id"] == "next"


def test_a_subscription_may_be_the_first_request_of_a_process(tmp_path: Path) -> None:
    chain = EmbeddedChain(
        tmp_path / "chain.db", schedule=BlockSchedule(0.01, empty_blocks=True)
    )
    with (
        closing(chain),
        serve(app_for(chain)) as url,
        closing(WebSocketClient(url)) as client,
    ):
        assert client.asked("subscribe", BLOCKS)["result"] == {}
        received = client.json()["result"]["data"]["value"]
        # The chain has begun; on a slow machine it is past its first block.
        assert int(received["header"]["height"]) >= 1


def test_a_failed_subscription_does_not_count_toward_the_limit(
    start: Callable[..., Node], connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> int:
        raise StoreError("no such luck")

    node = start(max_subscription_clients=1)
    with monkeypatch.context() as patched:
        patched.setattr(node.chain.reads, "latest_height", fails)
        assert "no such luck" in connect(node).asked("subscribe", BLOCKS)["error"]["data"]

    assert connect(node).asked("subscribe", BLOCKS)["result"] == {}


class ChainWithoutStore(EmbeddedChain):
    """A chain whose store can't be opened."""

    def start(self) -> None:
        raise StoreError("the store is gone")


def test_leaving_needs_no_store_that_can_be_opened(tmp_path: Path) -> None:
    chain = ChainWithoutStore(tmp_path / "chain.db", produce=False)
    with serve(app_for(chain)) as url, closing(WebSocketClient(url)) as client:
        left = client.asked("unsubscribe_all")["error"]["data"]
        status = client.asked("status")["error"]["data"]

    assert "subscription not found" in left
    assert "the store is gone" in status
