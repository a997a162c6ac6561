"""Tests that responses from the response cache equal Flask's."""

from __future__ import annotations

import gzip
import json
import re
import socket
import struct
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, BinaryIO

import gevent
import gevent.socket
import pytest
from flask import Flask, Response

from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.extension import mounts
from flask_noderpc.server.addresses import surfaces
from flask_noderpc.server.connection import Limits
from flask_noderpc.server.direct import DirectAdapter, DirectResponse, ResponseCache, Sender
from flask_noderpc.server.http import RequestHead
from flask_noderpc.server.server import NodeServer
from flask_noderpc.signals import rpc_called
from flask_noderpc.testing.node import app_for
from flask_noderpc.web.rules import render
from tests.helpers.stores import make_store
from tests.helpers.until import PATIENCE

from ..chain.test_control import opened
from ..http import chain as sample
from ..http.test_result_cache import DIALECTS, PATHS

ROOM = 1_000_000
LIMITS = Limits()
_CLOCKS = re.compile(rb"\r\n(Date|X-Server-Time): [^\r]*")


@dataclass
class Served:
    """A server in a separate thread, and the paths of requests that were not cached."""

    port: int
    computed: list[str] = field(default_factory=list)

    def ask(self, *paths: str, headers: str = "") -> list[bytes]:
        """Return the complete responses to GETs over one connection."""
        with closing(
            socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        ) as sock:
            return [exchange(sock, get(path, headers)) for path in paths]


