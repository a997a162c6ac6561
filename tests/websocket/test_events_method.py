"""Tests of ``events``: a client that was disconnected gets all events that it missed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from flask_noderpc.cometbft import events as event_log
from flask_noderpc.testing import Node
from tests.helpers.until import PATIENCE

from ..helpers.http import HttpResponse, call, get
from .conftest import Connect

TXS = {"query": "tm.event='Tx'"}


def events(node: Node, **params: Any) -> Any:
    return call(node.url, "events", params).json["result"]


def produce(node: Node, blocks: int, txs: int = 2) -> None:
    for _ in range(blocks):
        height = node.chain.reads.latest_height() + 1
        for index in range(txs):
            node.chain.mempool.submit(b"k%d.%d=v" % (height, index))
        node.produce()


def pages(node: Node, **params: Any) -> list[Any]:
    """Return all items, newest first, page by page."""
    page = events(node, **params)
    items = list(page["items"])
    while page["more"]:
        page = events(node, **{**params, "before": items[-1]["cursor"]})
        items += page["items"]
    return items


def test_the_events_method_returns_what_subscribers_got(node: Node, connect: Connect) -> None:
    client = connect()
    client.asked("subscribe", {"query": "tm.event EXISTS"})
    produce(node, 3)
    items = pages(node, max_results=7)[::-1]
    received = [client.json()["result"] for _ in items]

    assert [item["data"] for item in items] == [one["data"] for one in received]
    assert [[item["event"]] for item in items] == [
        one["events"]["tm.event"] for one in received
    ]
    cursors = [item["cursor"] for item in items]
    assert cursors == sorted(set(cursors))
    ends = events(node)
    assert (ends["oldest"], ends["newest"]) == (cursors[0], cursors[-1])


def test_a_cursor_resumes_after_a_pause(node: Node) -> None:
    produce(node, 2)
    seen = pages(node, filter=TXS)
    produce(node, 3)

    missed = pages(node, filter=TXS, after=seen[0]["cursor"], max_results=4)

    assert [*missed, *seen] == pages(node, filter=TXS)
    assert len(missed) == 6


def test_an_empty_chain_has_no_events(node: Node) -> None:
    assert events(node) == {"items": [], "more": False, "oldest": "", "newest": ""}


def test_a_cursor_of_an_empty_chain_resumes(node: Node) -> None:
    begin = events(node)["newest"]
    produce(node, 2)

    assert pages(node, after=begin) == pages(node)
    assert get(node.url, "/events", {"after": f'"{begin}"'}).json["result"] == events(node)


def test_events_are_newest_first_and_limited_by_max_results(node: Node) -> None:
    produce(node, 2, txs=60)

    assert [len(events(node, filter=TXS, max_results=n)["items"]) for n in (0, 3, 999)] == [
        10,
        3,
        100,
    ]
    newest = events(node, filter=TXS, max_results=1)["items"][0]["data"]["value"]["TxResult"]
    assert (newest["height"], newest["index"]) == ("2", 59)


def test_wait_time_returns_when_an_event_happens(node: Node) -> None:
    produce(node, 1)
    last = events(node)["newest"]
    answers: list[Any] = []
    asking = threading.Thread(
        target=lambda: answers.append(
            events(node, filter=TXS, after=last, wait_time="30s", max_results=5)
        )
    )
    asking.start()
    produce(node, 1, txs=0)
    produce(node, 1, txs=2)
    asking.join(PATIENCE)

    assert [item["event"] for item in answers[0]["items"]] == ["Tx", "Tx"]


def test_a_wait_ends(node: Node) -> None:
    produce(node, 1)

    for before in ({}, {"before": events(node)["oldest"], "wait_time": "30s"}):
        answer = events(node, **{"after": events(node)["newest"], "wait_time": 1, **before})
        assert answer["items"] == []


def test_waiting_events_calls_count_toward_the_waiter_limit(start: Callable[..., Node]) -> None:
    node = start(max_waiting_calls=1)
    replies: list[Any] = []
    waiting = [
        threading.Thread(
            target=lambda: replies.append(call(node.url, "events", {"wait_time": "30s"}).json)
        )
        for _ in range(2)
    ]
    for thread in waiting:
        thread.start()
    while not replies:
        threading.Event().wait(0.005)
    # One of the two calls is refused at once; the other waits for this block.
    produce(node, 1)
    for thread in waiting:
        thread.join(PATIENCE)

    assert "NODERPC_MAX_WAITING_CALLS" in replies[0]["error"]["data"]
    assert len(replies[1]["result"]["items"]) == 10


def test_the_event_log_has_the_latest_blocks(
    start: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "LOG_BLOCKS", 2)
    node = start()
    produce(node, 5)

    items = pages(node)

    assert items[-1]["cursor"] == events(node)["oldest"] == f"{4:016X}-{0:08X}"


def test_looking_for_too_long_is_refused(start: Callable[..., Node]) -> None:
    node = start(search_timeout=1e-9)
    produce(node, 2)

    reply = call(node.url, "events", {"filter": {"query": "a.b='never'"}}).json

    assert "NODERPC_SEARCH_TIMEOUT" in reply["error"]["data"]


@pytest.mark.parametrize("category", ["NewBlock", "Tx"])
def test_a_page_that_gets_large_ends_early(start: Callable[..., Node], category: str) -> None:
    node = start(max_response_bytes=5_000)
    for number in range(4):
        node.chain.mempool.submit(b"k%d=" % number + b"x" * 1_000)
        node.produce()
    expected = {"query": f"tm.event='{category}'"}

    first = events(node, filter=expected, max_results=100)
    everything = pages(node, filter=expected, max_results=100)

    assert first["more"]
    assert 0 < len(first["items"]) < 4
    assert len(everything) == 4


def test_an_absent_vote_leaves_the_places_as_they_are(node: Node) -> None:
    produce(node, 2, txs=1)
    both = {item["event"]: item["cursor"] for item in pages(node, after=f"{1:016X}-FFFFFFFF")}

    assert both["Vote"] == f"{2:016X}-{8:08X}"
    assert both["Tx"] == f"{2:016X}-{13:08X}"


def test_a_get_takes_the_filter_as_json_or_as_a_query(node: Node) -> None:
    produce(node, 1)
    expected = events(node, filter=TXS, max_results=1)
    cursor = expected["items"][0]["cursor"]

    def got(**params: str) -> HttpResponse:
        return get(node.url, "/events", params)

    for given in ('{"query":"tm.event=\'Tx\'"}', "\"tm.event='Tx'\""):
        assert got(filter=given, max_results="1").json["result"] == expected
    for after in (cursor, f'"{cursor}"'):
        (left,) = got(after=after, wait_time="1ms").json["result"]["items"]
        assert left["event"] == "NewRoundStep"


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"after": "x"}, "after: expected a cursor"),
        ({"before": 5}, "before: expected a cursor"),
        ({"wait_time": "5 s"}, "wait_time: expected nanoseconds"),
        ({"wait_time": -1}, "wait_time"),
        ({"wait_time": True}, "wait_time"),
        ({"filter": 5}, "filter: expected an object"),
        ({"filter": {"query": 5}}, "filter: expected an object"),
        ({"filter": {"query": "nothing"}}, "EOF"),
        ({"filter": {"query": "a.b='" + "x" * 512 + "'"}}, "expected at most 512 bytes"),
    ],
)
def test_bad_cursors_and_filters_are_refused(
    node: Node, params: dict[str, Any], reason: str
) -> None:
    assert reason in call(node.url, "events", params).json["error"]["data"]


def test_a_filter_that_is_no_json_is_refused(node: Node) -> None:
    assert get(node.url, "/events", {"filter": "{"}).status == 400
