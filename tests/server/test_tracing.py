"""Tests of spans of ``noderpc start``, as a collector receives them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from flask_noderpc.installation import install_hint

from ..helpers.http import get, request
from ..helpers.until import until
from .node_process import ANY_PORTS, run_start, started

TRACE = "0af7651916cd43dd8448eb211c80319c"
HEADERS = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """Yield an address that accepts spans, and the bodies that were sent to it."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def names_and_traces(bodies: list[bytes]) -> list[tuple[str, bool]]:
    """Return names of spans, with true for those in the trace of the header."""
    return [
        (span.name, span.trace_id.hex() == TRACE)
        for body in bodies
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def test_each_process_sends_its_spans_to_the_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as (url, bodies):
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        with started(tmp_path, "--workers", "2") as node:
            node.until_up()
            until(lambda: ("health", False) in names_and_traces(bodies), "the first span")
            request(f"{node.url()}/status", headers=HEADERS)
            until(lambda: ("status", True) in names_and_traces(bodies), "the span of the trace")
            get(node.url(), "/status")
            assert node.end() == 0
        # Spans that were still queued are sent at the end.
        assert ("status", False) in names_and_traces(bodies)


def test_a_node_ends_though_the_collector_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    # Nothing listens at this port.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    with started(tmp_path) as node:
        node.until_up()
        assert node.end() == 0
    assert "is killed" not in node.log.read_text()


def test_an_exporter_that_is_not_installed_is_refused_in_one_line(
    tmp_path: Path,
) -> None:
    done = run_start("--home", str(tmp_path), *ANY_PORTS, OTEL_TRACES_EXPORTER="pigeon")
    assert done.returncode == 78
    assert done.stderr == (
        "Error: OTEL_TRACES_EXPORTER: the exporter 'pigeon' is not installed;"
        f" for otlp and console, {install_hint('opentelemetry')}\n"
    )
