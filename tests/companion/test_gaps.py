"""Tests of nodes that fail at one height: the store is filled without it, and completed
later."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner

from flask_noderpc import SQLiteBackend
from flask_noderpc.cli import main
from flask_noderpc.companion import chunks, gaps, head_appender, history, throttle
from flask_noderpc.companion.cached_status import CachedStatus
from flask_noderpc.companion.gaps import MAX_GAPS, Gaps, gaps_of
from flask_noderpc.domain.abci import BlockResults
from flask_noderpc.domain.block import Commit, Header
from flask_noderpc.errors import ResultNotFound, UpstreamError
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.growing import grow
from tests.helpers.until import PATIENCE, until
from tests.helpers.websocket import WebSocketClient

from .conftest import HEIGHTS, LIMITS, Companion, Serve, import_all, node_of, upstreams_at
from .raw_node import http, raw_node
from .test_lies import Liar

BAD = 20
HASTE = replace(LIMITS, timeout=0.5)


class Broken:
    """A proxy of a node that fails at one height, in one of several ways."""

    def __init__(
        self, node: str, method: str, how: str, below: int = BAD + 1, above: int = BAD - 1
    ) -> None:
        self._node, self._method, self._how = node, method, how
        self._heights = range(above + 1, below)
        self.is_broken = True
        self.hangs = False
        self.released = threading.Event()
        self.methods: list[str] = []

    def respond(self, peer: socket.socket, body: bytes) -> None:
        """Forward the node's response, or break it."""
        if self.hangs:
            self.released.wait(PATIENCE)
        asked = json.loads(body)
        calls = asked if isinstance(asked, list) else [asked]
        self.methods += [each["method"] for each in calls]
        is_bad = self.is_broken and any(self._is_bad(each) for each in calls)
        if is_bad and self._how == "no answer":
            self.released.wait(PATIENCE)
            return
        request = Request(self._node, body, {"Content-Type": "application/json"})
        with urlopen(request, timeout=PATIENCE) as found:
            text: bytes = found.read()
        if not is_bad:
            peer.sendall(http(text, Content_Type="application/json"))
        elif self._how == "text/plain":
            peer.sendall(http(b"oops: no such file", Content_Type="text/plain"))
        elif self._how == "cut off":
            peer.sendall(http(text + b" " * 1000)[:-1000])
        elif self._how == "502":
            peer.sendall(http(b"<html>", "502 Bad Gateway", Content_Type="text/html"))
        else:
            self._break(peer, calls, json.loads(text))

    def _is_bad(self, call: dict[str, Any]) -> bool:
        height = int(call["params"].get("height", 0))
        return bool(call["method"] == self._method) and height in self._heights

    def _break(self, peer: socket.socket, calls: Any, found: Any) -> None:
        answers = found if isinstance(found, list) else [found]
        bad = [call["id"] for call in calls if self._is_bad(call)]
        for answer in answers:
            if answer["id"] not in bad:
                continue
            if self._how == "not decodable":
                answer["result"] = {"height": [], "block": 7}
            else:
                del answer["result"]
                error = {"code": -32603, "message": "Internal error", "data": self._how}
                answer["error"] = error
        body = json.dumps(found).encode()
        peer.sendall(http(body, Content_Type="application/json"))


@pytest.fixture
def broken(chain: SampleChain, serve_node: Serve) -> Iterator[Any]:
    """Return a function that makes broken nodes, and gives each with its URL."""
    with ExitStack() as stack:

        def make(method: str, how: str, below: int = BAD + 1, above: int | None = None) -> Any:
            lowest = BAD - 1 if below == BAD + 1 else above or 0
            node = Broken(serve_node(node_of(chain)), method, how, below, lowest)
            return node, stack.enter_context(raw_node(node.respond))

        yield make


WAYS = {
    "text/plain": "block_results of height 20: expected JSON, got HTTP status 200 with"
    " text/plain; it begins with b'oops: no such file'",
    "cut off": "block_results of height 20: the connection broke",
    "not decodable": "block_results of height 20: the result can't be decoded: ",
    "proto: wrong wireType": "proto: wrong wireType",
    "could not find results for height #20": "has no results of block 20",
    "502": "HTTP status 502 with text/html",
    "no answer": "no response within 0.5 s",
}


