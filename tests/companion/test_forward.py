"""Tests of calls that only nodes can answer: which node is asked, and what the response
becomes."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from math import inf
from typing import Any

import pytest

from flask_noderpc.companion.backend import CompanionBackend
from flask_noderpc.companion.connection import limit_time, seconds_left
from flask_noderpc.companion.forward import (
    ForwardedApplication,
    ForwardedMempool,
    ForwardedNetwork,
)
from flask_noderpc.companion.forward_pool import ForwardUpstreams
from flask_noderpc.companion.http import UpstreamLimits
from flask_noderpc.companion.in_flight import ReadsInFlight
from flask_noderpc.companion.pool import Upstreams
from flask_noderpc.companion.reader import Reader
from flask_noderpc.companion.upstream import Upstream
from flask_noderpc.errors import TxRejected, UpstreamUnavailable
from flask_noderpc.testing.node import app_for
from tests.helpers.until import PATIENCE, until

from .conftest import LIMITS
from .raw_node import Respond, hang, http, raw_node, results


def of_038(*urls: str) -> Upstreams:
    """Return two nodes of CometBFT 0.38; the second is asked first."""
    nodes = [Upstream(url, dialect="comet-0.38", limits=LIMITS) for url in urls]
    return Upstreams([Reader(node) for node in nodes], 0.0)


def query_result(code: int, log: str, value: bytes = b"") -> Respond:
    """Return a function that gives every query this result."""
    texts = dict.fromkeys(("info", "key", "codespace"), "")
    members = {"code": code, "log": log, "index": "0", "height": "5", "proofOps": None}
    shown = base64.b64encode(value).decode() if value else None
    return results({"response": {**texts, **members, "value": shown}})


def refuses(text: str) -> Respond:
    """Return a function that answers every call with an error."""

    def respond(peer: socket.socket, body: bytes) -> None:
        error = {"code": -32603, "message": "Internal error", "data": text}
        answer = {"jsonrpc": "2.0", "id": json.loads(body)["id"], "error": error}
        peer.sendall(http(json.dumps(answer).encode(), Content_Type="application/json"))

    return respond


PRUNED = [
    (0, "version does not exist"),
    (1, "height not found"),
    (18, "proof is unexpectedly empty; ensure height has not been pruned: invalid request"),
    (18, "failed to load state at height 5; version does not exist (latest height: 9)"),
    (26, "height 5 is not available, lowest height is 8"),
]


@pytest.mark.parametrize(("code", "log"), PRUNED)
def test_a_query_is_answered_by_a_node_that_has_the_state(code: int, log: str) -> None:
    """A node that has pruned the state is asked first; its error is returned if no node has the
    state."""

    def query(*urls: str) -> Any:
        with closing(of_038(*urls)) as nodes:
            return ForwardedApplication(nodes, lambda: 9).query("/store/a/key", b"k", 5, False)

    with (
        raw_node(query_result(0, "", b"value")) as whole,
        raw_node(query_result(code, log)) as pruned,
    ):
        assert query(whole, pruned).value == query(pruned, whole).value == b"value"
        assert query(pruned).log == log


def test_an_empty_value_is_an_answer() -> None:
    """The node has no value for the key."""
    with (
        raw_node(query_result(0, "", b"value")) as other,
        raw_node(query_result(0, "does not exist")) as first,
        closing(of_038(other, first)) as nodes,
    ):
        assert ForwardedApplication(nodes, lambda: 9).query("", b"k", 5, False).value == b""


def sent(respond: Respond) -> Callable[[], Any]:
    """Return a function that sends a transaction to a node."""

    def send() -> Any:
        with raw_node(respond) as url, closing(of_038(url)) as nodes:
            return ForwardedMempool(nodes).submit(b"a=1")

    return send


def test_a_failed_check_of_1_0_is_a_result() -> None:
    """Another error that only looks like a failed check stays the node's error."""
    text = "tx AB is invalid: code=7, data=0A0B, log='it''s', codespace='sdk'"
    check = sent(refuses(f"broadcast error on transaction validation: {text}"))()
    assert (check.code, check.data, check.log, check.codespace) == (7, b"\n\v", "it''s", "sdk")
    with pytest.raises(TxRejected, match="data=ABC"):
        sent(refuses("tx AB is invalid: code=1, data=ABC, log='x', codespace=''"))()


def counting(respond: Respond, asked: list[bytes], released: threading.Event) -> Respond:
    """Return a function that records the request, waits for the event, and then responds."""

    def wait(peer: socket.socket, body: bytes) -> None:
        asked.append(body)
        released.wait()
        respond(peer, body)

    return wait


