"""Subscribers to logs while the worker that serves them is killed repeatedly: each gets each
log once and in order."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.ethereum.ethermint_double import EmittedLog

from ..ethereum.rpc.chain import CONTRACT, TOPIC_A, emitting, ethereum_chain
from ..helpers.until import PATIENCE, until
from ..helpers.websocket import WebSocketClient
from .processes import is_long
from .servers import Server, serving

SUBSCRIBERS = 20
KILLS = 50 if is_long() else 3
TOPIC_END = b"\xee" * 32


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    with closing(ethereum_chain(tmp_path)) as made:
        yield made


class Subscriber(threading.Thread):
    """A client that subscribes again after the last log that it has, until the log with the
    last topic comes."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.logs: list[dict[str, Any]] = []
        self.connections = 0
        self._url = url
        self.start()

    @property
    def has_ended(self) -> bool:
        return bool(self.logs) and f"0x{TOPIC_END.hex()}" in self.logs[-1]["topics"]

    def run(self) -> None:
        while not self.has_ended:
            # The server may have no worker now.
            with suppress(OSError):
                client = WebSocketClient(self._url, path="/evm/ws", timeout=PATIENCE)
                with closing(client):
                    self._read(client)

    def _read(self, client: WebSocketClient) -> None:
        wanted = {"address": f"0x{CONTRACT.hex()}"}
        if self.logs:
            height, index = (int(self.logs[-1][n], 16) for n in ("blockNumber", "logIndex"))
            wanted["cursor"] = f"{height}.{index}"
        else:
            wanted["fromBlock"] = "0x1"
        client.call("eth_subscribe", ["logs", wanted])
        if client.read() is None:
            return
        self.connections += 1
        while not self.has_ended and (text := client.read()) is not None:
            self.logs.append(json.loads(text)["params"]["result"])


def kill_worker(server: Server) -> None:
    """Kill the worker, and wait for the next one."""
    old = server.census()["pid"]
    os.kill(old, signal.SIGKILL)

    def is_replaced() -> bool:
        with suppress(OSError):
            return bool(server.census()["pid"] != old)
        return False

    until(is_replaced, "another worker serves")


@pytest.mark.parametrize("kind", ["gthread", "gevent"])
def test_each_log_comes_once_and_in_order(chain: EmbeddedChain, kind: str) -> None:
    chance, nonce = random.Random(kind), 3

    def emit(topic: bytes) -> None:
        nonlocal nonce
        chain.mempool.submit(emitting(nonce, *[EmittedLog(topics=(topic,))] * 3))
        nonce += 1

    own = serving(kind, Path(chain.store.location.path), produce=False, json_rpc_enable=True)
    with ExitStack() as stack:
        server = stack.enter_context(own)
        subscribers = [Subscriber(server.url) for _ in range(SUBSCRIBERS)]
        for _ in range(KILLS):
            for _ in range(chance.randrange(1, 12)):
                for _ in range(chance.randrange(3)):
                    emit(TOPIC_A)
                chain.produce()
            kill_worker(server)
        emit(TOPIC_END)
        chain.produce()
        until(lambda: all(each.has_ended for each in subscribers), "all have the last log")
        client = stack.enter_context(
            closing(WebSocketClient(server.url, path="/evm/ws", timeout=PATIENCE))
        )
        wanted = {"fromBlock": "0x1", "address": f"0x{CONTRACT.hex()}"}
        # Three logs have the last topic, and subscribers stop at the first of them.
        expected = client.asked("eth_getLogs", [wanted])["result"][:-2]
    assert [each.logs == expected for each in subscribers] == [True] * SUBSCRIBERS
    assert max(each.connections for each in subscribers) > 1
