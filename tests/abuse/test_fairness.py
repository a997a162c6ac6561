"""Tests that neither many clients nor greedy ones keep ``noderpc start`` from serving
others."""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

from ..faults.processes import is_long
from ..helpers.http import request
from ..helpers.raw_http import CLOSING, GET, UNFINISHED, answers, connect, exchange, send
from ..helpers.until import PATIENCE, until
from ..helpers.websocket import WebSocketClient
from ..server.certificate import make_certificate
from ..server.node_process import Node, client_seconds, started

CROWD = 900 if is_long() else 60
# Longer than a test takes, so no deadline can make room.
SLOW = client_seconds(600, idle=600)
SHAKE = (
    b"GET /websocket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
HOG, GUEST = "127.0.0.2", "127.0.0.3"


@contextmanager
def crowded(folder: Path, *flags: str) -> Iterator[Node]:
    with started(folder, "--max-open-connections", str(CROWD), *flags, limits=SLOW) as node:
        node.until_up()
        yield node
        assert "Traceback" not in node.log.read_text()


@pytest.mark.parametrize("request_", UNFINISHED.values(), ids=UNFINISHED)
def test_slow_requests_do_not_block_new_connections(tmp_path: Path, request_: bytes) -> None:
    with crowded(tmp_path) as node, ExitStack() as stack:
        socks = [stack.enter_context(send(node, request_)) for _ in range(CROWD)]
        for _ in range(3):
            until(lambda: answers(node, CLOSING) == [200], "an answer")
        # A connection that the server has kept must still get its response.
        socks[-1].sendall(GET[-10:])
        if request_ == GET[:-10]:
            assert socks[-1].recv(12) == b"HTTP/1.1 200"


def test_slowly_sent_headers_do_not_hold_a_connection(tmp_path: Path) -> None:
    with crowded(tmp_path) as node, ExitStack() as stack:
        socks = [stack.enter_context(send(node, GET[:-10])) for _ in range(CROWD)]

        def answered() -> bool:
            for sock in socks:
                with suppress(OSError):
                    sock.send(b"a")
            return answers(node, CLOSING) == [200]

        until(answered, "an answer")


def test_non_reading_clients_do_not_block_new_connections(tmp_path: Path) -> None:
    with crowded(tmp_path, "--max-open-connections", "20") as node, ExitStack() as stack:
        for _ in range(20):
            sock = stack.enter_context(connect(node.url()))
            sock.setblocking(False)
            with suppress(OSError):
                for _ in range(100):
                    sock.send(GET.replace(b"/health", b"/openapi.json") * 10)
        until(lambda: answers(node, CLOSING) == [200], "an answer")


def test_silent_tls_clients_do_not_block_new_connections(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=certificate)
    flags = ("--rpc.tls_cert_file", certificate, "--rpc.tls_key_file", key)
    with (
        started(tmp_path, "--max-open-connections", "20", *flags, limits=SLOW) as node,
        ExitStack() as stack,
    ):

        def answered() -> bool:
            with suppress(OSError):
                return request(node.url() + "/health", tls=trusting).status == 200
            return False

        until(answered, "an answer over TLS")
        for _ in range(30):
            stack.enter_context(connect(node.url()))
        until(answered, "an answer between them")


def test_requests_are_served_at_the_websocket_and_waiter_limits(tmp_path: Path) -> None:
    many = max(CROWD // 10, 10)
    flags = ("--max-waiting-calls", str(many))
    blocks = ("--empty-blocks", "--block-interval", "1000", "--broadcast-timeout", "600")
    with (
        crowded(tmp_path, *flags, *blocks) as node,
        ExitStack() as stack,
    ):
        clients = [
            stack.enter_context(closing(WebSocketClient(node.url(), timeout=PATIENCE)))
            for _ in range(CROWD)
        ]
        for number in range(many):
            path = b'/broadcast_tx_commit?tx="a%d=1"' % number
            stack.enter_context(send(node, GET.replace(b"/health", path)))
        until(lambda: node.get("/num_unconfirmed_txs")["total"] == str(many), "all of them")

        assert answers(node, CLOSING) == [200]
        refused = exchange(node, SHAKE + CLOSING)
        assert refused.startswith("HTTP/1.1 503 ")
        assert f"{CROWD} websockets are open, the maximum; raise" in refused
        # A closed connection makes room for another one.
        clients[0].close()

        def connects() -> bool:
            with suppress(ConnectionRefusedError):
                WebSocketClient(node.url(), timeout=PATIENCE).close()
                return True
            return False

        until(connects, "a place")
        assert node.end() == 0


def test_a_client_at_its_connection_limit_evicts_its_idle_connection(
    tmp_path: Path,
) -> None:
    with crowded(tmp_path, "--max-connections-per-client", "3") as node, ExitStack() as stack:
        idle = stack.enter_context(connect(node.url(), HOG))
        for _ in range(2):
            stack.enter_context(
                closing(WebSocketClient(node.url(), timeout=PATIENCE, source=HOG))
            )
        # The idle connection was closed, and its place became a websocket's.
        stack.enter_context(closing(WebSocketClient(node.url(), timeout=PATIENCE, source=HOG)))
        assert idle.recv(1) == b""

        refused = exchange(node, CLOSING, HOG)
        assert refused.startswith("HTTP/1.1 503 ")
        assert "raise NODERPC_MAX_CONNECTIONS_PER_CLIENT" in refused
        assert answers(node, CLOSING, GUEST) == [200]


def test_connections_of_proxies_and_of_this_system_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "node.sock"
    addresses = f"tcp://127.0.0.1:0,unix://{path}"
    flags = ("--rpc.laddr", addresses, "--max-connections-per-client", "1")
    with crowded(tmp_path, *flags) as node, ExitStack() as stack:
        stack.enter_context(closing(WebSocketClient(node.url(), timeout=PATIENCE)))
        assert answers(node, CLOSING) == [503]
        socks = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(3)]
        for sock in socks:
            sock.connect(str(path))
            sock.sendall(GET)
            assert sock.recv(12) == b"HTTP/1.1 200"
    (tmp_path / "other").mkdir()
    with (
        crowded(tmp_path / "other", *flags[2:], "--trusted-proxies", "1") as node,
        closing(WebSocketClient(node.url(), timeout=PATIENCE)),
    ):
        assert answers(node, CLOSING) == [200]


def test_behind_a_proxy_a_client_is_its_forwarded_address(tmp_path: Path) -> None:
    flags = ("--trusted-proxies", "1", "--max-connections-per-client", "1")

    def named(client: str) -> WebSocketClient:
        headers = {"X-Forwarded-For": client}
        return WebSocketClient(node.url(), timeout=PATIENCE, headers=headers)

    with crowded(tmp_path, *flags) as node, closing(named("2001:db8::1")):
        with pytest.raises(ConnectionRefusedError, match="503"):
            named("2001:db8::2")
        named("2001:db8:0:1::1").close()
        named("10.0.0.1").close()


def test_without_a_setting_a_forwarded_client_may_have_256_websockets(tmp_path: Path) -> None:
    def named(client: str) -> WebSocketClient:
        headers = {"X-Forwarded-For": client}
        return WebSocketClient(node.url(), timeout=PATIENCE, headers=headers)

    with started(tmp_path, "--trusted-proxies", "1") as node, ExitStack() as stack:
        node.until_up()
        for client in ("192.0.2.1", "127.0.0.1"):
            for _ in range(256):
                stack.enter_context(closing(named(client)))
        with pytest.raises(ConnectionRefusedError, match="503"):
            named("192.0.2.1")
        named("192.0.2.2").close()
        # A client on this machine has no limit.
        named("127.0.0.1").close()


def test_a_client_with_many_requests_at_once_lets_others_in_between(tmp_path: Path) -> None:
    many = 200
    flags = ("--workers", "1", "--max-connections-per-client", str(many), "--log-calls")
    with started(tmp_path, *flags) as node, ExitStack() as stack:
        node.until_up()

        def callers() -> list[str]:
            return re.findall(r"client=(127\.0\.0\.[23])\n", node.log.read_text())

        hogs = [stack.enter_context(connect(node.url(), HOG)) for _ in range(many)]
        for sock in hogs:
            sock.sendall(GET)
            assert sock.recv(12) == b"HTTP/1.1 200"
        (worker,) = node.children()
        os.kill(worker, signal.SIGSTOP)
        guest = stack.enter_context(connect(node.url(), GUEST))
        for sock in (*hogs, guest):
            sock.sendall(GET)
        os.kill(worker, signal.SIGCONT)
        until(lambda: len(callers()) == 2 * many + 1, "the lines of all calls")
        assert callers()[many:].index(GUEST) < many // 5
