"""Tests of gunicorn with the configuration of ``deploy/``, and of its reserved threads."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.helpers.until import PATIENCE, until

from ..helpers.ports import free_port
from .fixtures import (
    MempoolSource,
    Way,
    call,
    converse,
    gunicorn_command,
    running,
    says_ready,
    serving,
)

KINDS = ("gevent", "gthread")


@pytest.mark.parametrize("kind", KINDS)
def test_calls_events_and_an_end_in_good_order(kind: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        server, way = stack.enter_context(serving(kind, tmp_path, block_interval=0.1))
        converse(way, kind)
        websockets = [stack.enter_context(way.websocket()) for _ in range(5)]
        assert server.end() == 0
        for each in websockets:
            with pytest.raises(ConnectionClosed):
                each.recv(PATIENCE)
            assert each.close_code == 1001
        assert "Traceback" not in server.log.read_text()


def test_the_file_serves_at_a_port_and_with_systemd_at_a_socket(tmp_path: Path) -> None:
    command = gunicorn_command()
    port, path = free_port(), tmp_path / "node.sock"
    plain = {"FLASK_NODERPC_DATABASE": str(tmp_path / "a.db"), "PORT": str(port)}
    with running(command, tmp_path / "a.log", plain) as server:
        server.until_answered(lambda: Way(port).get("/health"))
        assert server.end() == 0
    systemd = {
        "FLASK_NODERPC_DATABASE": str(tmp_path / "b.db"),
        "RUNTIME_DIRECTORY": str(tmp_path),
    }
    with running(command, tmp_path / "b.log", systemd) as server:
        until(lambda: says_ready(path), "an answer")
        assert server.end() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_calls_are_answered_at_shutdown(kind: str, tmp_path: Path) -> None:
    slow: dict[str, Any] = {"block_interval": 1000, "broadcast_timeout": 1000}
    with serving(kind, tmp_path, **slow) as (server, way):
        waiting = MempoolSource(way, "a=1")
        until(lambda: way.get("/num_unconfirmed_txs")["total"] == "1", "the transaction")
        assert server.end() == 0
        waiting.thread.join(PATIENCE)
        assert "the server is shutting down" in waiting.told[0][1]


def test_a_preloaded_gunicorn_app_serves(tmp_path: Path) -> None:
    with serving("gthread", tmp_path, "--preload", block_interval=0.1) as (server, way):
        converse(way, "preloaded")
        assert server.end() == 0


@pytest.fixture
def eight_threads(tmp_path: Path) -> Iterator[Way]:
    words = ("--workers", "1", "--threads", "8")
    slow: dict[str, Any] = {"block_interval": 1000, "broadcast_timeout": 1000}
    with serving("gthread", tmp_path, *words, **slow) as (_, way):
        yield way


def test_health_is_answered_beside_many_waiting_calls_and_subscribers(
    eight_threads: Way,
) -> None:
    way = eight_threads
    ended, answered = threading.Event(), []

    def look() -> None:
        while not ended.is_set():
            answered.append(way.get("/health"))

    looking = threading.Thread(target=look)
    looking.start()
    with ExitStack() as stack:
        stack.callback(looking.join)
        stack.callback(ended.set)
        opened = [stack.enter_context(way.websocket()) for _ in range(3)]
        waiting = [MempoolSource(way, f"key{number}=1") for number in range(50)]
        until(lambda: sum(bool(each.told) for each in waiting) >= 47, "all but three refused")
        for _ in range(20):
            with pytest.raises(InvalidStatus) as refused:
                stack.enter_context(way.websocket())
            assert refused.value.response.status_code == 503
            assert b"gunicorn: --threads" in (refused.value.response.body or b"")

        # No waiting call has been answered meanwhile, and /health still responds.
        before = len(answered)
        until(lambda: len(answered) > before + 10, "more of /health")
        told = [each.told[0] for each in waiting if each.told]
        assert len(told) == 47
        for _, text in told:
            assert "occupy 6 of the server's 8 threads" in text
            assert "gunicorn: --threads" in text

        # A call on a websocket runs in the websocket's own thread, so it may wait there.
        opened[0].send(json.dumps(call("broadcast_tx_commit", {"tx": "b3duPTE="})))
        until(lambda: _waiting_txs(way) == 4, "its transaction beside those of three")
        # The place of the closed connection is free for another one.
        opened[1].close()
        until(lambda: _can_connect(way, stack), "a place")


def _waiting_txs(way: Way) -> int:
    return int(way.get("/num_unconfirmed_txs")["total"])


def _can_connect(way: Way, stack: ExitStack) -> bool:
    try:
        stack.enter_context(way.websocket())
    except InvalidStatus:
        return False
    return True


def test_a_sync_worker_refuses_websockets_and_serves_on(tmp_path: Path) -> None:
    """gunicorn uses sync workers by default."""
    with serving("sync", tmp_path, "--workers", "1", "--threads", "1") as (_, way):
        with pytest.raises(InvalidStatus) as refused, way.websocket():
            pass
        assert refused.value.response.status_code == 503
        assert b"--threads 64 or -k gevent" in (refused.value.response.body or b"")
        assert way.get("/health") == {}
        assert int(way.get('/broadcast_tx_commit?tx="a=1"')["height"]) > 0


@pytest.mark.parametrize("factory", ["create_app", "create_app_with_signals"])
def test_one_thread_is_for_requests_alone(tmp_path: Path, factory: str) -> None:
    """This is the default of -k gthread, and holds if the app handles signals, too."""
    words = ("--workers", "1", "--threads", "1")
    with serving("gthread", tmp_path, *words, factory=factory) as (_, way):
        text = way.asked('/broadcast_tx_commit?tx="a=1"')[1]
        assert re.search("occupy 0 of the server's 1 threads", text)
        with pytest.raises(InvalidStatus, match="503"), way.websocket():
            pass
        assert way.get("/health") == {}
