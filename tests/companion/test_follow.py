"""Tests of a growing chain that is followed, and served with what only its node knows."""

from __future__ import annotations

import json
import logging
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from flask import Flask

from flask_noderpc import ChainBackend, EmbeddedChain, NodeRPC
from flask_noderpc.backends.base.evidence import EvidencePool
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.cometbft import info
from flask_noderpc.companion import lease
from flask_noderpc.companion.backend import CompanionBackend
from flask_noderpc.companion.forward import ForwardedApplication
from flask_noderpc.companion.pool import NoUpstream, Upstreams
from flask_noderpc.companion.reader import Reader
from flask_noderpc.companion.settings import CompanionSettings
from flask_noderpc.companion.upstream import Upstream
from flask_noderpc.domain.abci import BlockResults, Event
from flask_noderpc.domain.block import Evidence
from flask_noderpc.errors import (
    ConfigurationError,
    InvalidEvidence,
    NotReady,
    UpstreamUnavailable,
)
from flask_noderpc.extension import mounts
from flask_noderpc.protocol.comet.hashes import evidence_hash_of
from flask_noderpc.testing import SampleChain, make_chain
from flask_noderpc.testing.node import Node, app_for, run_node, serve
from tests.helpers.growing import grow
from tests.helpers.until import PATIENCE, until
from tests.helpers.websocket import WebSocketClient

from .conftest import HEIGHTS, Companion, Serve, node_of
from .raw_node import raw_node, results
from .test_gaps import Broken
from .test_import import NODES, get, paths
from .test_lies import Liar


def reaches(backend: CompanionBackend, height: int, base: int = 1) -> None:
    """Wait until a companion has the blocks from ``base`` to ``height``."""
    until(
        lambda: backend.reads.latest_height() >= height and backend.reads.base_height() == base,
        f"blocks {base} to {height}",
    )


def reason(backend: CompanionBackend) -> str:
    """Return why a companion is not ready."""
    try:
        backend.check_ready()
    except NotReady as error:
        return str(error)
    return ""


def grown(node: Node, count: int) -> Node:
    """Add blocks with one transaction each."""
    for _ in range(count):
        height = node.chain.reads.latest_height()
        node.chain.mempool.submit(b"key%d=value" % height)
        node.produce()
    return node


def test_validators_are_asked_for_again_only_where_they_change(companion: Companion) -> None:
    with run_node(dialect="comet-0.38") as node:
        counted = Broken(grown(node, 5).url, "none", "none")
        with raw_node(counted.respond) as url:
            followed = companion(url, head_delay=1)
            followed.follow()
            reaches(followed, 4)
            counted.methods.clear()
            for head in range(6, 16):
                grown(node, 1)
                reaches(followed, head - 1)
            assert counted.methods.count("block_results") >= 10
            assert "validators" not in counted.methods
            followed.close()


@pytest.mark.parametrize("dialect", NODES)
def test_a_growing_chain_is_followed_and_served(dialect: str, companion: Companion) -> None:
    """Responses are equal byte for byte, below and above the height at which the companion
    began."""
    with run_node(dialect=dialect) as node:
        followed = companion(grown(node, 25).url)
        followed.follow()
        reaches(followed, 24)
        grown(node, 10)
        reaches(followed, 35)

        with serve(app_for(followed, dialect=dialect)) as own:
            for path in paths(followed):
                assert get(own + path) == get(node.url + path), path
        assert followed.store.verify() == 35
        followed.check_ready()


def test_a_node_that_shows_a_block_s_app_hash_in_the_next_one_is_not_failing(
    companion: Companion, caplog: pytest.LogCaptureFixture
) -> None:
    """Such a node reports no height in abci_info."""
    with run_node() as node:
        followed = companion(grown(node, 5).url)
        followed.follow()
        for height in (4, 5, 8, 9):
            grown(node, height + 1 - node.chain.reads.latest_height())
            reaches(followed, height)
        assert reason(followed) == ""
    assert "does not have the app hash" not in caplog.text
    assert "responds again" not in caplog.text


def test_blocks_that_are_followed_are_logged_with_their_lag(
    companion: Companion, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "flask_noderpc.blocks")
    with run_node(dialect="comet-0.38") as node:
        followed = companion(grown(node, 5).url)
        followed.follow()
        reaches(followed, 4)
        for height in (6, 7):
            grown(node, 1)
            reaches(followed, height)

    lines = [line for line in caplog.records if line.name == "flask_noderpc.blocks"]
    shown: Any = lines[-1]
    assert (shown.event, shown.height, shown.txs) == ("block", 7, 1)
    assert shown.lag_seconds >= 0
    assert re.fullmatch(r"block 7: 1 tx, [\d,.]+ s behind", shown.getMessage())


