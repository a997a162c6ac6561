"""Tests of ``NODERPC_LOG_CALLS``: a line for each call, without its parameters."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from flask_noderpc import NodeRPC
from flask_noderpc.testing import Node, run_node
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.websocket import WebSocketClient

LINE = re.compile(
    r"method=(\w+) outcome=(-?\d+) milliseconds=\d+\.\d+ transport=(\w+) client=([\d.]+)"
)


@pytest.fixture
def node() -> Iterator[Node]:
    with run_node() as running:
        yield running


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, ...]]:
    found = [LINE.fullmatch(each.getMessage()) for each in caplog.records if is_call(each)]
    assert all(found)
    return [match.groups() for match in found if match]


def is_call(record: logging.LogRecord) -> bool:
    return record.name == "flask_noderpc.calls"


def test_each_call_is_a_line_without_its_parameters(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "flask_noderpc.calls")
    app = app_for(node.chain, log_calls=True)
    with serve(app) as url, closing(WebSocketClient(url)) as client:
        client.asked("health", {})
        client.asked("subscribe", {"query": "secret.key='secret'"})
        http = app.test_client()
        http.get('/broadcast_tx_sync?tx="secret=1"')
        http.post("/", data=b'{"id":"secret","method":"secret\\n","params":["secret"]}')
        http.get("/block?height=secret")

    assert lines(caplog) == [
        ("health", "0", "websocket", "127.0.0.1"),
        ("subscribe", "0", "websocket", "127.0.0.1"),
        ("broadcast_tx_sync", "0", "get", "127.0.0.1"),
        ("unknown", "-32601", "post", "127.0.0.1"),
        ("block", "-32602", "get", "127.0.0.1"),
    ]
    records = [each for each in caplog.records if is_call(each)]
    assert "secret" not in "".join(str(vars(each)) for each in records)
    assert vars(records[-1])["outcome"] == -32602


def test_a_mount_s_log_has_no_calls_of_other_mounts_of_its_backend(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "flask_noderpc.calls")
    app = app_for(node.chain, log_calls=True)
    for name, setting in {"silent": False, "second": True}.items():
        app.register_blueprint(
            NodeRPC(backend=node.chain, name=name, log_calls=setting).blueprint(),
            url_prefix=f"/{name}",
        )
    http = app.test_client()
    for path in ("/silent/health", "/second/status", "/genesis"):
        assert http.get(path).status_code == 200

    assert [(method, transport) for method, _, transport, _ in lines(caplog)] == [
        ("status", "get"),
        ("genesis", "get"),
    ]


def test_without_the_setting_nothing_is_logged(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "flask_noderpc.calls")
    app_for(node.chain).test_client().get("/health")

    assert lines(caplog) == []
