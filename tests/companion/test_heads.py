"""Tests of following the head with nodes that are late, halted, silent or claim heights that
they lack."""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto import events as frames

from flask_noderpc import ChainBackend
from flask_noderpc.companion.address import Address
from flask_noderpc.companion.backend import CompanionBackend
from flask_noderpc.companion.from_settings import companion_from_settings
from flask_noderpc.companion.history import History
from flask_noderpc.companion.ticker import Ticker
from flask_noderpc.domain.abci import BlockResults
from flask_noderpc.errors import ResultNotFound
from flask_noderpc.settings import read_settings
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.growing import grow
from tests.helpers.until import PATIENCE, until

from .conftest import HEIGHTS, Serve, node_of
from .test_follow import reaches
from .test_import import Pruned
from .test_lies import Liar

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

# A poll interval in seconds that the test never waits for.
NEVER = 10**6

Follow = Callable[..., CompanionBackend]


@pytest.fixture
def follow(tmp_path: Path) -> Iterator[Follow]:
    """Return a function that follows nodes until the test ends."""
    with ExitStack() as stack:

        def start(*urls: str, **settings: Any) -> CompanionBackend:
            given = {"upstream": urls, "upstream_poll": 0.05, "trust_period": 10**9, **settings}
            path = tmp_path / "companion.db"
            backend = companion_from_settings(read_settings({}, given), path)
            stack.callback(backend.close)
            backend.follow()
            return backend

        yield start


def _grows(
    followed: CompanionBackend, chain: SampleChain, count: int, *nodes: ChainBackend
) -> None:
    """Add blocks, each one after the previous block is followed."""
    for _ in range(count):
        height = nodes[0].reads.latest_height()
        for node in nodes:
            grow(node, chain.blocks[height])
        until(lambda height=height: followed.reads.latest_height() > height, "the block")  # type: ignore[misc]


def test_the_node_that_told_a_block_is_asked_for_it(
    chain: SampleChain, serve_node: Serve, follow: Follow
) -> None:
    """No poll is needed, although another node is halted."""
    inner, halted = node_of(chain, 30), node_of(chain, 30)
    followed = follow(serve_node(inner), serve_node(halted), upstream_poll=NEVER)
    reaches(followed, 30)
    _grows(followed, chain, 12, inner)


def _boastful(node: ChainBackend) -> Any:
    """Return an app whose status claims a height that no node has."""
    app = app_for(node, dialect="comet-0.38")
    answer = app.wsgi_app

    def boast(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        told: list[Any] = []

        def keep(*head: Any) -> Callable[[bytes], object]:
            told.append(head)
            return told.append

        body = b"".join(answer(environ, keep))
        body = re.sub(rb'(latest_block_height":)"\d+"', rb'\1"1000000000000000"', body)
        status, headers = told[0][:2]
        others = [each for each in headers if each[0].lower() != "content-length"]
        start(status, [*others, ("Content-Length", str(len(body)))])
        return [body]

    app.wsgi_app = boast  # type: ignore[assignment, method-assign]
    return app


def test_a_height_counts_if_its_node_shows_it(
    chain: SampleChain, serve_node: Serve, follow: Follow, caplog: pytest.LogCaptureFixture
) -> None:
    """Each block is followed, and following does not restart, although another node claims
    more."""
    inner = node_of(chain, 30)
    with serve(_boastful(inner)) as boastful:
        followed = follow(boastful, serve_node(inner))
        reaches(followed, 30)
        _grows(followed, chain, 25, inner)
        assert "new blocks are not stored" not in caplog.text
        followed.close()


def test_results_that_are_late_are_waited_for(
    chain: SampleChain, serve_node: Serve, follow: Follow, caplog: pytest.LogCaptureFixture
) -> None:
    """A block may take a minute to execute; the backfill continues meanwhile."""
    inner = node_of(chain, 30)
    node, asked, executed = Liar(inner), list[int](), threading.Event()

    def results(found: BlockResults) -> BlockResults:
        if found.height == 31 and not executed.is_set():
            asked.append(found.height)
            raise ResultNotFound("could not find results for height #31")
        return found

    node.of_results = results
    followed = follow(serve_node(node))
    reaches(followed, 30)
    grow(inner, chain.blocks[30])
    until(lambda: len(asked) > 30, "it is asked again and again")
    executed.set()
    reaches(followed, 31)
    assert "new blocks are not stored" not in caplog.text


def test_a_backfill_goes_on_when_nodes_have_older_blocks(
    chain: SampleChain, serve_node: Serve, follow: Follow, caplog: pytest.LogCaptureFixture
) -> None:
    """This happens when a node is replaced by an archive."""
    caplog.set_level(logging.INFO)
    node = Pruned(node_of(chain), 40, 40)
    followed = follow(serve_node(ChainBackend(node)))
    reaches(followed, HEIGHTS, 40)
    until(lambda: "no blocks below 40: they are asked again later" in caplog.text, "the reason")
    node.base = node.with_results = 1
    reaches(followed, HEIGHTS)


def test_a_backfill_goes_on_after_any_error(
    chain: SampleChain,
    serve_node: Serve,
    follow: Follow,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The error is logged, and does not end the thread."""
    fill, failed = History.fill, list[int]()

    def fails_first(self: History, top: int, *rest: Any) -> int:
        failed.append(top)
        if len(failed) == 1:
            raise ValueError("a bug")
        return fill(self, top, *rest)

    monkeypatch.setattr(History, "fill", fails_first)
    reaches(follow(serve_node(node_of(chain))), HEIGHTS)
    assert "ValueError: a bug" in caplog.text


def _flood(listener: socket.socket) -> None:
    """Accept a websocket, and send it messages without a pause."""
    peer, _ = listener.accept()
    with peer:
        websocket = WSConnection(ConnectionType.SERVER)
        websocket.receive_data(peer.recv(65_536))
        next(websocket.events())
        peer.sendall(websocket.send(frames.AcceptConnection()))
        message = websocket.send(frames.TextMessage('{"height":"99"}'))
        with suppress(OSError):
            while True:
                peer.sendall(message)


def test_a_node_that_floods_is_not_asked_for_each_message() -> None:
    """Messages are read only as fast as blocks may come, and messages about stored blocks are
    dropped."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        threading.Thread(target=_flood, args=(listener,), daemon=True).start()
        ticker = Ticker({"node": Address.parse(f"http://127.0.0.1:{port}")}, ended)
        ticker.start()
        began = time.monotonic()
        assert [ticker.wait(PATIENCE, 98) for _ in range(11)] == ["node"] * 11
        assert time.monotonic() - began >= 0.9
        assert ticker.is_live()
        assert ticker.wait(0.3, 99) == ""
        ended.set()
        ticker.close()
