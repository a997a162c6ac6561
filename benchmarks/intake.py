"""Rate of transactions that are pipelined over one websocket.

Each transaction has 250 bytes, as in CometBFT's load tester. Blocks are made meanwhile, and the
clock stops when the last transaction is in one.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from threading import Thread
from typing import NamedTuple

import click

from tests.helpers.websocket import WebSocketClient

from .compare import Bench
from .nodes import COMETBFT, of_cometbft
from .peers.ours import COMMON, noderpc_start
from .process import PATIENCE_S, Server, until
from .table import Table

METHODS = ("broadcast_tx_sync", "broadcast_tx_async")
_TXS, _SIZE = 2000, 250
_OURS = "ours"
_numbers = count()


class _Speed(NamedTuple):
    answered: float
    """Responses a second."""
    per_cpu_s: float
    """Committed transactions for each second of processor time."""


def compare(bench: Bench) -> Table:
    """Return the table of responses a second, and of transactions for each second of processor
    time."""
    with ExitStack() as stack:
        home = Path(mkdtemp(dir=bench.scratch))
        own = {**COMMON, "database": str(home / "noderpc.db"), "mempool_size": 100_000}
        servers = {_OURS: stack.enter_context(noderpc_start(home, own))}
        with bench.may_miss(COMETBFT):
            servers[COMETBFT] = stack.enter_context(of_cometbft(bench, None, "1s"))
        found = list(_lines(bench, servers))
    header = ("Over one websocket", "By", "Answers a second", "Transactions a CPU second")
    return Table("intake", header, tuple(found))


def _lines(bench: Bench, servers: dict[str, Server]) -> Iterator[tuple[str, ...]]:
    for method in METHODS:
        speeds: dict[str, list[_Speed]] = {peer: [] for peer in servers}
        for _ in range(bench.rounds):
            for peer, server in servers.items():
                with server.awake():
                    speeds[peer].append(_speed(server, method))
        for peer, of_peer in speeds.items():
            answered, per_cpu_s = map(median, zip(*of_peer, strict=True))
            click.echo(f"{method}, {peer}: {answered:.0f} a second")
            yield method, peer, f"{answered:,.0f}", f"{per_cpu_s:,.0f}"


def _speed(server: Server, method: str) -> _Speed:
    with closing(WebSocketClient(server.url, timeout=PATIENCE_S)) as client:
        calls = [_call(method, request_id) for request_id in range(_TXS)]
        before, began = server.cpu_s(), time.monotonic()
        sending = Thread(target=_send, args=(client, calls))
        sending.start()
        for request_id in range(_TXS):
            answer = client.json()
            assert answer["id"] == request_id, answer
            assert "result" in answer, answer
        seconds = time.monotonic() - began
        sending.join()
    until(lambda: _waiting(server) == 0, "all transactions in blocks", every_s=0.2)
    return _Speed(_TXS / seconds, _TXS / (server.cpu_s() - before))


def _send(client: WebSocketClient, calls: list[str]) -> None:
    for call in calls:
        client.text(call)


def _call(method: str, request_id: int) -> str:
    tx = (b"k%d=" % next(_numbers)).ljust(_SIZE, b"x")
    params = {"tx": base64.b64encode(tx).decode()}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def _waiting(server: Server) -> int:
    answer = json.loads(server.ask("/num_unconfirmed_txs"))
    return int(answer["result"]["n_txs"])
