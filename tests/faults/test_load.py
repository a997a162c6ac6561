"""Tests that killed clients, or one that never reads, cause no delay for others and no leak."""

from __future__ import annotations

import base64
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from ..helpers.until import PATIENCE, until
from ..helpers.websocket import WebSocketClient
from .processes import check_duration, is_long
from .servers import SOME, Server, serving

KILLED = 1000 if is_long() else 200
WRITE_S = 1.0
# Seconds from sending a transaction to its event; without a delay it is a fraction of a second.
DELAY_S = 10.0

ALL_TXS = {"query": "tm.event='Tx'"}


@pytest.fixture(params=SOME)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    with serving(
        request.param,
        tmp_path / "chain.db",
        {"write_s": WRITE_S},
        max_subscription_clients=2000,
        max_open_connections=2000,
        max_body_bytes=4_000_000,
        event_buffer=20,
    ) as running:
        yield running
        assert "Traceback" not in running.log()


def encoded(tx: bytes) -> str:
    return base64.b64encode(tx).decode()


class Watcher:
    """A subscriber that sends transactions and notes the delay of each one's event."""

    def __init__(self, server: Server) -> None:
        self.delays: list[float] = []
        self._client = WebSocketClient(server.url, timeout=PATIENCE)
        self._client.asked("subscribe", {"query": "app.key='watched'"}, "event")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(0.02):
            began = time.monotonic()
            tx = b"watched=%d" % len(self.delays)
            self._client.call("broadcast_tx_sync", {"tx": encoded(tx)}, "reply")
            # Each transaction causes one event, so none may be missing.
            received = [self._client.json() for _ in range(2)]
            (event,) = (one for one in received if one["id"] == "event")
            assert event["result"]["events"]["app.key"][1] == str(len(self.delays))
            self.delays.append(time.monotonic() - began)

    def stop(self) -> float:
        """Stop, and return the longest delay."""
        self._stopping.set()
        self._thread.join(PATIENCE)
        self._client.close()
        assert not self._thread.is_alive()
        assert self.delays
        return max(self.delays)


def kill(client: WebSocketClient) -> None:
    """Reset the connection, so that the peer's next read or write fails."""
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def test_many_clients_killed_at_once_leak_nothing(server: Server) -> None:
    if server.kind == "gthread":
        pytest.skip("its pool keeps its threads")
    with closing(WebSocketClient(server.url, timeout=PATIENCE)) as first:
        first.asked("subscribe", ALL_TXS)
        before = server.census()
    watcher = Watcher(server)
    crowds = []
    for _ in range(2):
        clients = [WebSocketClient(server.url, timeout=PATIENCE) for _ in range(KILLED)]
        for client in clients:
            client.asked("subscribe", ALL_TXS)
        crowds.append(server.census())
        for client in clients:
            kill(client)
        until(lambda: server.census()["sockets"] < before["sockets"] + 10, "sockets are closed")
        crowds.append(server.census())
    delay = watcher.stop()

    def is_as_before() -> bool:
        now = server.census()
        # SQLite opens three files for a new thread.
        return now["sockets"] < before["sockets"] and now["files"] < before["files"] + 6

    until(is_as_before, "files are what they were")
    until(lambda: server.census()["tasks"] <= before["tasks"] + 2, "so are tasks")
    after = server.census()

    print(f"{before}\n{crowds}\n{after}\n{delay:.2f} s in {len(watcher.delays)}")
    check_duration(delay, DELAY_S)
    # The second crowd reuses what the first one released.
    grown = after["memory_kb"] - crowds[1]["memory_kb"]
    assert grown < 5_000 + KILLED * 4


def test_a_non_reading_subscriber_is_closed_and_delays_no_other(server: Server) -> None:
    deaf, sender = (WebSocketClient(server.url, timeout=PATIENCE) for _ in range(2))
    watcher = Watcher(server)
    with closing(deaf), closing(sender):
        deaf.asked("subscribe", ALL_TXS)
        sockets = server.census()["sockets"]
        numbers = count()

        def is_closed() -> bool:
            tx = encoded(b"big%d=" % next(numbers) + b"x" * 900_000)
            sender.asked("broadcast_tx_sync", {"tx": tx})
            return server.census()["sockets"] < sockets

        until(is_closed, "the deaf one's socket is closed")
        delay = watcher.stop()

    print(f"{delay:.2f} s in {len(watcher.delays)}")
    check_duration(delay, DELAY_S)
