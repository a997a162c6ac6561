"""CPU time of a node for each event message, compared with CometBFT's.

Five hundred subscribers are read on the second core. The cost of the same blocks with one
subscriber is subtracted, except where each event is for one subscriber, as it is most of the
cost there.
"""

from __future__ import annotations

import json
import selectors
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from typing import NamedTuple

import click

from tests.helpers.websocket import WebSocketClient

from .compare import Bench
from .nodes import COMETBFT, of_cometbft
from .peers.cometbft import sending
from .peers.ours import COMMON, noderpc_start
from .process import PATIENCE_S, Server
from .table import Table, verdict

SUBSCRIBERS = 500
_INTERVAL_S = 0.2
_BATCH = 100
_MARK = b'"jsonrpc"'
PONG = 0xA
# CometBFT closes a connection that is silent for 30 s.
_SILENT_S = 12.0
_OURS = "ours"


class Readers:
    """Reads connections as fast as messages arrive, and counts the messages."""

    def __init__(self, clients: list[WebSocketClient]) -> None:
        self._selector = selectors.DefaultSelector()
        for client in clients:
            # The end of the last read, as a mark may be split between two reads.
            self._selector.register(client.sock, selectors.EVENT_READ, bytearray())
        self.size = 0

    def read(self, messages: int) -> float:
        """Read until this many messages have arrived; return the seconds since the first data
        of them."""
        deadline = time.monotonic() + PATIENCE_S
        began = 0.0
        while messages > 0:
            assert time.monotonic() < deadline, f"{messages} messages are missing"
            for key, _ in self._selector.select(1.0):
                began = began or time.monotonic()
                messages -= self._read_one(key)
        return time.monotonic() - began

    def drain(self) -> None:
        """Read what has arrived, until nothing does for half a second."""
        while found := self._selector.select(0.5):
            for key, _ in found:
                self._read_one(key)

    def _read_one(self, key: selectors.SelectorKey) -> int:
        """Read a connection; return the number of messages that ended."""
        data = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]
        self.size += len(data)
        rest: bytearray = key.data
        rest += data
        count = rest.count(_MARK)
        found = rest.rfind(_MARK)
        end = found + len(_MARK) if found >= 0 else 0
        del rest[: max(end, len(rest) - len(_MARK) + 1)]
        return count

    def close(self) -> None:
        """Stop reading."""
        self._selector.close()


@dataclass(frozen=True, slots=True)
class Shape:
    """Number of blocks and transactions, and the query of a subscriber."""

    name: str
    blocks: int
    txs: int
    query: str = "tm.event='Tx'"
    most: float | None = None
    """Maximum ratio to CometBFT's time."""

    @property
    def is_for_one(self) -> bool:
        """Whether each subscriber has a query of its own."""
        return "{}" in self.query

    def messages(self, subscribers: int) -> int:
        """Return the number of messages that a block causes."""
        return self.txs * (1 if self.is_for_one else subscribers)


SHAPES = (
    Shape("burst of 100 events", 4, 100, most=0.06),
    Shape("lone event", 30, 1, most=0.4),
    Shape("500 distinct queries", 6, SUBSCRIBERS, "tm.event='Tx' AND app.key='{}'"),
)


class _Cost(NamedTuple):
    """Microseconds and bytes of a message."""

    us: float
    size: float


def compare(bench: Bench) -> Table:
    """Return the table with the microseconds of a message."""
    found: dict[str, list[_Cost]] = {}
    with ExitStack() as stack:
        home = Path(mkdtemp(dir=bench.scratch))
        own = {**COMMON, "database": str(home / "noderpc.db"), "block_interval": _INTERVAL_S}
        servers = {_OURS: stack.enter_context(noderpc_start(home, own))}
        with bench.may_miss(COMETBFT):
            pace = f"{round(_INTERVAL_S * 1000)}ms"
            servers[COMETBFT] = stack.enter_context(of_cometbft(bench, None, pace))
        for shape in SHAPES:
            for peer, cost in _by_turns(bench, servers, shape).items():
                found.setdefault(peer, []).append(cost)
                click.echo(f"{shape.name}, {peer}: {cost.us:.2f} us a message")
    header = ("Event", "Bytes", *(f"{peer}, µs" for peer in servers), "Ratio", "Target", "Met")
    return Table("fanout", header, tuple(_lines(found)))


def _by_turns(bench: Bench, servers: dict[str, Server], shape: Shape) -> dict[str, _Cost]:
    found: dict[str, list[_Cost]] = {peer: [] for peer in servers}
    for _ in range(bench.rounds):
        for peer, server in servers.items():
            with server.awake():
                found[peer].append(_cost(server, shape))
    return {
        peer: _Cost(*map(median, zip(*of_one, strict=True))) for peer, of_one in found.items()
    }


def _lines(found: dict[str, list[_Cost]]) -> Iterator[tuple[str, ...]]:
    for place, shape in enumerate(SHAPES):
        costs = [of_peer[place].us for of_peer in found.values()]
        line = shape.name, f"{found[_OURS][place].size:.0f}", *(f"{cost:.2f}" for cost in costs)
        if len(costs) == 1:
            yield *line, "", "", ""
            continue
        ratio = costs[0] / costs[1]
        wanted = [] if shape.most is None else [f"{shape.most:g} at most"]
        missed = [f"{ratio:.2f}"] if shape.most is not None and ratio > shape.most else []
        yield *line, f"{ratio:.2f}", *verdict(wanted, missed)


def _cost(server: Server, shape: Shape) -> _Cost:
    spent, size = _spent(server, shape, SUBSCRIBERS)
    alone = 0.0
    messages = shape.blocks * shape.messages(SUBSCRIBERS)
    if not shape.is_for_one:
        alone, _ = _spent(server, shape, 1)
        messages -= shape.blocks * shape.messages(1)
    return _Cost((spent - alone) / messages * 1e6, size)


def _spent(server: Server, shape: Shape, subscribers: int) -> tuple[float, float]:
    """Return the processor time of all blocks, and the bytes of a message."""
    with ExitStack() as stack:
        clients = [
            stack.enter_context(closing(WebSocketClient(server.url, timeout=PATIENCE_S)))
            for _ in range(subscribers)
        ]
        for number, client in enumerate(clients):
            query = shape.query.format(f"k{number}")
            assert client.asked("subscribe", {"query": query})["result"] == {}
        readers = stack.enter_context(closing(Readers(clients)))
        expected = shape.messages(subscribers)
        # The first block is not measured.
        _append(server, shape.txs)
        readers.read(expected)
        before, readers.size = server.cpu_s(), 0
        heard = time.monotonic()
        for _ in range(shape.blocks):
            if time.monotonic() > heard + _SILENT_S:
                heard = time.monotonic()
                for client in clients:
                    client.frame(PONG, b"")
            _append(server, shape.txs)
            readers.read(expected)
        return server.cpu_s() - before, readers.size / (shape.blocks * expected)


_turns = count()


def _append(server: Server, txs: int) -> None:
    """Send transactions for the next block."""
    turn = next(_turns)
    calls = [sending(b"k%d=%d" % (number, turn) + b"x" * 170) for number in range(txs)]
    for start in range(0, txs, _BATCH):
        server.ask(body=json.dumps(calls[start : start + _BATCH]))
