"""Tests that the direct adapter responds like Flask, byte for byte, and leaves the rest to
Flask."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from flask import current_app, request_started

from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.extension import mounts
from flask_noderpc.server.addresses import surfaces
from flask_noderpc.server.direct import DirectAdapter, DirectResponse, ResponseCache, Sender
from flask_noderpc.server.http import Fields, RequestHead
from flask_noderpc.signals import rpc_called
from flask_noderpc.testing.node import app_for
from tests.helpers.until import PATIENCE

from ..http.test_result_cache import DIALECTS
from .test_response_cache import answer, exchange, get, one, post, serving, without_clocks

BYTES = 1_000_000
PAGE, EVIL = "https://page.example", "https://evil.example"
GUARDS: dict[str, Any] = {
    "allowed_hosts": "localhost",
    "cors_origins": PAGE,
    "read_origins": PAGE,
    "max_body_bytes": 500,
    "evm_max_body_bytes": 400,
    "deny_methods": "genesis",
    "json_rpc_enable": True,
    "exclude_routes": "net_info",
}
JSON = "Content-Type: application/json\r\n"
BROWSER = "Accept: text/html,*/*;q=0.8\r\n"


def sent(method: str, path: str, headers: str = "", body: str = "") -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}{length}\r\n"
    return (head + body).encode()


def of(origin: str) -> str:
    return f"Origin: {origin}\r\n"


CHUNKED = "Transfer-Encoding: chunked\r\n"
ROUTES = [
    get("/health"),
    get("/%68ealth"),
    get("/block?height=1"),
    get("/block?height=99"),
    get("/block?height=%ff"),
    get("/block?height=1", "If-None-Match: *\r\n"),
    get("/health").replace(b"localhost", b"evil.example"),
    get("/health", of(PAGE)),
    get("/health", of(EVIL)),
    get("/broadcast_tx_sync?tx=0x61", of(PAGE)),
    get("/genesis"),
    get("/net_info"),
    get("/nothing"),
    get("/"),
    get("/", BROWSER),
    get("/subscribe?query=%22a%22"),
    get("/openapi.json"),
    sent("GET", "/health", body="abcd"),
    sent("PUT", "/status"),
    sent("OPTIONS", "/status"),
    sent("OPTIONS", "/status", f"{of(PAGE)}Access-Control-Request-Method: GET\r\n"),
    get("//health"),
    get("/health/"),
]
BODIES = [
    post(one("health")),
    post(one("block", 2, {"height": "1"})),
    post(one("nothing", 3)),
    post(f"[{one('health', 1)},{one('status', 2)}]"),
    post("{"),
    post('{"jsonrpc":"2.0","method":"health"}'),
    post(one("health"), of(EVIL)),
    post(one("broadcast_tx_sync", 1, {"tx": "YQ=="}), of(PAGE)),
    post(one("health"), "Content-Encoding: gzip\r\n"),
    post("x" * 501),
    post("x" * 5_000),
    sent("POST", "/", CHUNKED) + b"3\r\n[1]\r\n0\r\n\r\n",
    sent("POST", "/", CHUNKED) + b"%x\r\n%b\r\n0\r\n\r\n" % (501, b"x" * 501),
    sent("POST", "/", CHUNKED) + b"0\r\n\r\n",
    sent("POST", "/"),
    post(one("health"), of(PAGE)).replace(b"localhost", b"evil.example"),
]
EVM_BODIES = [
    post(one("eth_chainId"), JSON, "/evm"),
    post(one("eth_getBlockByNumber", 1, ["0x1", False]), JSON, "/evm"),
    post(one("eth_chainId"), "", "/evm"),
    post(one("eth_chainId"), JSON + of(EVIL), "/evm"),
    post(one("eth_chainId"), JSON + "Content-Encoding: gzip\r\n", "/evm"),
    post("x" * 401, JSON, "/evm"),
    post("[]", JSON, "/evm"),
    sent("POST", "/evm", JSON + CHUNKED) + b"%x\r\n%b\r\n0\r\n\r\n" % (401, b"x" * 401),
    sent("POST", "/evm", JSON + CHUNKED) + b"0\r\n\r\n",
    sent("PUT", "/evm"),
    get("/evm"),
    get("/evm", BROWSER),
]


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    made = EmbeddedChain(tmp_path / "chain.db", clock=ManualClock(), produce=False, dev=True)
    made.start()
    made.mempool.submit(b"a=1")
    made.produce()
    yield made
    made.close()


def ask(port: int, request: bytes) -> bytes:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)) as sock:
        return without_clocks(exchange(sock, request))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_both_adapters_answer_byte_for_byte(chain: EmbeddedChain, dialect: str) -> None:
    app = app_for(chain, dialect=dialect, **GUARDS)
    with (
        serving(app, None) as flask,
        serving(app, ResponseCache(BYTES)) as direct,
    ):
        for request in (*ROUTES, *BODIES, *EVM_BODIES):
            expected = ask(flask.port, request)
            for _ in range(2):
                assert ask(direct.port, request) == expected, request


def test_calls_do_not_enter_flask_and_all_else_does(
    chain: EmbeddedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_for(chain, json_rpc_enable=True)
    entered: list[str] = []
    wsgi_app = app.wsgi_app

    def counted(environ: Any, start_response: Any) -> Any:
        entered.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
        return wsgi_app(environ, start_response)

    monkeypatch.setattr(app, "wsgi_app", counted)
    with serving(app, ResponseCache(BYTES)) as served:
        for request in (
            get("/status"),
            post(one("status")),
            post(one("eth_chainId"), JSON, "/evm"),
            get("/"),
            get("/openapi.json"),
            get("/nothing"),
            sent("OPTIONS", "/status"),
        ):
            ask(served.port, request)
    assert entered == ["GET /", "GET /openapi.json", "GET /nothing", "OPTIONS /status"]


def test_receivers_see_every_call_in_an_app_context(chain: EmbeddedChain) -> None:
    app = app_for(chain)
    seen: list[tuple[str, str]] = []

    def hear(_sender: object, method: str, **_: object) -> None:
        seen.append((method, current_app.name))

    with (
        serving(app, ResponseCache(BYTES)) as served,
        rpc_called.connected_to(hear, sender=chain),
    ):
        for _ in range(2):
            ask(served.port, get("/block?height=1"))
            ask(served.port, post(one("block", 1, {"height": "1"})))
    assert seen == [("block", app.name)] * 4


def test_a_receiver_of_flask_s_signals_sees_requests_from_when_it_is_connected(
    chain: EmbeddedChain,
) -> None:
    app = app_for(chain)
    seen: list[object] = []

    def hear(*_: object, **__: object) -> None:
        seen.append(None)

    with serving(app, ResponseCache(BYTES)) as served:
        ask(served.port, get("/health"))
        with request_started.connected_to(hear, app):
            for _ in range(2):
                ask(served.port, get("/health"))
    assert len(seen) == 2


def test_a_call_that_expects_100_continue_gets_it_before_the_answer(
    chain: EmbeddedChain,
) -> None:
    with (
        serving(app_for(chain), ResponseCache(BYTES)) as served,
        closing(socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)) as sock,
    ):
        head, end, body = post(one("health"), "Expect: 100-continue\r\n").partition(b"\r\n\r\n")
        sock.sendall(head + end)
        assert answer(sock) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert answer(sock).endswith(b'"result":{}}')


def test_a_header_of_http_1_0_is_answered_each_time(chain: EmbeddedChain) -> None:
    request = get("/health").replace(b"HTTP/1.1", b"HTTP/1.0")
    with serving(app_for(chain), ResponseCache(BYTES)) as served:
        for _ in range(2):
            assert ask(served.port, request).startswith(b"HTTP/1.0 200 OK\r\n")


def test_what_a_page_may_read_on_a_development_chain_is_not_cached(
    chain: EmbeddedChain,
) -> None:
    app = app_for(chain, dev=True, read_origins="https://only.example")
    adapter = DirectAdapter(app, mounts(app)["noderpc"])
    page = Fields(host=["localhost"], origin=["http://localhost:3000"])
    assert answered(adapter, page, "127.0.0.1").reproducible is None
    assert answered(adapter, page, "10.0.0.9").status == 403
    assert answered(adapter, Fields(host=["localhost"]), "").reproducible is not None


def answered(adapter: DirectAdapter, fields: Fields, address: str) -> DirectResponse:
    answer = ask_directly(adapter, "GET", "/genesis", fields, address)
    assert answer is not None
    return answer


def ask_directly(
    adapter: DirectAdapter, method: str, path: str, fields: Fields, address: str = ""
) -> DirectResponse | None:
    head = RequestHead(method, path, "", "HTTP/1.1", fields)
    environ = {"wsgi.url_scheme": "http", "REMOTE_ADDR": address, **fields.environ}
    return adapter.answer(Sender(head, environ), head, BytesIO())


@pytest.mark.parametrize("surface", ["evm", "evm_ws"])
def test_the_evm_s_own_addresses_serve_its_calls_alone(
    chain: EmbeddedChain, surface: str
) -> None:
    app = app_for(chain, json_rpc_enable=True)
    adapter = DirectAdapter(app, mounts(app)["noderpc"], surfaces()[surface])
    assert ask_directly(adapter, "GET", "/status", Fields()) is None
    assert ask_directly(adapter, "POST", "/evm", Fields()) is None
