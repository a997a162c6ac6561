"""Tests of filters and subscriptions of the EVM layer under gunicorn, while workers are
replaced."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.ethereum.ethermint_double import EmittedLog
from flask_noderpc.ethereum.protocol.transactions import decode

from ..ethereum.rpc.chain import TOPIC_A, emitting, ethereum_chain
from ..helpers.until import PATIENCE
from ..helpers.websocket import WebSocketClient
from .servers import Server, serving

KINDS = ("gthread", "gevent")
BLOCKS = 50


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    with closing(ethereum_chain(tmp_path)) as made:
        yield made


@pytest.fixture
def connections() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def served(connections: ExitStack, chain: EmbeddedChain, kind: str) -> Server:
    own = serving(kind, Path(chain.store.location.path), produce=False, json_rpc_enable=True)
    return connections.enter_context(own)


def connected(connections: ExitStack, server: Server) -> WebSocketClient:
    """Return a websocket; it waits if there is no worker."""
    return connections.enter_context(
        closing(WebSocketClient(server.url, path="/evm/ws", timeout=PATIENCE))
    )


def asked(client: WebSocketClient, method: str, *params: Any) -> Any:
    reply = client.asked(f"eth_{method}", list(params))
    assert "result" in reply, reply
    return reply["result"]


def emit(chain: EmbeddedChain, nonce: int) -> str:
    """Submit a transaction with a log; return its hash."""
    raw = emitting(nonce, EmittedLog(topics=(TOPIC_A,)))
    chain.mempool.submit(raw)
    return f"0x{decode(raw).hash.hex()}"


def told(client: WebSocketClient, subscription: str) -> Any:
    message = client.json()["params"]
    assert message["subscription"] == subscription
    return message["result"]


def block_hashes(chain: EmbeddedChain, first: int, last: int) -> list[str]:
    return [f"0x{chain.reads.block(height)[0].hash.hex()}" for height in range(first, last + 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_of_a_killed_worker_finds_its_filters_again(
    connections: ExitStack, chain: EmbeddedChain, kind: str
) -> None:
    server = served(connections, chain, kind)
    client = connected(connections, server)
    pending = asked(client, "subscribe", "newPendingTransactions")
    logs = asked(client, "subscribe", "logs", {"topics": [f"0x{TOPIC_A.hex()}"]})
    own = [asked(client, "newFilter", {}), asked(client, "newBlockFilter")]
    waiting = asked(client, "newPendingTransactionFilter")

    first = emit(chain, 3)
    assert told(client, pending) == first
    assert asked(client, "getFilterChanges", waiting) == [first]
    chain.produce()
    assert told(client, logs)["transactionHash"] == first
    assert [len(asked(client, "getFilterChanges", each)) for each in own] == [1, 1]

    os.kill(server.census()["pid"], signal.SIGKILL)
    assert client.read() is None
    second = emit(chain, 4)
    chain.produce()
    third = emit(chain, 5)

    client = connected(connections, server)
    (log,) = asked(client, "getFilterChanges", own[0])
    assert log["transactionHash"] == second
    assert asked(client, "getFilterChanges", own[1]) == block_hashes(chain, 5, 5)
    assert asked(client, "getFilterChanges", waiting) == [second, third]
    # Subscriptions ended with the connection.
    assert "error" in client.asked("eth_unsubscribe", [logs])
    logs = asked(client, "subscribe", "logs", {})
    chain.produce()
    assert told(client, logs)["transactionHash"] == third


def test_processes_that_share_a_filter_return_each_block_once(
    connections: ExitStack, chain: EmbeddedChain
) -> None:
    clients = [connected(connections, served(connections, chain, kind)) for kind in KINDS]
    own = asked(clients[0], "newBlockFilter")
    found: list[str] = []
    with ThreadPoolExecutor(len(clients)) as pool:
        for _ in range(BLOCKS):
            chain.produce()
            polls = [pool.submit(asked, each, "getFilterChanges", own) for each in clients]
            found += [each for poll in polls for each in poll.result(PATIENCE)]
    # Another poll may have taken the last change.
    found += asked(clients[1], "getFilterChanges", own)

    assert sorted(found) == sorted(block_hashes(chain, 4, 3 + BLOCKS))