def test_what_only_the_node_knows_is_forwarded(companion: Companion) -> None:
    """Queries, checks, the mempool and broadcasts are forwarded."""
    with run_node(dialect="comet-0.38") as node:
        followed = companion(grown(node, 5).url)
        followed.follow()
        reaches(followed, 4)
        with serve(app_for(followed, dialect="comet-0.38")) as own:
            node.chain.mempool.submit(b"waits=1")
            for path in (
                '/abci_query?data="key2"&prove=true',
                '/abci_query?data="key2"&height=9999',
                "/abci_info",
                '/check_tx?tx="other=1"',
                '/check_tx?tx="none"',
                "/unconfirmed_txs?limit=1",
                "/num_unconfirmed_txs",
                "/net_info",
                "/consensus_state",
                "/dump_consensus_state",
                # The node's mempool refuses this transaction.
                '/broadcast_tx_sync?tx="waits=1"',
            ):
                assert get(own + path) == get(node.url + path), path
            status, theirs = (json.loads(get(url + "/status")) for url in (own, node.url))
            assert status["result"]["node_info"] == theirs["result"]["node_info"]
            assert status["result"]["validator_info"] == theirs["result"]["validator_info"]
            _sent_and_committed(own, node)


class Pool(EvidencePool):
    """An evidence pool that records the evidence that it gets."""

    def __init__(self) -> None:
        self.given: list[Evidence] = []

    def submit(self, piece: Evidence) -> bytes:
        if piece in self.given:
            raise InvalidEvidence("seen before")
        self.given.append(piece)
        return evidence_hash_of(piece)


@pytest.mark.parametrize("dialect", ["comet-0.34", "comet-1.0"])
def test_evidence_is_forwarded_in_the_dialect_of_the_node(
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    monkeypatch: pytest.MonkeyPatch,
    dialect: str,
) -> None:
    """The node gets the same evidence, and the client gets the node's error."""
    pool = Pool()
    monkeypatch.setattr(ChainBackend, "evidence", pool)
    followed = companion(serve_node(node_of(chain), dialect))
    followed.follow()
    reaches(followed, HEIGHTS - 1)
    pieces = [piece for block in chain.blocks for piece in block.block.evidence]

    hashes = [followed.evidence.submit(piece) for piece in pieces]

    assert pool.given == pieces
    assert hashes == [evidence_hash_of(piece) for piece in pieces]
    with pytest.raises(InvalidEvidence, match=r"^seen before"):
        followed.evidence.submit(pieces[0])


def _sent_and_committed(own: str, node: Node) -> None:
    answers = []
    sent = f'{own}/broadcast_tx_commit?tx="{quote("sent=1")}"'
    waiting = threading.Thread(target=lambda: answers.append(json.loads(get(sent))))
    waiting.start()
    until(lambda: node.chain.mempool.pending_count().total == 2, "the transaction waits")
    height = node.produce()
    waiting.join()
    found = answers[0]["result"]
    assert (found["height"], found["check_tx"]["code"]) == (str(height), 0)
    assert found["tx_result"]["events"]


def test_subscribers_are_told_by_the_companion(companion: Companion) -> None:
    """The companion sends these events exactly like the node."""
    with run_node(dialect="comet-0.38") as node:
        followed = companion(grown(node, 3).url)
        followed.follow()
        reaches(followed, 3)
        with serve(app_for(followed, dialect="comet-0.38")) as own:
            clients = [WebSocketClient(url) for url in (own, node.url)]
            try:
                for client in clients:
                    client.call("subscribe", {"query": "tm.event='NewBlock'"})
                    assert "result" in json.loads(client.read() or "")
                grown(node, 1)
                told = [json.loads(client.read() or "") for client in clients]
            finally:
                for client in clients:
                    client.close()
        assert told[0] == told[1]


def test_no_upstream_answers(companion: Companion, caplog: pytest.LogCaptureFixture) -> None:
    """Stored blocks are served; /readyz and forwarded calls say why the rest is not."""
    with run_node(dialect="comet-0.38") as node:
        followed = companion(grown(node, 5).url)
        followed.follow()
        reaches(followed, 5)
    again = companion(node.url, upstream_timeout=0.5)
    with serve(app_for(again, dialect="comet-0.38")) as own:
        assert json.loads(get(own + "/block?height=3"))["result"]["block_id"]["hash"]
        answer = json.loads(get(own + '/abci_query?data="a"'))
        assert "can't be reached" in answer["error"]["data"]
        assert json.loads(get(own + "/status"))["result"]["sync_info"]["latest_block_height"]
        until(lambda: b"can't be reached" in get(own + "/readyz"), "the reason")


