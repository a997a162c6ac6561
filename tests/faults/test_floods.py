"""Tests of a client that floods: memory is bounded, others are served, nothing is lost."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from ..helpers.until import PATIENCE
from ..helpers.websocket import WebSocketClient
from .processes import check_duration, is_long
from .servers import SOME, Server, serving

FLOOD_S = 10.0 if is_long() else 0.5
BLOCK_S = 2.0

# Memory in kB that one flooding client may cost, and seconds that other clients may wait for a
# response on a busy machine.
MEMORY_KB = 20_000
DELAY_S = 1.0

FLOODS = {
    "pings": b"\x89\xfd\0\0\0\0" + b"p" * 125,
    "small pings": b"\x89\x80\0\0\0\0",
    "pongs": b"\x8a\x80\0\0\0\0",
    "parts": b"\x00\x81\0\0\0\0 ",
    "empty parts": b"\x00\x80\0\0\0\0",
    "notifications": b"\x81\x93\0\0\0\0" + b'{"method":"health"}',
    "calls": b"\x81\x9a\0\0\0\0" + b'{"method":"status","id":1}',
    "one long frame": b" " * 4096,
}
BEGINNINGS = {
    "parts": b"\x01\x81\0\0\0\0 ",
    "empty parts": b"\x01\x81\0\0\0\0 ",
    # A frame of 2^62 bytes.
    "one long frame": b"\x81\xff\x40\0\0\0\0\0\0\0\0\0\0\0",
}


@pytest.fixture(scope="module", params=SOME)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    database = tmp_path_factory.mktemp(request.param) / "chain.db"
    with serving(request.param, database, block_interval=BLOCK_S) as running:
        yield running
        assert "Traceback" not in running.log()


def flood(client: WebSocketClient, frame: bytes, until: float) -> int:
    """Send without reading; return the number of bytes that were accepted."""
    many = frame * (200_000 // len(frame))
    sent = 0
    client.sock.settimeout(0.05)
    while time.monotonic() < until:
        try:
            sent += client.sock.send(many[sent % len(frame) :])
        except TimeoutError:
            continue
        except ConnectionError:
            break
    return sent


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_costs_little_and_does_not_slow_other_clients(
    server: Server, name: str
) -> None:
    flooding, other = (WebSocketClient(server.url, timeout=PATIENCE) for _ in range(2))
    with closing(flooding), closing(other):
        flooding.raw(BEGINNINGS.get(name, b""))
        before = server.census()["memory_kb"]
        until = time.monotonic() + FLOOD_S
        thread = threading.Thread(target=flood, args=(flooding, FLOODS[name], until))
        thread.start()
        delays: list[float] = []
        while not delays or time.monotonic() < until:
            began = time.monotonic()
            assert other.asked("health")["result"] == {}
            delays.append(time.monotonic() - began)
        after = server.census()["memory_kb"]
        thread.join()

    print(f"{name}: {len(delays)} answers, {max(delays):.2f} s, {after - before} kB")
    check_duration(max(delays), DELAY_S)
    assert after - before < MEMORY_KB


def test_a_flood_behind_a_call_that_waits_is_answered_in_order(server: Server) -> None:
    call = json.dumps({"id": "waits", "method": "broadcast_tx_commit", "params": {"tx": "{}"}})
    frame = b"\x81\x9a\0\0\0\0" + b'{"method":"health","id":7}'
    with closing(WebSocketClient(server.url, timeout=PATIENCE)) as client:
        # The first block makes the second one wait for a whole interval.
        for number in range(2):
            tx = base64.b64encode(b"%f=%d" % (time.time(), number)).decode()
            client.text(call.replace("{}", tx))
        client.json()
        before = server.census()["memory_kb"]
        sent = flood(client, frame, time.monotonic() + BLOCK_S / 2)
        grown = server.census()["memory_kb"] - before
        client.sock.settimeout(PATIENCE)
        client.raw(frame[sent % len(frame) :])

        assert client.json()["id"] == "waits"
        # Read only a part, as the rest in the sockets' buffers would take a while.
        expected = min(sent // len(frame), 1000)
        assert [client.json()["id"] for _ in range(expected)] == [7] * expected
        client.sock.shutdown(socket.SHUT_RDWR)

    assert expected == 1000
    assert grown < MEMORY_KB
