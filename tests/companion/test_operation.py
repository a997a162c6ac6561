"""Tests of what operators see of a companion: readiness, metrics, caches, and requests to
nodes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from flask import Flask

from flask_noderpc import NodeRPC, SQLiteBackend
from flask_noderpc.backends.sql.store import ChainStore
from flask_noderpc.backends.sqlite.handles import Writer
from flask_noderpc.cli import main
from flask_noderpc.cometbft import info
from flask_noderpc.companion import genesis, lease, progress
from flask_noderpc.companion.cached_status import CachedStatus
from flask_noderpc.companion.comparison import Comparison, unproven_values
from flask_noderpc.companion.pool import NoUpstream, Upstreams
from flask_noderpc.companion.reads import CompanionReads
from flask_noderpc.companion.settings import CompanionSettings
from flask_noderpc.domain.abci import BlockResults, Event, EventAttribute
from flask_noderpc.errors import FULL, HeightNotAvailable, StoreError, UpstreamUnavailable
from flask_noderpc.extension import mounts
from flask_noderpc.signals import results_refuted
from flask_noderpc.testing import SampleChain, make_chain
from flask_noderpc.testing.node import app_for, run_node, serve
from flask_noderpc.web import threads
from tests.helpers.growing import grow
from tests.helpers.until import PATIENCE, until
from tests.helpers.websocket import WebSocketClient

from .conftest import HEIGHTS, Companion, Serve, node_of
from .raw_node import raw_node
from .test_follow import grown, reaches, reason
from .test_import import get
from .test_lies import LIES, Liar


def _lies_about(node: Liar, height: int) -> list[int]:
    """Let a node give other results for the returned heights."""
    lying = [height]

    def of_results(results: BlockResults) -> BlockResults:
        if results.height not in lying:
            return results
        wrong = tuple(replace(each, gas_used=7777) for each in results.tx_results)
        return replace(results, tx_results=wrong)

    node.of_results = of_results
    return lying


def test_results_that_are_replaced_while_they_are_read(
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The response must not be cached: the block that refutes the results arrives between read
    and response."""
    inner = node_of(chain, 30)
    node = Liar(inner)
    lying = _lies_about(node, 31)
    followed = companion(serve_node(node))
    followed.follow()
    reaches(followed, 30)
    grow(inner, chain.blocks[30])
    reaches(followed, 31)
    read = CompanionReads.results

    def results(self: CompanionReads, height: int) -> BlockResults:
        found = read(self, height)
        if lying:
            lying.clear()
            grow(inner, chain.blocks[31])
            reaches(followed, 32)
        return found

    monkeypatch.setattr(CompanionReads, "results", results)
    client = app_for(followed, dialect="comet-0.38").test_client()
    first, second = (client.get("/block_results?height=31") for _ in range(2))
    assert ("7777" in first.text, "Cache-Control" in first.headers) == (True, False)
    assert ("7777" in second.text, "Cache-Control" in second.headers) == (False, True)