def test_equal_reads_of_mempool_and_round_in_flight_are_one() -> None:
    """A client that submitted a transaction sees the mempool as it was after that."""
    asked, released = list[bytes](), threading.Event()
    # The response fits all three methods.
    answer = {"n_txs": "1", "total": "1", "total_bytes": "3", "txs": ["YT0x"], "round_state": 1}
    with (
        raw_node(counting(results(answer), asked, released)) as url,
        closing(of_038(url)) as nodes,
        ThreadPoolExecutor(30) as clients,
    ):
        mempool = ForwardedMempool(nodes)
        network = ForwardedNetwork(lambda: "chain", nodes, lambda: 9)
        reads: list[Callable[[], Any]] = [
            lambda: mempool.pending(30),
            mempool.pending_count,
            lambda: network.live_round("comet-0.38", dump=False),
        ]
        begun = threading.Barrier(30)

        def read(number: int) -> Any:
            begun.wait()
            return reads[number % 3]()

        found = [clients.submit(read, number) for number in range(30)]
        until(lambda: len(asked) >= 3, "the three reads")
        released.set()
        assert all(each.result(PATIENCE) for each in found)
        assert len(asked) < 30


def test_a_killed_reader_takes_nobody_along() -> None:
    """gevent kills a greenlet whose client has gone; another caller reads instead."""
    reads = ReadsInFlight(nullcontext)
    begun, killed = threading.Event(), threading.Event()

    def is_killed() -> str:
        begun.set()
        killed.wait()
        raise SystemExit

    with ThreadPoolExecutor(2) as clients:
        first = clients.submit(reads.get, "key", is_killed)
        begun.wait()
        second = clients.submit(reads.get, "key", lambda: "found")
        killed.set()
        assert second.result(PATIENCE) == "found"
        assert isinstance(first.exception(PATIENCE), SystemExit)


def test_all_requests_of_a_call_share_its_time() -> None:
    """The check of the node, the wait for its rate limit, and the request share one timeout."""
    asked: list[bytes] = []
    with raw_node(lambda peer, body: asked.append(body)) as url:
        limits = UpstreamLimits(timeout=PATIENCE, patience=10 * PATIENCE)
        upstreams = ForwardUpstreams([Reader(Upstream(url, limits=limits))])
        assert 0 < upstreams.attempt(lambda reader: seconds_left(inf)) <= PATIENCE
        assert seconds_left(7.0) == 7.0

        with limit_time(0.0), pytest.raises(UpstreamUnavailable, match="not asked"):
            upstreams.attempt(lambda reader: reader.status())
    assert not asked


def test_a_node_that_was_not_asked_is_not_failing() -> None:
    """Another node takes the whole time of the call."""
    limits = UpstreamLimits(timeout=0.5)
    with (
        raw_node(hang) as hangs,
        raw_node(results("found")) as works,
    ):
        nodes = [Upstream(url, limits=limits) for url in (works, hangs)]
        upstreams = ForwardUpstreams([Reader(node) for node in nodes])
        with pytest.raises(UpstreamUnavailable, match="no response within"):
            upstreams.attempt(lambda reader: reader.node.raw("x"))
        assert upstreams.states() == {nodes[0].name: "up", nodes[1].name: "failing"}
        for _ in range(3):
            found = upstreams.attempt(lambda reader: reader.node.raw("x"))
            assert bytes(found) == b'"found"'


@pytest.mark.parametrize(
    "path",
    [
        "block",
        "block?height=1",
        f"block_by_hash?hash=0x{'00' * 32}",
        "block_results?height=1",
        'block_search?query="block.height=1"',
        "blockchain",
        "commit?height=1",
        "consensus_params",
        "genesis",
        "genesis_chunked",
        "header?height=1",
        "status",
        f"tx?hash=0x{'00' * 32}",
        'tx_search?query="tx.height=1"',
        "validators",
    ],
)
def test_what_is_said_before_the_first_block_while_no_node_answers(
    path: str, companion: Callable[..., CompanionBackend]
) -> None:
    """The error says that no node responds, and not that the chain has no blocks."""
    client = app_for(companion("http://127.0.0.1:1"), dialect="comet-0.38").test_client()

    error = client.get(f"/{path}").get_json()["error"]

    assert error["data"] == (
        "no block of the chain has been fetched yet: upstream http://127.0.0.1:1: it can't be"
        " reached"
    )