@pytest.mark.parametrize("how", WAYS)
def test_a_block_is_stored_without_results_that_no_node_can_give(
    how: str,
    chain: SampleChain,
    broken: Any,
    store: SQLiteBackend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next import asks for the results again."""
    # After a status of 502, requests pause for longer than the patience of these tests.
    monkeypatch.setattr(throttle, "_FIRST_PAUSE_S", 0.0)
    node, url = broken("block_results", how)
    limits = HASTE if how == "no answer" else LIMITS

    assert import_all(store, upstreams_at(url, limits=limits)) == (1, HEIGHTS - 1)

    (gap,) = gaps_of(store).values()
    assert (gap.height, gap.part) == (BAD, "results")
    assert WAYS[how] in gap.reason
    assert url.removeprefix("http://") in gap.reason
    assert store.reads.block(BAD)[1] == chain.blocks[BAD - 1].block
    with pytest.raises(ResultNotFound):
        store.reads.results(BAD)
    for height in (BAD - 1, BAD + 1):
        assert store.reads.results(height) == chain.blocks[height - 1].results
    store.verify()

    import_all(store, upstreams_at(url, limits=limits))
    assert gaps_of(store)[BAD].failures > 1
    node.is_broken = False
    import_all(store, upstreams_at(url))
    assert not gaps_of(store)
    assert store.reads.results(BAD) == chain.blocks[BAD - 1].results
    assert store.reads.lowest_results() == 1
    store.verify()


@pytest.mark.parametrize("how", ["text/plain", "not decodable", "could not find results"])
def test_another_node_is_asked_for_what_one_can_not_give(
    how: str, chain: SampleChain, broken: Any, serve_node: Serve, store: SQLiteBackend
) -> None:
    _, url = broken("block_results", how)
    upstreams = upstreams_at(url, serve_node(node_of(chain)))

    assert import_all(store, upstreams) == (1, HEIGHTS - 1)

    assert not gaps_of(store)
    assert store.reads.lowest_results() == 1
    assert not upstreams.refused


def test_the_reason_of_a_gap_is_one_short_line(broken: Any, store: SQLiteBackend) -> None:
    """Nodes answer with the stack trace of a panic."""
    _, url = broken("block_results", "goroutine 7 [running]:\n" * 10_000)

    import_all(store, upstreams_at(url))

    reason = gaps_of(store)[BAD].reason
    assert "goroutine 7 [running]: goroutine 7" in reason
    assert "\n" not in reason
    assert len(reason) < 400


@pytest.mark.parametrize("how", ["text/plain", "proto: wrong wireType"])
def test_a_node_that_gives_no_results_at_all(
    how: str, chain: SampleChain, broken: Any, store: SQLiteBackend
) -> None:
    """The blocks are stored, and their results as soon as the node returns them."""
    node, url = broken("block_results", how, below=50)

    assert import_all(store, upstreams_at(url)) == (1, HEIGHTS - 1)

    assert [*gaps_of(store)] == [*range(1, 50)]
    assert store.reads.lowest_results() == 50
    store.verify()

    node.is_broken = False
    for _ in range(3):
        import_all(store, upstreams_at(url))
    assert not gaps_of(store)
    assert store.reads.results(3) == chain.blocks[2].results


def test_results_that_a_node_has_again_below(
    chain: SampleChain, broken: Any, store: SQLiteBackend
) -> None:
    """The node lacks the results of two chunks in the middle of its chain."""
    _, url = broken("block_results", "could not find results", below=60, above=15)

    assert import_all(store, upstreams_at(url)) == (1, HEIGHTS - 1)

    assert store.reads.results(10) == chain.blocks[9].results
    with pytest.raises(ResultNotFound):
        store.reads.results(30)


def test_a_node_that_fails_beside_one_that_discards_results(
    chain: SampleChain, broken: Any, store: SQLiteBackend
) -> None:
    """The failing node may have the results, so their heights are recorded as gaps."""
    node, failing = broken("block_results", "text/plain", below=30)
    _, without = broken("block_results", "could not find results", below=30)

    import_all(store, upstreams_at(failing, without))
    assert [*gaps_of(store)] == [*range(1, 30)]

    node.is_broken = False
    for _ in range(2):
        import_all(store, upstreams_at(failing, without))
    assert not gaps_of(store)
    assert store.reads.results(7) == chain.blocks[6].results


def test_one_broken_node_and_one_that_is_down(broken: Any, store: SQLiteBackend) -> None:
    """The node that is down does not delay what the other one has."""
    _, url = broken("block_results", "text/plain")

    assert import_all(store, upstreams_at(url, "http://127.0.0.1:1")) == (1, HEIGHTS - 1)

    assert [*gaps_of(store)] == [BAD]


@pytest.mark.parametrize("how", ["text/plain", "not decodable", "proto: wrong wireType"])
def test_the_backfill_stops_at_a_block_that_no_node_can_give(
    how: str, chain: SampleChain, broken: Any, store: SQLiteBackend
) -> None:
    node, url = broken("block", how)

    with pytest.raises(UpstreamError, match=re.escape(WAYS[how].split("_results of")[-1])):
        import_all(store, upstreams_at(url))

    assert store.reads.base_height() == BAD + 1
    (gap,) = gaps_of(store).values()
    assert (gap.height, gap.part) == (BAD, "block")
    store.verify()

    node.is_broken = False
    assert import_all(store, upstreams_at(url)) == (1, HEIGHTS - 1)
    assert not gaps_of(store)
    assert store.reads.block(BAD)[1] == chain.blocks[BAD - 1].block


def test_the_backfill_stops_at_validators_that_no_node_can_give(
    broken: Any, store: SQLiteBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks above them are stored, although they were about to be stored together."""
    # The highest block of the second chunk has another set than the first chunk.
    height = HEIGHTS - 1 - chunks.CHUNK

    def has_other_set(header: Header, other: Header) -> bool:
        return (header.height, other.height) == (height, height + 1)

    monkeypatch.setattr(history, "_has_other_set", has_other_set)
    _, url = broken("validators", "proto: wrong wireType", height + 1, height - 1)

    with pytest.raises(UpstreamError, match="wrong wireType"):
        import_all(store, upstreams_at(url))

    assert store.reads.base_height() == height + 1
    assert [*gaps_of(store)] == [height]


def test_the_command_says_what_is_missing(broken: Any, tmp_path: Path) -> None:
    _, url = broken("block_results", "text/plain")
    database = tmp_path / "copy.db"
    given = ["import", url, "--database", str(database)]

    done = CliRunner().invoke(main, [*given, "--trust-period", "9999d"])

    assert done.exit_code == 0, done.output
    assert "the results of height 20 could not be fetched: upstream" in done.output
    assert WAYS["text/plain"] in done.output


def test_a_follower_fills_a_gap_later(
    broken: Any, companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaps, "_FIRST_PAUSE_S", 0)
    node, url = broken("block_results", "not decodable")
    backend = companion(url)
    backend.follow()
    until(
        lambda: backend.store.has_chain() and backend.reads.base_height() == 1, "the backfill"
    )
    assert [*gaps_of(backend.store)] == [BAD]
    client = app_for(backend, dialect="comet-0.38", metrics=True).test_client()
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert f"no results of {BAD} (1 in all): upstream {url}: block_results of" in ready.text
    missing = 'noderpc_missing_heights{chain="sample-chain",of="results"}'
    assert f"{missing} 1.0" in client.get("/metrics").text

    node.is_broken = False

    until(lambda: not gaps_of(backend.store), "the results")
    assert backend.store.reads.lowest_results() == 1
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert "no results" not in ready.text
    assert f"{missing} 0.0" in client.get("/metrics").text


def test_a_backfill_that_stands_still_is_told(broken: Any, companion: Companion) -> None:
    _, url = broken("block", "text/plain")
    backend = companion(url)
    backend.follow()
    client = app_for(backend, dialect="comet-0.38").test_client()

    said = f"block {BAD} could not be fetched: upstream {url}: block of height {BAD}: expected"
    until(lambda: said in client.get("/readyz").text, said)
    assert client.get("/readyz").status_code == 200


def test_a_head_that_stands_still_is_not_ready(
    broken: Any, chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """The nodes have more blocks, and the newest stored block is old."""
    node = node_of(chain, BAD - 2)
    proxy = Broken(serve_node(node), "block_results", "not decodable")
    with raw_node(proxy.respond) as url:
        backend = companion(url)
        backend.follow()
        client = app_for(backend, dialect="comet-0.38").test_client()
        until(lambda: client.get("/readyz").text.startswith("ready"), "ready")

        for block in chain.blocks[BAD - 2 :]:
            grow(node, block)

        until(lambda: client.get("/readyz").status_code == 503, "not ready")
        until(lambda: "the store is behind" in client.get("/readyz").text, "the reason")
        proxy.is_broken = False
        until(lambda: client.get("/readyz").status_code == 200, "ready again")
        assert backend.reads.latest_height() == HEIGHTS


def test_a_node_that_is_behind_its_peers_is_not_ready(
    chain: SampleChain, serve_node: Serve, companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = node_of(chain)
    backend = companion(serve_node(node))
    backend.follow()
    client = app_for(backend, dialect="comet-0.38").test_client()
    until(lambda: backend.store.reads.latest_height() == HEIGHTS, "the newest block")
    monkeypatch.setattr(node.network, "catching_up", lambda: True)

    said = f"the nodes are behind their peers: the newest block, {HEIGHTS}, is "
    until(lambda: said in client.get("/readyz").text, said)
    assert client.get("/readyz").status_code == 503


def test_new_blocks_are_stored_without_results_that_no_node_gives(
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Subscribers get an error for the missing events; validators and parameters are proven."""
    monkeypatch.setattr(head_appender, "_MAX_REFUSED_S", 0.0)
    monkeypatch.setattr(gaps, "_FIRST_PAUSE_S", 0)
    node = node_of(chain, BAD - 2)
    proxy = Broken(serve_node(node), "block_results", "text/plain", BAD + 3, BAD - 1)
    with raw_node(proxy.respond) as url:
        backend = companion(url)
        backend.follow()
        until(lambda: backend.reads.latest_height() == BAD - 2, "the first blocks")
        with (
            serve(app_for(backend, dialect="comet-0.38")) as served,
            closing(WebSocketClient(served, timeout=PATIENCE)) as client,
        ):
            client.call("subscribe", {"query": "tm.event='NewBlock'"}, "blocks")
            assert client.json()["result"] == {}
            for block in chain.blocks[BAD - 2 :]:
                grow(node, block)

            while "error" not in (told := client.json()):
                pass
            assert f"the results of block {BAD} are missing" in told["error"]["data"]
        until(lambda: backend.reads.latest_height() == HEIGHTS, "the last block")
        assert {*gaps_of(backend.store)} == {BAD, BAD + 1, BAD + 2}
        with pytest.raises(ResultNotFound):
            backend.store.reads.results(BAD)
        for height in range(1, HEIGHTS + 1):
            stored, shown = (
                backend.store.reads.validators(height),
                node.reads.validators(height),
            )
            assert stored.validators == shown.validators
            assert backend.store.reads.consensus_params(height) == node.reads.consensus_params(
                height
            )
        backend.store.verify()

        proxy.is_broken = False
        until(lambda: not gaps_of(backend.store), "the results")
        assert backend.store.reads.results(BAD + 1) == chain.blocks[BAD].results
        backend.store.verify()


@pytest.mark.parametrize(
    "how", ["text/plain", "could not find results", "not decodable", "502", "no answer"]
)
def test_an_import_upwards_goes_on_without_results(
    how: str,
    chain: SampleChain,
    broken: Any,
    store: SQLiteBackend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(throttle, "_FIRST_PAUSE_S", 0.0)
    node, url = broken("block_results", how)
    limits = HASTE if how == "no answer" else LIMITS
    import_all(store, upstreams_at(url), 1, BAD - 5)

    import_all(store, upstreams_at(url, limits=limits), 1, HEIGHTS - 1)

    assert [*gaps_of(store)] == [BAD]
    assert store.reads.latest_height() == HEIGHTS - 1
    store.verify()
    node.is_broken = False
    import_all(store, upstreams_at(url))
    assert store.reads.results(BAD) == chain.blocks[BAD - 1].results
    store.verify()


def without_results(results: BlockResults) -> BlockResults:
    raise ResultNotFound(f"could not find results for height #{results.height}")


def forged(commit: Commit) -> Commit:
    """Return the commit with its signatures in reverse order, at one height."""
    return (
        replace(commit, signatures=commit.signatures[::-1]) if commit.height == BAD else commit
    )


def test_a_node_that_forges_a_block_without_results_is_refused(
    chain: SampleChain, broken: Any, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The block is stored from another node, which has no results either."""
    _, url = broken("block_results", "text/plain")
    import_all(store, upstreams_at(url), 1, BAD - 1)
    liar = Liar(node_of(chain))
    liar.of_results = without_results
    liar.of_commit = forged
    upstreams = upstreams_at(url, serve_node(liar))
    upstreams.ahead = upstreams.usable_readers()[1].name

    import_all(store, upstreams, 1, HEIGHTS - 1)

    assert [*gaps_of(store)] == [BAD]
    assert [*upstreams.refused] == [upstreams.ahead]
    store.verify()


def test_results_of_the_highest_block_are_asked_for_until_the_next_one_proves_them(
    chain: SampleChain, broken: Any, store: SQLiteBackend
) -> None:
    node, url = broken("block_results", "text/plain")
    import_all(store, upstreams_at(url), 1, BAD)
    assert [*gaps_of(store)] == [BAD]
    node.is_broken = False

    import_all(store, upstreams_at(url), 1, BAD)
    assert [*gaps_of(store)] == [BAD]
    import_all(store, upstreams_at(url), 1, BAD + 1)

    assert not gaps_of(store)
    assert store.reads.results(BAD) == chain.blocks[BAD - 1].results
    store.verify()


def test_a_node_that_hangs_is_told(
    chain: SampleChain, serve_node: Serve, companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CachedStatus, "_SILENT_S", 0.0)
    monkeypatch.setattr(CachedStatus, "_FRESH_S", 0.0)
    proxy = Broken(serve_node(node_of(chain)), "status", "no answer")
    proxy.is_broken = False
    with raw_node(proxy.respond) as url:
        backend = companion(url)
        backend.follow()
        client = app_for(backend, dialect="comet-0.38").test_client()
        until(lambda: client.get("/readyz").text.startswith("ready"), "ready")

        proxy.hangs = True

        until(
            lambda: "no upstream node has responded for" in client.get("/readyz").text,
            "the node",
        )
        assert client.get("/readyz").status_code == 503
        proxy.hangs = False
        proxy.released.set()
        until(lambda: client.get("/readyz").text.startswith("ready"), "ready again")


def test_gaps_are_bounded_and_forgotten_where_blocks_are_pruned(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    import_all(store, upstreams_at(serve_node(node_of(chain))), 30)
    known = Gaps(store)
    for height in range(29, 29 + 2 * MAX_GAPS):
        known.note(height, "results", "x")
    assert len(known) == MAX_GAPS

    assert known.due() == []
    assert known.due(at_once=True) == [*range(28 + MAX_GAPS, 29, -1)]
    assert min(gaps_of(store)) == 30


def test_a_full_record_of_missing_heights_is_said(
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    caplog: pytest.LogCaptureFixture,
) -> None:
    followed = companion(serve_node(node_of(chain)))
    followed.follow()
    until(
        lambda: followed.reads.base_height() == 1 and followed.reads.latest_height() == HEIGHTS,
        "all",
    )
    known, client = Gaps(followed.store), app_for(followed).test_client()
    for height in range(HEIGHTS, HEIGHTS + MAX_GAPS - 1):
        known.note(height, "results", "x")
    assert "lack their block" not in client.get("/readyz").text

    for height in (1, 2, 3):
        known.note(height, "results", "x")

    assert "height 2 and further ones are not fetched" in caplog.text
    assert f"{MAX_GAPS} heights lack their block or results" in client.get("/readyz").text
