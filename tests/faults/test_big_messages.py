"""Tests that 20 MB reach a client that reads late, and that two writers never interleave."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.testing.chains import ChainMaker

from ..helpers.until import PATIENCE
from ..helpers.websocket import WebSocketClient
from .processes import is_long
from .servers import SOME, Server, serving

ASLEEP_S = 5.0 if is_long() else 1.0
TXS = [b"key%d=" % number + b"x" * 1_000_000 for number in range(15)]


@pytest.fixture(params=SOME)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    database = tmp_path / "chain.db"
    maker = ChainMaker()
    with closing(SQLiteBackend(database)) as backend:
        backend.init_chain(maker.genesis, maker.state)
        backend.append_block(maker.block(*TXS))
    with serving(request.param, database, produce=False) as running:
        yield running
        assert "Traceback" not in running.log()


def test_twenty_megabytes_reach_a_reader_that_sleeps(server: Server) -> None:
    with closing(WebSocketClient(server.url, timeout=PATIENCE)) as client:
        client.call("block", {"height": "1"})
        threading.Event().wait(ASLEEP_S)
        text = client.read()

    assert text is not None
    assert len(text) > 20_000_000
    block = json.loads(text)["result"]["block"]
    assert [base64.b64decode(tx) for tx in block["data"]] == TXS


@pytest.mark.parametrize("kind", SOME)
def test_events_and_replies_on_one_connection_never_interleave(
    kind: str, tmp_path: Path
) -> None:
    count = 12 if is_long() else 6
    with (
        serving(kind, tmp_path / "chain.db", block_interval=0.001) as server,
        closing(WebSocketClient(server.url, timeout=PATIENCE)) as client,
    ):
        server.get("/broadcast_tx_commit?tx=0x613d31")
        client.asked("subscribe", {"query": "tm.event='Tx'"}, "event")
        sender = threading.Thread(target=send, args=(client, count))
        sender.start()
        # Each message is complete, or it would not be valid JSON.
        received = [client.json() for _ in range(count * 4)]
        sender.join()

    keys = [one["result"]["events"]["app.key"][0] for one in received if one["id"] == "event"]
    assert keys == [f"key{number}" for number in range(count)]
    assert [one["error"] for one in received if one.get("error")] == []


def send(client: WebSocketClient, count: int) -> None:
    """Send transactions, and calls whose responses are as large as their events."""
    for number in range(count):
        tx = b"key%d=" % number + b"x" * 300_000
        client.call("broadcast_tx_sync", {"tx": base64.b64encode(tx).decode()}, "reply")
        client.call("genesis", request_id="reply")
        client.call("block", request_id="reply")