def get(path: str, headers: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode()


def exchange(sock: socket.socket, request: bytes) -> bytes:
    """Return one response as it came."""
    sock.sendall(request)
    return answer(sock)


def answer(sock: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = sock.recv(1)
        assert byte, head
        head += byte
    length = re.search(rb"\r\nContent-Length: (\d+)", head)
    body = b""
    while length and len(body) < int(length[1]):
        body += sock.recv(int(length[1]) - len(body))
    return head + body


class CountingAdapter(DirectAdapter):
    """An adapter that appends the path of each call to a list."""

    def __init__(self, app: Flask, computed: list[str], surface: str) -> None:
        super().__init__(app, mounts(app)["noderpc"], surfaces()[surface])
        self._computed = computed

    def answer(
        self, sender: Sender, request: RequestHead, body: BinaryIO
    ) -> DirectResponse | None:
        found = super().answer(sender, request, body)
        if found is not None:
            self._computed.append(request.decoded_path)
        return found


@contextmanager
def serving(
    app: Flask,
    lane: ResponseCache | None,
    limits: Limits = LIMITS,
    *,
    proxies: int = 0,
    surface: str = "node",
) -> Iterator[Served]:
    """Serve an app, with a response cache or without, behind trusted proxies."""
    listener = gevent.socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    served = Served(listener.getsockname()[1])
    direct = CountingAdapter(app, served.computed, surface) if lane else None

    def counted(environ: dict[str, Any], start_response: Any) -> Any:
        served.computed.append(environ["PATH_INFO"])
        return app(environ, start_response)

    ready = threading.Event()
    ending: list[Callable[[], None]] = []

    def run() -> None:
        ended = gevent.get_hub().loop.async_()
        server = NodeServer(listener, counted, limits, lane, direct, proxies=proxies)
        server.start()
        ending.append(ended.send)
        ready.set()
        gevent.get_hub().wait(ended)
        server.stop(0)

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        yield served
    finally:
        ending[0]()
        thread.join()


def without_clocks(raw: bytes) -> bytes:
    return _CLOCKS.sub(rb"\r\n\1", raw)


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sample.PeeredBackend]:
    made = sample.backend(Path(tmp_path_factory.mktemp("chain")))
    yield made
    made.close()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_route_answers_byte_for_byte_as_without_caches(
    backend: sample.PeeredBackend, dialect: str
) -> None:
    guards: dict[str, Any] = {
        "dialect": dialect,
        "cors_origins": "https://page.example",
        "allowed_hosts": "localhost",
        "deny_methods": "tx",
    }
    headers = "Origin: https://page.example\r\n"
    with serving(app_for(backend, cache_bytes=0, **guards), None) as plain:
        expected = [without_clocks(one) for one in plain.ask(*PATHS, headers=headers)]
    with serving(app_for(backend, **guards), ResponseCache(ROOM)) as served:
        first, again = (served.ask(*PATHS, headers=headers) for _ in range(2))
    assert first[0].count(b"Access-Control-Allow-Origin") == 1
    for path, one, two, three in zip(PATHS, expected, first, again, strict=True):
        assert without_clocks(two.replace(_etag(two), b"")) == one, path
        assert without_clocks(three) == without_clocks(two), path
    kept = [path for path, received in zip(PATHS, first, strict=True) if _etag(received)]
    assert len(kept) > len(PATHS) / 2
    assert len(served.computed) == 2 * len(PATHS) - len(kept) - PATHS.count("/health")


def _etag(received: bytes) -> bytes:
    """Return the ETag line, which only cached responses have."""
    found = re.search(rb"\r\nETag: [^\r]*", received)
    return found[0] if found else b""


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    made = EmbeddedChain(tmp_path / "chain.db", clock=ManualClock(), produce=False, dev=True)
    made.start()
    yield made
    made.close()


def test_commits_of_another_process_invalidate_the_cache(chain: EmbeddedChain) -> None:
    other = make_store(chain.store.location.path)
    with serving(app_for(other), ResponseCache(ROOM)) as served:
        for number in range(1, 20):
            chain.mempool.submit(b"k%d=v" % number)
            height = chain.produce()
            for received in served.ask("/status", "/status"):
                assert b'"latest_block_height":"%d"' % height in received
        assert served.computed.count("/status") == 19
    other.close()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_at_each_new_head_every_route_answers_as_without_caches(
    chain: EmbeddedChain, dialect: str
) -> None:
    guards: dict[str, Any] = {"dialect": dialect, "allowed_hosts": "localhost"}
    lane = ResponseCache(ROOM)
    with (
        serving(app_for(chain, cache_bytes=0, **guards), None) as plain,
        serving(app_for(chain, **guards), lane) as served,
    ):
        for number in range(4):
            chain.mempool.submit(b"k%d=v" % number)
            chain.produce()
            expected = [without_clocks(received) for received in plain.ask(*PATHS)]
            for _ in range(2):
                for path, one, received in zip(
                    PATHS, expected, served.ask(*PATHS), strict=True
                ):
                    assert without_clocks(received.replace(_etag(received), b"")) == one, path


def test_a_cached_block_is_served_until_it_is_reverted(tmp_path: Path) -> None:
    made = opened(tmp_path / "chain.db")
    control = made.control
    before = control.snapshot()
    control.mine()
    with serving(app_for(made), ResponseCache(ROOM)) as served:
        (first,) = served.ask("/block?height=1")
        control.mine()
        (again,) = served.ask("/block?height=1")
        assert without_clocks(again) == without_clocks(first)
        assert len(served.computed) == 1
        control.revert(before)
        (gone,) = served.ask("/block?height=1")
        assert b'"error"' in gone
    made.close()


def test_other_headers_are_another_request(chain: EmbeddedChain) -> None:
    app = app_for(chain, allowed_hosts="localhost", read_origins="https://mine.example")
    with serving(app, ResponseCache(ROOM)) as served:
        served.ask("/health", "/health")
        (foreign,) = served.ask("/health", headers="Origin: https://other.example\r\n")
        assert b'"error"' in foreign
        with closing(socket.create_connection(("127.0.0.1", served.port))) as sock:
            refused = exchange(sock, get("/health").replace(b"localhost", b"evil.example"))
        assert refused.startswith(b"HTTP/1.1 403 ")


def test_if_none_match_returns_304(chain: EmbeddedChain) -> None:
    chain.mempool.submit(b"a=1")
    chain.produce()
    with serving(app_for(chain), ResponseCache(ROOM)) as served:
        (full,) = served.ask("/block?height=1")
        etag = re.search(rb'\r\nETag: ("\w+")\r\n', full)
        assert etag is not None
        known = f"If-None-Match: {etag[1].decode()}\r\n"
        first, again = served.ask("/block?height=1", "/block?height=1", headers=known)
        assert first.startswith(b"HTTP/1.1 304 ")
        assert without_clocks(again) == without_clocks(first)
        assert len(served.computed) == 2


def test_the_clocks_go_on(chain: EmbeddedChain, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(app_for(chain, dialect="comet-0.38"), ResponseCache(ROOM)) as served:
        served.ask("/health")
        monkeypatch.setattr("flask_noderpc.server.direct.time.time", lambda: 2_000_000_000.0)
        (later,) = served.ask("/health")
    assert b"\r\nDate: Wed, 18 May 2033 03:33:20 GMT\r\n" in later
    assert b"\r\nX-Server-Time: 2000000000\r\n" in later


def test_cached_calls_send_rpc_called(chain: EmbeddedChain) -> None:
    received: list[tuple[str, int, str]] = []

    def hear(_sender: object, method: str, outcome: int, transport: str, **_: object) -> None:
        received.append((method, outcome, transport))

    with serving(app_for(chain), ResponseCache(ROOM)) as served, rpc_called.connected_to(hear):
        served.ask("/health", "/health", "/genesis", "/genesis")
    assert received == [("health", 0, "get")] * 2 + [("genesis", 0, "get")] * 2


def post(body: str, headers: str = "", path: str = "/") -> bytes:
    length = len(body.encode())
    sent = f"{headers}Content-Length: {length}\r\n\r\n{body}"
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{sent}".encode()


def one(method: str, request_id: object = 1, params: object = ()) -> str:
    call = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return json.dumps(call, separators=(",", ":"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_that_differ_in_id_share_a_cache_entry(
    backend: sample.PeeredBackend, dialect: str
) -> None:
    ids = (1, 2, 345, "a-b", 0, 10**17, -5, 1.5, 10**19, "ü", 2)
    calls = [
        post(one(method, request_id, params))
        for method, params in (("block", {"height": "2"}), ("status", {}), ("health", {}))
        for request_id in ids
    ]

    def answers(lane: ResponseCache | None, room: int) -> tuple[list[bytes], int]:
        with (
            serving(app_for(backend, dialect=dialect, cache_bytes=room), lane) as served,
            closing(
                socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)
            ) as sock,
        ):
            found = [without_clocks(exchange(sock, call)) for call in calls]
            return found, len(served.computed)

    expected, _ = answers(None, 0)
    found, computed = answers(ResponseCache(ROOM), ROOM)
    assert found == expected
    # The first request of each length is computed, and four whose IDs are left to Flask.
    assert computed == 3 * (4 + 4)


@pytest.mark.parametrize(
    "body",
    [
        # The call's own ID can't be located without parsing these bodies.
        '{"jsonrpc":"2.0","method":"health","params":{"id":%d},"id":%d}',
        '{"jsonrpc":"2.0","method":"health","\\u0069d":%d,"params":{"x":%d}}',
        '[{"jsonrpc":"2.0","method":"health","id":%d},{"jsonrpc":"2.0","method":"x","id":%d}]',
        '{"jsonrpc":"2.0","method":"health","id":0%d,"x":%d}',
        # These responses may not be cached: a broadcast, and an error.
        '{"jsonrpc":"2.0","method":"broadcast_tx_sync","params":{"tx":"YT0x"},"x":%d,"id":%d}',
        '{"jsonrpc":"2.0","method":"block","params":{"height":"99"},"x":%d,"id":%d}',
    ],
)
def test_other_calls_are_read_each_time(chain: EmbeddedChain, body: str) -> None:
    with (
        serving(app_for(chain), ResponseCache(ROOM)) as served,
        closing(socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)) as sock,
    ):
        for number in range(3):
            exchange(sock, post(body % (number, number)))
        assert len(served.computed) == 3


def test_a_body_may_come_later_and_requests_at_once(chain: EmbeddedChain) -> None:
    with (
        serving(app_for(chain), ResponseCache(ROOM)) as served,
        closing(socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)) as sock,
    ):
        exchange(sock, post(one("health", 1)))
        exchange(sock, post(one("health", 10)))
        sock.sendall(post(one("health", 2)) + post(one("health", 33)))
        assert [answer(sock).partition(b"\r\n\r\n")[2][:23] for _ in range(2)] == [
            b'{"jsonrpc":"2.0","id":2',
            b'{"jsonrpc":"2.0","id":3',
        ]
        head, end, body = post(one("health", 4)).partition(b"\r\n\r\n")
        sock.sendall(head + end)
        sock.sendall(body)
        assert b'"id":4' in answer(sock)


def test_responses_of_the_evm_layer_are_cached_too(tmp_path: Path) -> None:
    made = opened(tmp_path / "chain.db")
    app = app_for(made, json_rpc_enable=True)
    head = "Content-Type: application/json\r\n"
    with (
        serving(app, ResponseCache(ROOM)) as served,
        closing(socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)) as sock,
    ):

        def ask(request_id: int, method: str, *params: object) -> bytes:
            request = post(one(method, request_id, params), head, "/evm")
            return without_clocks(exchange(sock, request))

        for turn in range(3):
            height = made.control.mine() and made.reads.latest_height()
            for request_id in (1, 2):
                received = ask(request_id, "eth_blockNumber")
                assert received.endswith(
                    b'{"jsonrpc":"2.0","id":%d,"result":"%#x"}' % (request_id, height)
                )
            assert served.computed.count("/evm") == turn + 1
        first = ask(7, "eth_getBlockByNumber", "0x1", True)
        assert ask(8, "eth_getBlockByNumber", "0x1", True) == first.replace(
            b'"id":7', b'"id":8'
        )
        assert len(served.computed) == 4
    made.close()