def test_a_node_below_the_lowest_block(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """Such a node can't be compared: nothing is forwarded to it, and /readyz says so, until it
    can be."""
    followed = companion(serve_node(node_of(chain, 50)), backfill_from=30)
    followed.follow()
    reaches(followed, 50, 30)
    followed.close()

    fork = node_of(make_chain(HEIGHTS, txs_per_block=1), 10)
    reset = companion(serve_node(fork))
    reset.follow()
    until(lambda: "below the store's lowest block 30" in reason(reset), "the reason")
    with pytest.raises(UpstreamUnavailable, match="wait until the node has caught up"):
        reset.mempool.submit(b"a=1")
    with pytest.raises(HeightNotAvailable):
        reset.reads.block(5)
    reset.close()

    # The lowest block contains the hash of the one below it.
    other = node_of(make_chain(HEIGHTS, txs_per_block=1), 29)
    assert companion(serve_node(node_of(chain, 29))).network.net_info()
    with pytest.raises(NoUpstream, match="the node is on a fork, or was reset"):
        companion(serve_node(other)).network.net_info()


def test_a_node_that_the_follower_refused(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """Other processes stop asking it, too, until the follower starts again."""
    lying = Liar(node_of(chain))
    LIES["a transaction is changed"](lying)
    urls = serve_node(lying), serve_node(node_of(chain))
    serving = companion(*urls)
    followed = companion(*urls)
    followed.follow()
    reaches(followed, HEIGHTS)
    until(lambda: serving.network.upstreams()[urls[0]] == "refused", "the refusal")
    asked = {serving._forward.attempt(lambda reader: reader.name) for _ in range(4)}
    assert asked == {urls[1]}
    # A node that answered another request is only refused for a pause, which has passed.
    assert followed._follower is not None
    followed._follower._upstreams.refused.clear()
    until(lambda: serving.network.upstreams()[urls[0]] != "refused", "another look")
    followed._follower._upstreams.refuse(urls[0], "again")
    until(lambda: serving.network.upstreams()[urls[0]] == "refused", "the second refusal")
    followed.close()
    # A new follower has refused nothing yet, as after an upgrade of the node.
    companion(urls[1]).follow()
    until(lambda: serving.network.upstreams()[urls[0]] != "refused", "the new follower")


def test_forwarded_calls_leave_threads_for_stored_reads(
    chain: SampleChain, serve_node: Serve, companion: Companion, tmp_path: Path
) -> None:
    """One of the server's four threads stays free; calls that would take it get an error with
    the reason."""
    followed = companion(serve_node(node_of(chain)))
    followed.follow()
    reaches(followed, HEIGHTS)
    asked, released = list[bytes](), threading.Event()

    def respond(peer: socket.socket, body: bytes) -> None:
        asked.append(body)
        released.wait()

    with raw_node(respond) as url, ThreadPoolExecutor(8) as clients:
        app = Flask("host", instance_path=str(tmp_path))
        NodeRPC(
            app,
            settings=[CompanionSettings(upstream=(url,), upstream_timeout=PATIENCE)],
            database=str(tmp_path / "companion.db"),
            server_threads=4,
        )
        paths = ["/abci_query?data=0x01"] * 2 + ["/net_info"]
        waiting = [clients.submit(app.test_client().get, path) for path in paths]
        until(lambda: len(threads._occupied) == 3, "the forwarded calls")
        refused = app.test_client().get("/check_tx?tx=0x01")
        stored = app.test_client().get("/block?height=3")
        released.set()
        assert all("error" in each.result(PATIENCE).text for each in waiting)
    assert "forwarded calls occupy 3 of the server's 4 threads" in refused.text
    assert '"result"' in stored.text
    mounts(app)["noderpc"].backend.close()


def test_subscribers_to_results_that_are_refuted(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """The subscription ends with the height and the reason, and the signal and the metrics
    count it."""
    pytest.importorskip("prometheus_client")
    inner = node_of(chain, 30)
    node = Liar(inner)
    lying = _lies_about(node, 31)
    followed = companion(serve_node(node))
    heights: list[int] = []

    @results_refuted.connect_via(followed)
    def count(sender: object, *, height: int) -> None:
        heights.append(height)

    followed.follow()
    reaches(followed, 30)
    app = app_for(followed, dialect="comet-0.38", metrics=True)
    with serve(app) as own, ExitStack() as stack:
        client = stack.enter_context(closing(WebSocketClient(own)))
        client.call("subscribe", {"query": "tm.event='NewBlock'"})
        client.call("subscribe", {"query": "tm.event='Tx' AND app.key='none'"}, "others")
        assert [client.json()["result"] for _ in range(2)] == [{}, {}]
        grow(inner, chain.blocks[30])
        assert client.json()["result"]["data"]["value"]["block"]["header"]["height"] == "31"
        lying.clear()
        grow(inner, chain.blocks[31])
        ended = client.json()
        assert "the next header refuted the results of block 31" in ended["error"]["data"]
        assert ended["id"] != "others"
        client.call("subscribe", {"query": "tm.event='NewBlock'"}, "again")
        assert client.json() == {"jsonrpc": "2.0", "id": "again", "result": {}}
        # Block 32 may still be sent.
        grow(inner, chain.blocks[32])
        block = client.json()["result"]["data"]["value"]["block"]
        assert block["header"]["height"] in {"32", "33"}
    until(lambda: heights == [31], "the signal")
    lines = app.test_client().get("/metrics").text.splitlines()
    assert 'noderpc_backfill_blocks{chain="sample-chain",of="left"} 0.0' in lines
    assert 'noderpc_backfill_seconds_left{chain="sample-chain"} 0.0' in lines
    assert 'noderpc_refuted_results_total{chain="sample-chain"} 1.0' in lines


@pytest.mark.parametrize("size", [200, info.GENESIS_CHUNK_BYTES])
def test_the_genesis_is_not_in_the_way_of_blocks(
    size: int, companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of the genesis are stored byte for byte after the first blocks. Until then they
    are read from the nodes, and ``noderpc verify`` says that nothing proves them."""
    monkeypatch.setattr(info, "GENESIS_CHUNK_BYTES", size)
    allowed = threading.Event()
    fetch = genesis.fetch_genesis

    def wait(store: ChainStore, upstreams: Upstreams) -> None:
        allowed.wait(PATIENCE)
        fetch(store, upstreams)

    monkeypatch.setattr(genesis, "fetch_genesis", wait)
    paths = ["/genesis", *(f"/genesis_chunked?chunk={number}" for number in range(9))]
    with run_node(dialect="comet-0.38") as node:
        followed = companion(grown(node, 5).url)
        followed.follow()
        reaches(followed, 5)
        theirs = [get(node.url + path) for path in paths]
        assert theirs[1] != theirs[2]
        with serve(app_for(followed, dialect="comet-0.38")) as own:
            assert followed.store.reads.genesis_source() is None
            assert [get(own + path) for path in paths] == theirs
            allowed.set()
            until(lambda: followed.store.reads.genesis_source() is not None, "the genesis")
            assert [get(own + path) for path in paths] == theirs
    with serve(app_for(followed, dialect="comet-0.38")) as own:
        assert [get(own + path) for path in paths] == theirs
    followed.close()
    verified = CliRunner().invoke(main, ["verify", followed.store.location.path])
    assert f"not verified: the genesis document, from {node.url}" in verified.output


def test_a_genesis_that_is_too_large_is_forwarded(
    companion: Companion, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The genesis is not stored, as the store would become too large."""
    monkeypatch.setattr(info, "GENESIS_CHUNK_BYTES", 200)
    monkeypatch.setattr(genesis, "MAX_CHUNKS", 2)
    with run_node(dialect="comet-0.38") as node:
        followed = companion(grown(node, 5).url)
        followed.follow()
        until(lambda: "more than 2 chunks: it is not stored" in caplog.text, "the warning")
        with serve(app_for(followed, dialect="comet-0.38")) as own:
            path = "/genesis_chunked?chunk=1"
            assert get(own + path) == get(node.url + path)
        assert followed.store.reads.genesis_source() is None


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every write fail within the context."""

    def refuse(self: Writer, work: object) -> None:
        raise StoreError(f"{FULL}: make space")

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "run", refuse)
        patch.setattr(SQLiteBackend, "has_free_space", lambda self: False)
        yield


@pytest.mark.sqlite
def test_a_full_disk(
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """/readyz names the cause, stored blocks are served, and following continues when there is
    space."""
    monkeypatch.setattr(lease, "_SECONDS", 0.5)
    inner = node_of(chain, 30)
    url = serve_node(inner)
    followed, serving = companion(url), companion(url)
    followed.follow()
    reaches(followed, 30)
    with full_disk(monkeypatch):
        grow(inner, *chain.blocks[30:40])
        until(lambda: "nothing was written" in caplog.text, "the error")
        for each in (followed, serving):
            assert "nothing was written" in reason(each)
            assert each.reads.block(30)[1] == chain.blocks[29].block
    reaches(followed, 40)
    until(lambda: not reason(serving), "readiness")
    assert followed.store.verify() == 40


def _changed(results: BlockResults, **changes: str) -> BlockResults:
    txs = tuple(replace(each, **changes) for each in results.tx_results)  # type: ignore[arg-type]
    return replace(results, tx_results=txs)


@pytest.mark.parametrize("member", ["log", "info", "codespace"])
def test_what_no_hash_covers_is_compared(
    member: str,
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Samples of the backfill are compared, too; if only the log differs, it is a warning."""
    monkeypatch.setattr(progress, "_SAMPLE_EACH", 10)
    lying = Liar(node_of(chain))
    lying.of_results = lambda results: (
        _changed(results, **{member: "other"}) if results.height < 60 else results
    )
    followed = companion(serve_node(lying), serve_node(node_of(chain)))
    followed.follow()
    text = f"the stored {member}s and those that upstream http"
    until(lambda: text in caplog.text, "the difference")
    found = next(each for each in caplog.records if text in each.getMessage())
    assert found.levelname == ("ERROR" if member == "codespace" else "WARNING")


def test_nodes_of_several_versions_are_compared_without_an_alarm(
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The nodes report the same events, each in the form of its version."""
    compared: list[int] = []
    compare = Comparison._compare

    def count(self: Comparison, height: int) -> None:
        compare(self, height)
        compared.append(height)

    monkeypatch.setattr(Comparison, "_compare", count)
    nodes = node_of(chain, 40), node_of(chain, 40)
    urls = serve_node(nodes[0], "comet-0.34"), serve_node(nodes[1], "comet-1.0")
    followed = companion(*urls)
    followed.follow()
    reaches(followed, 40)
    for block in chain.blocks[40:44]:
        for node in nodes:
            grow(node, block)
    until(lambda: bool(compared), "a comparison")
    assert "reports differ" not in caplog.text


def test_attributes_that_versions_add() -> None:
    """A node that was upgraded to 0.38 adds the mode to the events of old blocks."""
    added = EventAttribute(b"mode", b"BeginBlock", index=False)
    plain = Event("mint", (EventAttribute(b"amount", b"5"),))
    merged = Event("mint", (EventAttribute(b"amount", b"5", index=False), added))
    results = BlockResults(5, begin_block_events=(plain,))
    other = BlockResults(5, end_block_events=(merged,))
    assert unproven_values(results) == unproven_values(other)


def test_a_status_is_read_anew_after_a_pause(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """The companion's status does not show an old status of the node."""
    inner = node_of(chain, 30)
    network = companion(serve_node(inner)).network
    assert network.upstream_height() == 30
    grow(inner, chain.blocks[30])
    # A second has passed, then an hour.
    network._status._read_at -= 3600
    network._status._QUICK_S = PATIENCE
    network._status._patience = PATIENCE
    assert network.upstream_height() == 31


def test_a_status_that_hangs_is_waited_for_once(companion: Companion) -> None:
    """The stored part of the status is served without it."""
    released = threading.Event()

    def hang(peer: socket.socket, body: bytes) -> None:
        released.wait()

    with raw_node(hang) as url:
        status = CachedStatus(companion(url)._forward)
        status._patience = 0.01
        assert status.get() is None
        assert status._patience == 0
        assert status.get() is None
        released.set()
