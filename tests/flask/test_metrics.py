"""Tests of ``/metrics`` of all processes together."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from flask import Flask

from flask_noderpc import ConfigurationError, NodeRPC
from flask_noderpc.installation import install_hint
from flask_noderpc.signals import wait_began
from flask_noderpc.testing import Node, run_node
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.http import get
from tests.helpers.until import PATIENCE, until
from tests.helpers.websocket import WebSocketClient
from tests.server.node_process import started

from .conftest import MakeApp


@pytest.fixture
def node() -> Iterator[Node]:
    with run_node() as running:
        yield running


def numbers(text: str) -> dict[str, float]:
    return {
        name: float(value) for name, value in re.findall(r"^(noderpc_\S+) (\S+)$", text, re.M)
    }


def shown(app: Flask) -> dict[str, float]:
    return numbers(app.test_client().get("/metrics").text)


def call(method: str, outcome: int, transport: str) -> str:
    labels = f'method="{method}",outcome="{outcome}",transport="{transport}"'
    return f"noderpc_calls_total{{{labels}}}"


@pytest.mark.features
def test_calls_are_counted_by_names_that_are_registered(node: Node) -> None:
    app = app_for(node.chain, metrics=True)
    before, http = shown(app), app.test_client()
    http.get("/health")
    http.get("/block?height=9")
    for number in range(3):
        http.post("/", json={"id": 1, "method": f"made_up_{number}"})

    after = shown(app)

    def more(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert more(call("health", 0, "get")) == 1
    assert more(call("block", -32603, "get")) == 1
    assert more(call("unknown", -32601, "post")) == 3
    assert more('noderpc_call_seconds_count{method="unknown",transport="post"}') == 3
    assert not any("made_up" in name for name in after)


@pytest.mark.features
def test_gauges_show_open_websockets_and_waiting_calls(node: Node) -> None:
    app = app_for(node.chain, metrics=True)
    before = shown(app)

    def more(name: str) -> float:
        return shown(app)[name] - before[name]

    waits = threading.Event()

    def wait(sender: object) -> None:
        waits.set()

    with serve(app) as url, wait_began.connected_to(wait, sender=node.chain):
        with closing(WebSocketClient(url)) as client:
            client.asked("subscribe", {"query": "tm.event='Tx'"})
            assert [more("noderpc_websockets"), more("noderpc_subscriptions")] == [1, 1]
        until(
            lambda: [more("noderpc_websockets"), more("noderpc_subscriptions")] == [0, 0],
            "all are closed",
        )

        path = '/broadcast_tx_commit?tx="a=1"'
        caller = threading.Thread(target=app.test_client().get, args=(path,))
        caller.start()
        assert waits.wait(PATIENCE)
        assert more("noderpc_waiting_calls") == 1
        assert node.chain.store.wait_for_pending(PATIENCE)
        node.produce()
        caller.join()
    assert more("noderpc_waiting_calls") == 0
    chain = node.chain.reads.chain_id()
    assert shown(app)[f'noderpc_height{{chain="{chain}"}}'] == 1


@pytest.mark.features
@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
            "openmetrics",
        ),
        ("application/openmetrics-text", "openmetrics"),
        ("text/plain;version=0.0.4", "text/plain"),
        ("*/*", "text/plain"),
        ("", "text/plain"),
    ],
)
def test_the_format_is_the_one_that_is_accepted(node: Node, accept: str, kind: str) -> None:
    client = app_for(node.chain, metrics=True).test_client()
    client.get("/health")

    answer = client.get("/metrics", headers={"Accept": accept})

    assert answer.status_code == 200
    assert kind in answer.content_type
    # OpenMetrics has an end marker, and Prometheus's own format has none.
    assert answer.text.endswith("# EOF\n") == (kind == "openmetrics")
    assert call("health", 0, "get") in answer.text
    assert "Accept" in answer.headers["Vary"]


@pytest.mark.features
def test_a_format_of_an_unknown_version_is_no_error(node: Node) -> None:
    # Releases of prometheus_client respond in different formats, or raise.
    accept = {"Accept": "application/openmetrics-text;version=new"}
    client = app_for(node.chain, metrics=True).test_client()

    assert client.get("/metrics", headers=accept).status_code == 200


@pytest.mark.features
def test_metrics_are_off_by_default_and_can_be_served_by_the_host(node: Node) -> None:
    left = app_for(node.chain, metrics=True, exclude_routes=["metrics"])

    assert app_for(node.chain).test_client().get("/metrics").status_code == 404
    assert left.test_client().get("/metrics").status_code == 404


def test_without_the_extra_the_setting_is_refused(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "flask_noderpc.web.metrics", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises(ConfigurationError, match=re.escape(install_hint("metrics"))):
        NodeRPC(make_app(NODERPC_METRICS=True))


def fetched(url: str) -> str:
    return get(url).raise_for_status().text


def test_the_processes_of_a_node_count_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    with started(tmp_path, "--metrics", "--workers", "2", "--empty-blocks") as node:
        url = node.url()
        for _ in range(20):
            fetched(f"{url}/health")

        found = numbers(fetched(f"{url}/metrics"))

        assert found[call("health", 0, "get")] == 20
        assert any(name.startswith("noderpc_height") for name in found)
        assert len(os.listdir(scratch)) == 1
        assert node.end() == 0
    assert os.listdir(scratch) == []


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks Linux for processes")
def test_the_memory_of_each_process_is_shown(tmp_path: Path) -> None:
    flags = ("--metrics", "--workers", "2", "--cache-bytes", "100000", "--empty-blocks")
    with started(tmp_path, *flags) as node:
        url = node.url()
        until(lambda: len(node.children()) == 3, "three processes")
        owners = {f'{{pid="{pid}"}}' for pid in node.children()}

        def shown() -> dict[str, dict[str, float]]:
            found: dict[str, dict[str, float]] = {}
            for height in range(1, 6):
                fetched(f"{url}/genesis?x={height}")
            for name, value in numbers(fetched(f"{url}/metrics")).items():
                bare, _, labels = name.partition("{")
                found.setdefault(bare, {})["{" + labels] = value
            return found

        # Each process reports its own memory when it starts.
        until(
            lambda: owners <= set(shown().get("noderpc_resident_bytes", ())), "memory of each"
        )
        found = shown()
        assert all(found["noderpc_resident_bytes"][one] > 20_000_000 for one in owners)
        # The three processes share the limit.
        assert {found["noderpc_cache_limit_bytes"][one] for one in owners} == {33_333}
        assert 0 < max(found["noderpc_cache_bytes"].values()) <= 33_333


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks Linux for processes")
def test_gauges_of_a_killed_process_are_dropped(tmp_path: Path) -> None:
    with (
        started(tmp_path, "--metrics") as node,
        closing(WebSocketClient(node.url())) as client,
    ):
        url = node.url()
        client.asked("health", {})
        assert numbers(fetched(f"{url}/metrics"))["noderpc_websockets"] == 1

        (killed,) = node.children()
        os.kill(killed, signal.SIGKILL)
        until(lambda: node.children() not in ([], [killed]), "another worker")

        # The connection waits at the socket until the next process listens.
        found = numbers(fetched(f"{url}/metrics"))
        assert found["noderpc_websockets"] == 0
        assert found[call("health", 0, "websocket")] == 1