def test_compressed_responses_are_cached_for_every_id(
    backend: sample.PeeredBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "MIN_BYTES", 300)
    remote = "Accept-Encoding: gzip\r\nX-Forwarded-For: 192.0.2.7\r\n"
    bodies = [one("block", request_id, {"height": "2"}) for request_id in (1, 2, "ab", "cd", 3)]
    with (
        serving(app_for(backend), ResponseCache(ROOM)) as plain,
        serving(app_for(backend), ResponseCache(ROOM), proxies=1) as compressing,
    ):
        for body in bodies:
            with closing(
                socket.create_connection(("127.0.0.1", compressing.port), timeout=PATIENCE)
            ) as sock:
                head, _, found = exchange(sock, post(body, remote)).partition(b"\r\n\r\n")
            with closing(
                socket.create_connection(("127.0.0.1", plain.port), timeout=PATIENCE)
            ) as sock:
                expected = exchange(sock, post(body)).partition(b"\r\n\r\n")[2]
            assert b"Content-Encoding: gzip" in head
            assert gzip.decompress(found) == expected
            assert json.loads(expected)["id"] == json.loads(body)["id"]
        # One request has numbers of one digit, and one has names of two characters.
        assert len(compressing.computed) == 2


def test_requests_may_come_at_once_and_in_pieces(chain: EmbeddedChain) -> None:
    with (
        serving(app_for(chain), ResponseCache(ROOM)) as served,
        closing(socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)) as sock,
    ):
        first = without_clocks(exchange(sock, get("/health")))
        sock.sendall(get("/health") * 3)
        assert [without_clocks(answer(sock)) for _ in range(3)] == [first] * 3
        for byte in get("/health"):
            sock.sendall(bytes([byte]))
        assert b'"result":{}' in answer(sock)


