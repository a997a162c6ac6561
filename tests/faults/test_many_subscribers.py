"""Tests of blocks of any size with many subscribers, one of which stalls: no other is
cancelled."""

from __future__ import annotations

import re
import selectors
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from flask_noderpc.chain.embedded import EmbeddedChain

from ..helpers.until import PATIENCE
from ..helpers.websocket import WebSocketClient
from .processes import is_long
from .servers import SOME, Server, serving

SUBSCRIBERS = 500 if is_long() else 50
BLOCKS = (1, 201, 2000)
# Seconds from the block to the last event that the last subscriber has read.
DELAY_S = 120.0
TOLD = re.compile(rb'"TxResult":\{"height":"(\d+)","index":(\d+),')


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "chain.db"


@pytest.fixture(params=SOME)
def server(request: pytest.FixtureRequest, database: Path) -> Iterator[Server]:
    with serving(
        request.param, database, produce=False, max_subscription_clients=SUBSCRIBERS
    ) as running:
        yield running
        assert "Traceback" not in running.log()


class Reader:
    """Events that one subscriber has read so far, by height and index."""

    def __init__(self, client: WebSocketClient) -> None:
        self.client = client
        self.told: list[tuple[int, int]] = []
        self._rest = b""

    def read(self) -> None:
        data = self.client.sock.recv(1 << 18)
        assert data, "the server closed the connection"
        data = self._rest + data
        end = 0
        for found in TOLD.finditer(data):
            self.told.append((int(found[1]), int(found[2])))
            end = found.end()
        # Keep the bytes that the next match may need.
        self._rest = data[max(end, len(data) - 100) :]


def read_all(readers: list[Reader], expected: int) -> None:
    """Read from all subscribers at once until each has this many events."""
    deadline = time.monotonic() + DELAY_S
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader.client.sock, selectors.EVENT_READ, reader)
        while selector.get_map():
            assert time.monotonic() < deadline, sorted(len(r.told) for r in readers)
            for key, _ in selector.select(1.0):
                key.data.read()
                if len(key.data.told) >= expected:
                    selector.unregister(key.fileobj)


def test_blocks_of_any_size_reach_all_reading_subscribers(
    server: Server, database: Path
) -> None:
    took = []
    with closing(EmbeddedChain(database, produce=False)) as chain, ExitStack() as stack:
        clients = [
            stack.enter_context(closing(WebSocketClient(server.url, timeout=PATIENCE)))
            for _ in range(SUBSCRIBERS)
        ]
        for client in clients:
            assert client.asked("subscribe", {"query": "tm.event='Tx'"})["result"] == {}
        _stalled, *readers = map(Reader, clients)
        expected = []
        for txs in BLOCKS:
            for number in range(txs):
                chain.mempool.submit(b"key%d.%d=value" % (txs, number))
            height = chain.produce()
            expected += [(height, index) for index in range(txs)]
            began = time.monotonic()
            read_all(readers, len(expected))
            took.append(time.monotonic() - began)
        memory = server.census()["memory_kb"]

    print([f"{txs} txs: {seconds:.2f} s" for txs, seconds in zip(BLOCKS, took, strict=True)])
    print(f"{memory} kB")
    assert all(reader.told == expected for reader in readers)
