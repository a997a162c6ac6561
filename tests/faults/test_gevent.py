"""Tests of a chain under gevent: writes wait on a native thread, and the hub continues."""

from __future__ import annotations

import base64
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.helpers.until import PATIENCE

from ..helpers.websocket import WebSocketClient
from .processes import opened
from .servers import Server, serving

LOCKED_S = 0.6


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "chain.db"


@pytest.fixture
def node(database: Path) -> Iterator[Server]:
    with serving("pywsgi", database) as server:
        yield server
        assert server.stop() == 0
    assert server.log() == ""


def test_transactions_are_committed_while_others_read(node: Server, database: Path) -> None:
    heights: list[int] = []
    statuses: list[object] = []

    def send(name: int) -> None:
        for number in range(5):
            tx = f'"key{name}.{number}=value"'
            heights.append(int(node.get(f"/broadcast_tx_commit?tx={tx}")["height"]))

    def read() -> None:
        statuses.extend(node.get("/status") for _ in range(20))

    run_together(
        [*(threading.Thread(target=send, args=(name,)) for name in range(4))],
        [threading.Thread(target=read) for _ in range(3)],
    )
    verified = node.get("/check")
    assert node.stop() == 0

    assert len(heights) == 20
    assert min(heights) > 0
    assert len(statuses) == 60
    with opened(database) as backend, opened(Path(f"{database}.copy")) as copy:
        assert verified == backend.verify() == copy.verify() >= max(heights)


def run_together(*groups: list[threading.Thread]) -> None:
    threads = [thread for group in groups for thread in group]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)


def test_a_held_write_lock_does_not_stop_the_hub(node: Server, database: Path) -> None:
    # The first call that reads the store opens it.
    node.get("/status")
    codes: list[int] = []
    sender = threading.Thread(
        target=lambda: codes.append(int(node.get('/broadcast_tx_sync?tx="late=one"')["code"]))
    )
    with closing(sqlite3.connect(database, timeout=PATIENCE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        sender.start()
        for _ in range(6):
            node.get("/health")
            node.get("/status")
        assert sender.is_alive()
        other.execute("ROLLBACK")
    sender.join(PATIENCE)

    assert codes == [0]


def test_events_reach_subscribers_that_read_slowly_and_those_that_read(
    node: Server,
) -> None:
    slow, quick = (
        WebSocketClient(node.url, timeout=PATIENCE),
        WebSocketClient(node.url, timeout=PATIENCE),
    )
    with closing(slow), closing(quick):
        for client in (slow, quick):
            client.asked("subscribe", {"query": "tm.event='Tx'"})
        for number in range(8):
            # An event is half a megabyte: more than the socket's buffer, and less than the
            # server's.
            tx = base64.b64encode(b"key%d=" % number + b"x" * 100_000).decode()
            quick.call("broadcast_tx_sync", {"tx": tx}, "sent")

        for client in (quick, slow):
            received: list[str] = []
            while len(received) < 8:
                message = client.json()
                if message["id"] != "sent":
                    events = message["result"]["events"]
                    received.append(events["app.key"][0])
            assert received == [f"key{number}" for number in range(8)]
