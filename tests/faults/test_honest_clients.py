"""Measure the latency of an honest client during attacks; ``.ci/long`` prints the figures."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from ..abuse.attacks import (
    BLANKS,
    FLOODS,
    HEAVY,
    TINY_CHUNKS,
    TRAILERS,
    UNREAD_BODY,
    Attack,
    requests,
    timed_health,
    under,
    websockets,
)
from ..helpers.raw_http import CLOSING, GET, answers, connect
from ..helpers.until import PATIENCE
from ..server.node_process import Node, started
from .processes import is_long

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(not is_long(), reason="measures: NODERPC_CAMPAIGN=long"),
]
SECONDS = 5.0
REQUESTS = {
    "trailers": TRAILERS,
    "chunks of a byte": TINY_CHUNKS,
    "a body that is never read": UNREAD_BODY,
}
AIM_S, WEBSOCKET_AIM_S = 0.1, 0.05
# The address of the attackers, and the default limit for other machines.
HOG, PER_CLIENT = "127.0.0.2", "256"
NEW_AIM_S = 0.1
READ = GET.replace(b"/health", b"/status")
CROWDS = {
    "900 connections that call and reconnect at once": (900, READ),
    "300 clients that never read": (300, READ * 50),
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with started(tmp_path_factory.mktemp("node")) as found:
        found.until_up()
        yield found


def p99(node: Node, name: str, *attacks: Attack) -> float:
    with under(*attacks):
        until = time.monotonic() + SECONDS
        took = sorted(timed_health(node, lambda: time.monotonic() > until))
    half, most = (took[int(share * len(took))] for share in (0.5, 0.99))
    opened = sum(attack.connections for attack in attacks)
    print(
        f"\n{name}: {len(took)} answers, half within {1000 * half:.1f} ms, 99 % within"
        f" {1000 * most:.1f} ms, the slowest {1000 * took[-1]:.0f} ms; {opened} connections"
        " of attackers"
    )
    return most


@pytest.mark.parametrize("name", REQUESTS)
def test_beside_a_request_without_end(node: Node, name: str) -> None:
    first, again = REQUESTS[name]
    assert p99(node, name, Attack(requests(node, first), again)) < AIM_S


@pytest.fixture(scope="module")
def evm_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with started(tmp_path_factory.mktemp("evm"), "--dev") as found:
        found.until_up()
        p99(found, "control")
        yield found


@pytest.mark.parametrize("name", HEAVY)
def test_beside_heavy_requests_one_after_the_other(evm_node: Node, name: str) -> None:
    attack = Attack(requests(evm_node, b"", "EVM JSON-RPC"), HEAVY[name])
    assert p99(evm_node, name, attack) < AIM_S


def test_beside_headers_of_blanks(evm_node: Node) -> None:
    attack = Attack(requests(evm_node, b""), BLANKS)
    assert p99(evm_node, "60 kB of blanks", attack) < AIM_S


@pytest.mark.parametrize("name", FLOODS)
def test_beside_five_websockets_that_flood(node: Node, name: str) -> None:
    first, again = FLOODS[name]
    attacks = [Attack(websockets(node, first), again) for _ in range(5)]
    assert p99(node, name, *attacks) < WEBSOCKET_AIM_S


@contextmanager
def crowd(node: Node, count: int, sent: bytes) -> Iterator[None]:
    """Open connections from one address in a separate process; each sends again after a
    response, and is reopened when it is closed."""
    # Threads would take time from this process.
    context = get_context("spawn")
    is_there = context.Event()
    process = context.Process(target=_press, args=(node.url(), count, sent, is_there))
    process.start()
    assert is_there.wait(PATIENCE)
    try:
        yield
    finally:
        process.terminate()
        process.join(PATIENCE)


def _press(url: str, count: int, sent: bytes, is_there: Event) -> None:
    reads = len(sent) == len(READ)
    poller = select.poll()
    socks: dict[int, socket.socket] = {}
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        while len(socks) < count:
            with suppress(OSError):
                sock = connect(url, HOG)
                sock.setblocking(False)
                socks[sock.fileno()] = sock
                poller.register(sock, select.POLLIN if reads else select.POLLOUT)
                sock.send(sent)
        is_there.set()
        for number, _ in poller.poll(100):
            try:
                if reads and not socks[number].recv(65_536):
                    raise ConnectionResetError
                socks[number].send(sent)
            except BlockingIOError:
                continue
            except OSError:
                poller.unregister(number)
                socks.pop(number).close()


def new_connections(node: Node, name: str) -> float:
    """Return how long a client waits that opens a connection for each call."""
    took: list[float] = []
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        began = time.monotonic()
        assert answers(node, CLOSING) == [200]
        took.append(time.monotonic() - began)
    took.sort()
    half, most = (took[int(share * len(took))] for share in (0.5, 0.99))
    print(
        f"\n{name}: {len(took)} new connections, half answered within {1000 * half:.1f} ms,"
        f" 99 % within {1000 * most:.1f} ms, the slowest {1000 * took[-1]:.0f} ms"
    )
    return most


@pytest.mark.parametrize("name", CROWDS)
def test_new_connections_beside_a_crowd_of_one_address(tmp_path: Path, name: str) -> None:
    with started(tmp_path, "--max-connections-per-client", PER_CLIENT) as node:
        node.until_up()
        new_connections(node, "control")
        with crowd(node, *CROWDS[name]):
            assert new_connections(node, name) < NEW_AIM_S
