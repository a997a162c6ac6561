"""Tests of OpenTelemetry's spans: one for each call, in the trace of its request."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from flask_noderpc import COMETBFT_ROUTES, Route
from flask_noderpc.domain.responses import Empty
from flask_noderpc.jsonrpc.context import Context
from flask_noderpc.jsonrpc.params import NoParams
from flask_noderpc.server.direct import ResponseCache
from flask_noderpc.testing import Node, run_node
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.until import PATIENCE, until
from tests.helpers.websocket import WebSocketClient

from ..server.test_response_cache import ROOM, serving

TRACE, PARENT = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
HEADERS = {"traceparent": f"00-{TRACE:032x}-{PARENT:016x}-01"}
JSON = {"Content-Type": "application/json"}
ADDRESS = "0x" + "00" * 20


@dataclass
class Spans:
    """Spans that have ended, in order."""

    exporter: InMemorySpanExporter

    def all(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def names(self) -> list[str]:
        return [span.name for span in self.all()]

    def parents(self) -> list[tuple[int, int] | None]:
        """Return the trace and the span of each parent."""
        found = [span.parent for span in self.all()]
        return [(each.trace_id, each.span_id) if each else None for each in found]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    # A process may set it only once, and other tests run without it.
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return Spans(exporter)


@pytest.fixture
def node() -> Iterator[Node]:
    with run_node() as running:
        running.chain.mempool.submit(b"a=1")
        running.produce()
        yield running


def test_a_call_is_a_server_span_by_the_conventions_of_json_rpc(
    spans: Spans, node: Node
) -> None:
    client = app_for(node.chain).test_client()
    client.get("/health")
    client.post("/", json={"id": 7, "method": "health"})

    get, post = spans.all()
    assert (get.name, get.kind.name, get.status.status_code.name) == (
        "health",
        "SERVER",
        "UNSET",
    )
    assert get.instrumentation_scope is not None
    assert get.instrumentation_scope.name == "flask_noderpc"
    common = {"rpc.system.name": "jsonrpc", "rpc.method": "health"}
    assert dict(get.attributes or {}) == {**common, "noderpc.transport": "get"}
    assert dict(post.attributes or {}) == {
        **common,
        "noderpc.transport": "post",
        "jsonrpc.protocol.version": "2.0",
    }
    assert get.parent is post.parent is None


def test_errors_have_their_code_and_nothing_of_what_was_sent(spans: Spans, node: Node) -> None:
    client = app_for(node.chain).test_client()
    client.get("/tx?hash=secret")
    client.post("/", json={"id": "secret", "method": "block", "params": {"height": "secret"}})
    client.get("/block?height=99")

    found = spans.all()
    codes = [(span.attributes or {})["rpc.response.status_code"] for span in found]
    assert codes == ["-32602", "-32602", "-32603"]
    assert codes == [(span.attributes or {})["error.type"] for span in found]
    assert {span.status.status_code.name for span in found} == {"ERROR"}
    assert "secret" not in "".join(span.to_json() for span in found)


def test_methods_that_do_not_exist_have_one_name(spans: Spans, node: Node) -> None:
    client = app_for(node.chain).test_client()
    client.post("/", json={"id": 1, "method": "x" * 5_000})

    (span,) = spans.all()
    attributes = span.attributes or {}
    assert (span.name, attributes["rpc.method"]) == ("jsonrpc", "_OTHER")
    assert attributes["rpc.method_original"] == "x" * 100
    assert attributes["rpc.response.status_code"] == "-32601"


def test_each_call_of_a_batch_is_a_span_and_what_is_no_call_is_none(
    spans: Spans, node: Node
) -> None:
    client = app_for(node.chain).test_client()
    calls = [{"id": number, "method": name} for number, name in enumerate(("health", "status"))]
    client.post("/", json=calls, headers=HEADERS)
    client.post("/", data=b"{", headers=HEADERS)
    client.get("/nothing", headers=HEADERS)

    assert spans.names() == ["health", "status"]
    assert spans.parents() == [(TRACE, PARENT)] * 2


def test_the_parent_is_what_the_header_names_over_every_transport(
    spans: Spans, node: Node
) -> None:
    app = app_for(node.chain, json_rpc_enable=True)
    client = app.test_client()
    client.get("/health", headers=HEADERS)
    client.post("/", json={"id": 1, "method": "health"}, headers=HEADERS)
    evm = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"}
    client.post("/evm", json=evm, headers=HEADERS)
    with serve(app) as url:
        with closing(WebSocketClient(url, headers=HEADERS)) as sock:
            sock.asked("health", {})
            sock.asked("subscribe", {"query": "tm.event='Tx'"})
        with closing(WebSocketClient(url, path="/evm/ws", headers=HEADERS)) as sock:
            sock.asked("eth_chainId", [])
            sock.asked("eth_subscribe", ["newHeads"])
            sock.asked("eth_getBalance", [ADDRESS, "latest"])

    assert spans.names() == [
        *("health", "health", "eth_chainId"),
        *("health", "subscribe", "eth_chainId", "eth_subscribe", "eth_getBalance"),
    ]
    assert spans.parents() == [(TRACE, PARENT)] * 8


def test_a_span_around_the_request_is_the_parent_in_place_of_the_header(
    spans: Spans, node: Node
) -> None:
    app = app_for(node.chain)
    tracer = trace.get_tracer_provider().get_tracer("an instrumented Flask")
    with tracer.start_as_current_span("GET /health") as around:
        app.test_client().get("/health", headers=HEADERS)

    context = around.get_span_context()
    assert spans.parents() == [(context.trace_id, context.span_id), None]


def test_what_a_handler_does_is_in_the_span_of_its_call(spans: Spans, node: Node) -> None:
    tracer = trace.get_tracer_provider().get_tracer("a database")

    def ping(ctx: Context, params: NoParams) -> Empty:
        """Answers."""
        with tracer.start_as_current_span("SELECT"):
            return Empty()

    own = (Route("ping", ping, NoParams, Empty),)
    app_for(node.chain, routes=COMETBFT_ROUTES + own).test_client().get("/ping")

    select, call = spans.all()
    assert (select.name, call.name) == ("SELECT", "ping")
    assert select.parent is not None
    assert call.context is not None
    assert select.parent.span_id == call.context.span_id


def test_calls_that_wait_for_the_store_together_are_beside_each_other(
    spans: Spans, node: Node
) -> None:
    with closing(WebSocketClient(node.url)) as client:
        for number in range(5):
            client.call("broadcast_tx_sync", {"tx": f"YT{number}="}, number)
        for _ in range(5):
            client.json()

    until(lambda: len(spans.all()) == 5, "all spans")
    assert spans.names() == ["broadcast_tx_sync"] * 5
    assert spans.parents() == [None] * 5


def test_repeated_requests_have_spans_and_those_of_a_trace_are_not_cached(
    spans: Spans, node: Node
) -> None:
    lane, header = ResponseCache(ROOM), "traceparent: {traceparent}\r\n".format(**HEADERS)
    with serving(app_for(node.chain), lane) as served:
        served.ask("/status", "/status", "/status")
        assert served.computed == ["/status"]
        served.ask("/status", "/status", headers=header)
        assert served.computed == ["/status"] * 3

    assert spans.names() == ["status"] * 5
    assert spans.parents() == [None] * 3 + [(TRACE, PARENT)] * 2


def test_there_are_no_spans_until_a_provider_is_set(
    spans: Spans, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, client = trace.get_tracer_provider(), app_for(node.chain).test_client()
    with monkeypatch.context() as patch:
        patch.setattr(trace, "_TRACER_PROVIDER", None)
        client.get("/health")
        assert spans.all() == []
    assert trace.get_tracer_provider() is provider
    client.get("/health")
    assert spans.names() == ["health"]


_ANSWERS = """
import sys
if sys.argv[1] == "without":
    sys.modules["opentelemetry"] = None
from flask_noderpc import ChainBackend, MemoryChain
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.node import app_for
chain = make_chain(3)
backend = ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))
client = app_for(backend).test_client()
for path in ("/health", "/block?height=1", "/block?height=9"):
    print(client.get(path).text)
print(client.post("/", json=[{"id": 1, "method": "status"}, {"id": 2, "method": "no"}]).text)
loaded = [name for name in sys.modules if name.startswith("opentelemetry.")]
sys.exit(str(loaded) if sys.argv[1] == "without" and loaded else None)
"""


def test_without_the_package_every_answer_is_the_same() -> None:
    def answers(how: str) -> subprocess.CompletedProcess[Any]:
        return subprocess.run(
            [sys.executable, "-c", _ANSWERS, how],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    with_it, without = answers("with"), answers("without")
    assert without.returncode == 0, without.stderr
    assert "block_id" in without.stdout
    assert without.stdout == with_it.stdout