@pytest.mark.parametrize("sent", [b"Transfer-Encoding: chunked", b"Content-Length: 4"])
def test_a_get_with_a_body_is_read_to_its_end_each_time(
    chain: EmbeddedChain, sent: bytes
) -> None:
    body = b"1\r\na\r\n0\r\n\r\n" if b"chunked" in sent else b"abcd"
    request = get("/health").replace(b"\r\n\r\n", b"\r\n" + sent + b"\r\n\r\n") + body
    with (
        serving(app_for(chain), ResponseCache(ROOM)) as served,
        closing(socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)) as sock,
    ):
        for _ in range(3):
            assert exchange(sock, request).startswith(b"HTTP/1.1 200 ")
        assert len(served.computed) == 3


@pytest.mark.parametrize(
    "first",
    [
        b"GET /health HTTP/1.1\nHost: localhost\n\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\n\n",
        b"POST / HTTP/1.1\nHost: localhost\nContent-Length: 42\n\n"
        b'{"jsonrpc":"2.0","method":"health","id":1}',
    ],
)
def test_a_request_may_end_without_a_carriage_return(
    chain: EmbeddedChain, first: bytes
) -> None:
    # The bytes after it are another request, regardless of their length and ID.
    second = post('{"id":1}')
    with (
        serving(app_for(chain), ResponseCache(ROOM)) as served,
        closing(socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)) as sock,
    ):
        for _ in range(3):
            sock.sendall(first + second)
            assert answer(sock).endswith(b'"result":{}}')
            assert answer(sock).startswith(b"HTTP/1.1 400 ")


