"""Tests that a companion refuses subscriptions to events of a node's consensus that blocks do
not contain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

import pytest

from flask_noderpc.events.messages import NODE_EVENTS
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.until import PATIENCE
from tests.helpers.websocket import WebSocketClient

from .conftest import HEIGHTS, Companion, Serve, node_of
from .test_follow import reaches
from .test_import import get


@pytest.fixture
def served(chain: SampleChain, serve_node: Serve, companion: Companion) -> Iterator[str]:
    """Yield the URL of a companion that lacks the chain's last block."""
    node = node_of(chain, HEIGHTS - 1)
    followed = companion(serve_node(node))
    followed.follow()
    reaches(followed, HEIGHTS - 1)
    with serve(app_for(followed, dialect="comet-0.38")) as url:
        yield url


REFUSED = {f"tm.event='{name}'": name for name in sorted(NODE_EVENTS)} | {
    "tm.event CONTAINS 'Timeout'": "TimeoutPropose, TimeoutWait",
    "tm.event='Relock' AND app.key EXISTS": "Relock",
}
TAKEN = (
    "app.key EXISTS",
    "tm.event EXISTS",
    "tm.event CONTAINS 'New'",
    "tm.event CONTAINS 'ock'",
    "tm.event='NewBlock'",
    "tm.event='NewRound'",
    "tm.event='Vote'",
    "tm.event='OfAnotherVersion'",
)


def test_subscriptions_to_what_blocks_do_not_hold_are_refused_with_the_reason(
    served: str,
) -> None:
    with closing(WebSocketClient(served, timeout=PATIENCE)) as client:
        for query, named in REFUSED.items():
            client.call("subscribe", {"query": query})
            error = client.json()["error"]
            assert error["code"] == -32603
            assert error["data"].startswith(
                f"events of {named} are not available here: a companion"
            )
            assert "subscribe at one of the nodes that it follows" in error["data"]


def test_other_subscriptions_are_taken(served: str) -> None:
    """These queries match some of the refused events and other events."""
    with closing(WebSocketClient(served, timeout=PATIENCE)) as client:
        for query in TAKEN:
            client.call("subscribe", {"query": query})
            assert client.json()["result"] == {}
            client.call("unsubscribe_all")
            assert client.json()["result"] == {}


def test_the_event_log_refuses_them_too(served: str) -> None:
    """Without a filter, the log has the events that are derived from blocks."""
    asked = quote(json.dumps({"query": "tm.event='TimeoutPropose'"}))
    refused = json.loads(get(f"{served}/events?filter={asked}"))
    assert "events of TimeoutPropose are not available here" in refused["error"]["data"]
    assert json.loads(get(f"{served}/events?max_results=100"))["result"]["items"]
