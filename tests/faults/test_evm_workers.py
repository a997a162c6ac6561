"""Tests that three workers give the same hash for each block, by polls, websockets and
calls."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.chain.embedded import EmbeddedChain

from ..helpers import http
from ..helpers.until import PATIENCE, until
from ..helpers.websocket import WebSocketClient
from .processes import is_long
from .servers import Server, serving

KINDS = ("gthread", "gevent", "gthread")
BLOCKS = 1_000 if is_long() else 100
# The heads of this many blocks fit into the default buffer.
MOST_BEHIND = 50


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    with closing(EmbeddedChain(tmp_path / "chain.db", produce=False)) as made:
        made.start()
        yield made


@pytest.fixture
def servers(chain: EmbeddedChain) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                serving(
                    kind, Path(chain.store.location.path), produce=False, json_rpc_enable=True
                )
            )
            for kind in KINDS
        ]


def call(server: Server, method: str, *params: Any) -> Any:
    return http.call(f"{server.url}/evm", method, params).result


class Heads(threading.Thread):
    """A thread that notes the hash of each head that a worker sends."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self.hashes: list[str] = []
        self._client = WebSocketClient(server.url, path="/evm/ws", timeout=PATIENCE)
        self._client.call("eth_subscribe", ["newHeads", {}])
        assert "result" in json.loads(self._client.read() or "")
        self.start()

    def run(self) -> None:
        while len(self.hashes) < BLOCKS:
            received = json.loads(self._client.read() or "")
            self.hashes.append(received["params"]["result"]["hash"])
        self._client.close()


def test_a_block_has_one_hash_everywhere(chain: EmbeddedChain, servers: list[Server]) -> None:
    heads = [Heads(server) for server in servers]
    # One worker made the filter, and all workers are polled in turn.
    wanted = call(servers[0], "eth_newBlockFilter")
    turns = cycle(servers)
    polled: list[str] = []
    for height in range(1, BLOCKS + 1):
        chain.mempool.submit(b"key%d=value" % height)
        assert chain.produce() == height
        if height % 10 == 0:
            polled += call(next(turns), "eth_getFilterChanges", wanted)
        until(
            lambda: all(len(h.hashes) >= height - MOST_BEHIND for h in heads),  # noqa: B023
            "all follow",
        )
    until(lambda: all(len(head.hashes) == BLOCKS for head in heads), "all heads are told")
    polled += call(next(turns), "eth_getFilterChanges", wanted)

    own = ["0x" + chain.reads.block(height)[0].hash.hex() for height in range(1, BLOCKS + 1)]
    assert polled == own
    assert [head.hashes for head in heads] == [own] * len(servers)
    for height, expected in enumerate(own, 1):
        server = servers[height % len(servers)]
        assert call(server, "eth_getBlockByNumber", hex(height), False)["hash"] == expected
        shown = server.get(f"/block?height={height}")["block_id"]["hash"]
        assert f"0x{shown.lower()}" == expected