def test_expect_100_continue_is_answered_each_time(chain: EmbeddedChain) -> None:
    asked = post(one("health"), "Expect: 100-continue\r\n")
    with (
        serving(app_for(chain), ResponseCache(ROOM)) as served,
        closing(socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)) as sock,
    ):
        for _ in range(3):
            assert exchange(sock, asked) == b"HTTP/1.1 100 Continue\r\n\r\n"
            assert answer(sock).startswith(b"HTTP/1.1 200 ")


def test_a_longer_id_may_make_a_body_too_long(chain: EmbeddedChain) -> None:
    longest = len(one("health", 12))
    with (
        serving(app_for(chain, max_body_bytes=longest), ResponseCache(ROOM)) as served,
        closing(socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)) as sock,
    ):
        for request_id in (12, 34):
            assert b'"result"' in exchange(sock, post(one("health", request_id)))
        assert exchange(sock, post(one("health", 123))).startswith(b"HTTP/1.1 413 ")


def test_a_client_that_disconnects_early_logs_no_error(
    chain: EmbeddedChain, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(app_for(chain), ResponseCache(ROOM)) as served:
        served.ask("/health")
        for _ in range(50):
            with closing(socket.create_connection(("127.0.0.1", served.port))) as sock:
                sock.sendall(get("/health") * 100)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        served.ask("/health")
        assert len(served.computed) == 1
    assert capfd.readouterr().err == ""


def test_streamed_responses_are_not_buffered(chain: EmbeddedChain) -> None:
    app = app_for(chain)
    app.add_url_rule("/long", view_func=lambda: Response(bytes(100_000) for _ in range(200)))
    with (
        serving(app, ResponseCache(ROOM)) as served,
        closing(socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)) as sock,
    ):
        tracemalloc.start()
        try:
            sock.sendall(get("/long", "Connection: close\r\n"))
            size = sum(iter(lambda: len(sock.recv(65_536)), 0))
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert size > 20_000_000 > 4 * most


def test_a_connection_with_a_pending_lookup_is_not_evicted(
    chain: EmbeddedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.mempool.submit(b"a=1")
    chain.produce()
    looking, may_go_on = threading.Event(), threading.Event()
    version = chain.reads.version

    def slow() -> Any:
        looking.set()
        with gevent.Timeout(PATIENCE):
            while not may_go_on.is_set():
                gevent.sleep(0.01)
        return version()

    with serving(app_for(chain), ResponseCache(ROOM), Limits(connections=1)) as served:
        with closing(
            socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)
        ) as sock:
            first = exchange(sock, get("/status"))
            monkeypatch.setattr(chain.reads, "version", slow)
            sock.sendall(get("/status"))
            assert looking.wait(PATIENCE)
            with closing(socket.create_connection(("127.0.0.1", served.port))) as other:
                assert other.recv(12) == b"HTTP/1.1 503"
            may_go_on.set()
            assert without_clocks(answer(sock)) == without_clocks(first)
        assert len(served.computed) == 1


def test_connection_close_is_honoured_on_cache_hits(chain: EmbeddedChain) -> None:
    with serving(app_for(chain), ResponseCache(ROOM)) as served:
        for _ in range(2):
            with closing(
                socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)
            ) as s:
                s.sendall(get("/health", "Connection: close\r\n"))
                found = HTTPResponse(s)
                found.begin()
                assert found.read()
                assert s.recv(1) == b""


def test_the_cache_is_bounded_by_bytes(chain: EmbeddedChain) -> None:
    lane = ResponseCache(20_000)
    with serving(app_for(chain), lane) as served:
        paths = [f"/health?x={number}" for number in range(100)]
        served.ask(*paths, *paths[-5:], *paths[:5])
        assert len(served.computed) == 105