def test_results_that_the_next_header_refutes_are_replaced(
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing proves the results of the newest block, so the node's are stored unchanged."""
    caplog.set_level(logging.ERROR)
    inner = node_of(chain, 30)
    node = Liar(inner)
    lying = [31]

    def of_results(results: BlockResults) -> BlockResults:
        if results.height in lying:
            wrong = tuple(replace(each, gas_used=7777) for each in results.tx_results)
            return replace(results, tx_results=wrong)
        return results

    node.of_results = of_results
    followed = companion(serve_node(node))
    followed.follow()
    reaches(followed, 30)
    grow(inner, chain.blocks[30])
    reaches(followed, 31)
    assert followed.reads.results(31).tx_results[0].gas_used == 7777
    version = followed.reads.version()

    lying.clear()
    grow(inner, chain.blocks[31])
    reaches(followed, 32)

    assert followed.reads.results(31) == chain.blocks[30].results
    assert "refutes the stored results of block 31" in caplog.text
    assert followed.reads.version() != version
    assert followed.store.verify() == 32


def test_a_liar_alone_stops_the_companion(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """/readyz names the node, and stored blocks are served."""
    inner = node_of(chain, 30)
    node = Liar(inner)
    followed = companion(serve_node(node))
    followed.follow()
    reaches(followed, 30)
    node.of_block = lambda block: replace(block, header=replace(block.header, time=1))
    grow(inner, chain.blocks[30])

    until(lambda: "no upstream node can be used" in reason(followed), "the reason")
    assert followed.reads.latest_height() == 30


def test_one_process_follows_and_another_takes_over(
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second process follows as soon as the first has ended."""
    monkeypatch.setattr(lease, "_POLL_S", 0.05)
    inner = node_of(chain, 20)
    url = serve_node(inner)
    first, second = companion(url), companion(url)
    first.follow()
    reaches(first, 20)
    second.follow()
    grow(inner, *chain.blocks[20:40])
    reaches(second, 40)
    first.close()
    grow(inner, *chain.blocks[40:])
    reaches(second, HEIGHTS)


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])


def test_a_node_that_comes_back_as_another_version(
    chain: SampleChain, companion: Companion, caplog: pytest.LogCaptureFixture
) -> None:
    """The companion goes on following it, and stores its dialect for the next start."""
    inner = node_of(chain, 20)
    with serve(app_for(inner, dialect="comet-0.38")) as url:
        followed = companion(url)
        followed.follow()
        reaches(followed, 20)
        until(lambda: "comet-0.38" in str(followed.store.identity()), "the dialect")
    grow(inner, *chain.blocks[20:40])
    with serve(app_for(inner, dialect="comet-1.0"), _port(url)):
        reaches(followed, 40)
        until(lambda: "comet-1.0" in str(followed.store.identity()), "the new dialect")
        for height in range(1, 41):
            assert followed.reads.results(height) == chain.blocks[height - 1].results
    assert "restart an app to serve it" in caplog.text


def test_a_node_that_was_reset(chain: SampleChain, companion: Companion) -> None:
    """The node's new chain is not followed, and gets no transactions."""
    fork = node_of(make_chain(HEIGHTS, txs_per_block=1), 10)
    with serve(app_for(node_of(chain, 20), dialect="comet-0.38")) as url:
        followed = companion(url)
        followed.follow()
        reaches(followed, 20)
        forwarding = companion(url)
        assert forwarding.network.net_info()
    with pytest.raises(UpstreamUnavailable):
        forwarding.mempool.submit(b"a=1")
    with serve(app_for(fork, dialect="comet-0.38"), _port(url)):
        until(lambda: "on a fork" in reason(followed), "the reason")
        with pytest.raises(NoUpstream, match="on a fork"):
            forwarding.mempool.submit(b"a=1")


def test_nothing_is_forwarded_to_another_chain(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """A process that only serves does not forward either, even if the nodes are listed in
    another order."""
    url, other = serve_node(node_of(chain)), Liar(node_of(chain))
    other.chain = "another-chain"
    followed = companion(url)
    followed.follow()
    reaches(followed, HEIGHTS)
    forwarding = companion(serve_node(other), url)
    for _ in range(4):
        assert forwarding.network.node_info().network == "sample-chain"
        forwarding.network.net_info()
    with pytest.raises(NoUpstream, match="another-chain"):
        companion(serve_node(other)).network.net_info()


def test_a_companion_ends_while_a_node_hangs(chain: SampleChain, companion: Companion) -> None:
    """Closing does not wait for the requests to the node."""
    asked, released = threading.Event(), threading.Event()

    def hang(peer: socket.socket, body: bytes) -> None:
        asked.set()
        released.wait()

    with raw_node(hang) as url:
        # The timeout is longer than the test.
        followed = companion(url, upstream_timeout=10**6)
        followed.follow()
        assert asked.wait(PATIENCE)
        followed.close()
        released.set()


def test_the_head_may_stay_behind(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """The head is a block behind, whose results are then proven; the backfill may end above the
    first block."""
    inner = node_of(chain, 40)
    followed = companion(serve_node(inner), head_delay=1, backfill_from=11)
    followed.follow()
    reaches(followed, 39, 11)
    grow(inner, *chain.blocks[40:45])
    reaches(followed, 44, 11)
    assert followed.reads.latest_height() == 44


def test_a_delayed_head_has_proven_results(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """A node whose results are refuted is refused before its results are served."""
    lying, honest = Liar(node_of(chain, 40)), node_of(chain, 40)
    followed = companion(serve_node(lying), serve_node(honest), head_delay=1)
    followed.follow()
    reaches(followed, 39)
    shown: list[bool] = []
    lying.of_results = lambda results: replace(results, begin_block_events=(), app_hash=b"x")
    for block in chain.blocks[40:60]:
        for node in (lying.inner, honest):
            grow(node, block)
        height = block.block.header.height - 1
        until(lambda height=height: followed.reads.latest_height() >= height, "the block")  # type: ignore[misc]
        shown.append(followed.reads.results(height) == chain.blocks[height - 1].results)
    assert all(shown)


def test_answers_that_may_change_are_not_for_caches(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """Results of the head may change until the next header proves them."""
    inner = node_of(chain, 20)
    followed = companion(serve_node(inner))
    followed.follow()
    reaches(followed, 20)
    client = app_for(followed, dialect="comet-0.38").test_client()

    def is_cacheable(height: int) -> bool:
        return "Cache-Control" in client.get(f"/block_results?height={height}").headers

    assert is_cacheable(19)
    assert not is_cacheable(20)
    grow(inner, chain.blocks[20])
    reaches(followed, 21)
    assert is_cacheable(20)
    assert not is_cacheable(21)


def test_a_large_genesis_is_asked_of_the_nodes(
    companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The companion asks chunk by chunk; ``genesis`` itself is refused, as by a node."""
    monkeypatch.setattr(info, "GENESIS_CHUNK_BYTES", 200)
    with run_node(dialect="comet-0.38") as node:
        followed = companion(grown(node, 5).url)
        followed.follow()
        reaches(followed, 5)
        with serve(app_for(followed, dialect="comet-0.38")) as own:
            paths = [f"/genesis_chunked?chunk={number}" for number in range(4)]
            for path in ("/genesis", *paths):
                assert get(own + path) == get(node.url + path), path
            assert b'"total":"' in get(own + paths[0])
            assert b"error" in get(own + "/genesis_chunked?chunk=99")


def test_events_are_compared_with_those_of_another_node(
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing proves events, so a difference is only logged, and no node is refused."""
    lying, honest = Liar(node_of(chain, 40)), node_of(chain, 40)
    lying.of_results = lambda results: replace(results, end_block_events=(Event("no"),))
    urls = serve_node(lying), serve_node(honest)
    followed = companion(*urls)
    followed.follow()
    reaches(followed, 40)
    for block in chain.blocks[40:44]:
        for node in (lying.inner, honest):
            grow(node, block)
    until(lambda: "reports differ, and nothing proves either" in caplog.text, "the difference")
    assert any(url in caplog.text for url in urls)
    assert set(followed.network.upstreams().values()) == {"up"}


def test_equal_reads_in_flight_are_one() -> None:
    """The requests come from clients that know the same height, and each client gets the
    response."""
    members = dict.fromkeys(("log", "info", "key", "codespace"), "")
    answer = {
        "response": members
        | {"code": 0, "index": "0", "height": "5", "value": "dmFsdWU=", "proofOps": None}
    }
    asked, heights, released = list[bytes](), list[int](), threading.Event()

    def own_height() -> int:
        heights.append(5)
        return 5

    def respond(peer: socket.socket, body: bytes) -> None:
        asked.append(body)
        released.wait()
        results(answer)(peer, body)

    with raw_node(respond) as url, ThreadPoolExecutor(20) as clients:
        upstreams = Upstreams([Reader(Upstream(url, dialect="comet-0.38"))], PATIENCE)
        application = ForwardedApplication(upstreams, own_height)
        found = [clients.submit(application.query, "", b"key", 0, False) for _ in range(20)]
        until(lambda: len(heights) == 20 and bool(asked), "all clients")
        released.set()
        assert {each.result(PATIENCE).value for each in found} == {b"value"}
    assert len(asked) < 20


def test_metrics_of_the_nodes(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """The metrics show the height of each node, and which nodes are in use."""
    pytest.importorskip("prometheus_client")
    other = Liar(node_of(chain))
    other.chain = "another-chain"
    urls = serve_node(node_of(chain)), serve_node(other), "http://127.0.0.1:1"
    followed = companion(urls[0])
    followed.follow()
    reaches(followed, HEIGHTS)
    client = app_for(companion(*urls), dialect="comet-0.38", metrics=True).test_client()
    for _ in urls:
        client.get("/net_info")
    lines = client.get("/metrics").text.splitlines()
    assert f'noderpc_upstream_height{{chain="sample-chain"}} {HEIGHTS}.0' in lines
    for url, state in zip(urls, ("up", "refused", "failing"), strict=True):
        assert f'noderpc_upstreams{{state="{state}",upstream="{url}"}} 1.0' in lines


def test_an_app_serves_what_another_process_follows(
    chain: SampleChain, serve_node: Serve, companion: Companion, tmp_path: Path
) -> None:
    """The app serves the nodes' own dialect, even if no node responds, and never follows nodes
    itself."""
    url = serve_node(node_of(chain), "comet-1.0")
    followed = companion(url)
    followed.follow()
    reaches(followed, HEIGHTS)

    app = Flask("host", instance_path=str(tmp_path))
    NodeRPC(
        app,
        settings=[CompanionSettings(upstream=(url,))],
        database=str(tmp_path / "companion.db"),
    )
    with app.test_client() as client:
        assert client.get("/v1/block?height=9").json["result"]["block_id"]["hash"]  # type: ignore[index]
    assert mounts(app)["noderpc"].settings.dialect == "comet-1.0"
    mounts(app)["noderpc"].backend.close()

    offline = Flask("offline", instance_path=str(tmp_path))
    offline.config["NODERPC_DATABASE"] = str(tmp_path / "companion.db")
    offline.config["NODERPC_UPSTREAM"] = "http://127.0.0.1:1"
    NodeRPC(offline)
    assert mounts(offline)["noderpc"].settings.dialect == "comet-1.0"
    mounts(offline)["noderpc"].backend.close()


def test_a_store_of_an_own_chain_is_not_followed_into(
    chain: SampleChain, serve_node: Serve, companion: Companion, tmp_path: Path
) -> None:
    """The reason says what the store holds."""
    own = EmbeddedChain(tmp_path / "companion.db", application=KVStore, produce=False)
    own.start()
    own.produce()
    own.close()
    with pytest.raises(
        ConfigurationError, match="the embedded chain of the application 'kvstore'"
    ):
        companion(serve_node(node_of(chain, 5)))


@pytest.mark.parametrize("settings", [{"dev": True}, {"retain_blocks": 9}])
def test_settings_of_an_embedded_chain(settings: dict[str, Any], companion: Companion) -> None:
    """The settings would have no effect."""
    with pytest.raises(ConfigurationError, match=next(iter(settings)).upper()):
        companion("http://127.0.0.1:1", **settings)


def test_posts_with_parameters_by_position(companion: Companion) -> None:
    """This includes forwarded calls."""
    with run_node(dialect="comet-0.38") as node:
        followed = companion(grown(node, 5).url)
        followed.follow()
        reaches(followed, 5)
        with serve(app_for(followed, dialect="comet-0.38")) as own:
            params = '["","6b657932","0",false]'
            body = (
                f'{{"jsonrpc":"2.0","id":1,"method":"abci_query","params":{params}}}'.encode()
            )
            answers = []
            for url in (own, node.url):
                request = Request(url, body, {"Content-Type": "application/json"})
                with urlopen(request, timeout=PATIENCE) as response:
                    answers.append(response.read())
        assert answers[0] == answers[1]


def test_calls_before_the_first_block(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """The error says that there is no block; a chain of one block can't be followed yet."""
    client = app_for(companion(serve_node(node_of(chain, 1)))).test_client()
    for path in ("/status", "/block"):
        assert "no block" in client.get(path).text
