"""What does a notification cost? ``python -m benchmarks.fanout``.

Five hundred subscribers of a node under gevent on one core, blocks appended from the other:
bursts of a hundred events of 1 KB, lone events, and five hundred distinct queries with an
event for each. Prints the processor time of the serving process for each message, all it
does included, and its memory for each idle connection. CometBFT 0.38 takes 53 to 56 us.
"""

from __future__ import annotations

import os
import selectors
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import click

from flask_noderpc import CommittedBlock, SQLiteBackend
from flask_noderpc.domain.abci import Event, EventAttribute
from flask_noderpc.testing.chains import ChainMaker
from tests.websocket.client import Client

from .servers import Server, running

SUBSCRIBERS = 500
_TICKS = os.sysconf("SC_CLK_TCK")
_MARK = b'"jsonrpc":"2.0"'
_PATIENCE_S = 60.0


class Readers:
    """Connections that are read as fast as they come, for their count alone."""

    def __init__(self, clients: list[Client]) -> None:
        self._selector = selectors.DefaultSelector()
        for client in clients:
            # The end of what was read, where a mark may be cut in two.
            self._selector.register(client.sock, selectors.EVENT_READ, bytearray())
        self.size = 0

    def read(self, count: int) -> None:
        """Read until so many messages have come."""
        deadline = time.monotonic() + _PATIENCE_S
        while count > 0:
            assert time.monotonic() < deadline, f"{count} messages are missing"
            for key, _ in self._selector.select(1.0):
                data = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]
                self.size += len(data)
                rest: bytearray = key.data
                rest += data
                count -= rest.count(_MARK)
                found = rest.rfind(_MARK)
                end = found + len(_MARK) if found >= 0 else 0
                del rest[: max(end, len(rest) - len(_MARK) + 1)]

    def close(self) -> None:
        """Look at no connection any more."""
        self._selector.close()


class Chain:
    """Blocks with events of our own, appended to the served store."""

    def __init__(self, file: Path) -> None:
        self._maker = ChainMaker(chain_id="fanout")
        self._store = SQLiteBackend(file)
        self._store.init_chain(self._maker.genesis, self._maker.state)

    def append(self, txs: int, padding: int) -> None:
        """A block of transactions; the key of each is its position."""
        self._store.append_block(self._block(txs, "x" * padding))

    def _block(self, txs: int, padding: str) -> CommittedBlock:
        height = self._maker.head.height + 1
        block = self._maker.block(*(b"%d.%d=v" % (height, index) for index in range(txs)))
        results = tuple(
            replace(result, log=padding, events=(_event(index),))
            for index, result in enumerate(block.results.tx_results)
        )
        return replace(block, results=replace(block.results, tx_results=results))

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def _event(index: int) -> Event:
    return Event("app", (EventAttribute(b"key", b"%d" % index),))


def cpu_s(server: Server) -> float:
    """Processor time of the serving process, all of its threads."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_kb(server: Server) -> int:
    """Resident memory of the serving process."""
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise LookupError("no VmRSS")


def subscribers(server: Server, stack: ExitStack, queries: Iterator[str]) -> Readers:
    """Five hundred connections with a subscription each."""
    clients = []
    for _ in range(SUBSCRIBERS):
        client = stack.enter_context(closing(Client(server.url, timeout=_PATIENCE_S)))
        assert client.asked("subscribe", {"query": next(queries)})["result"] == {}
        clients.append(client)
    return stack.enter_context(closing(Readers(clients)))


def measure(
    name: str, server: Server, chain: Chain, queries: Iterator[str], shape: tuple[int, ...]
) -> None:
    """Print one row; ``shape`` is blocks, transactions a block, messages a subscriber."""
    blocks, txs, each = shape
    with ExitStack() as stack:
        before = memory_kb(server)
        readers = subscribers(server, stack, queries)
        idle = (memory_kb(server) - before) / SUBSCRIBERS
        # One block to warm up.
        chain.append(txs, 500)
        readers.read(SUBSCRIBERS * each)
        readers.size = 0
        started, spent = time.monotonic(), cpu_s(server)
        for _ in range(blocks):
            chain.append(txs, 500)
            readers.read(SUBSCRIBERS * each)
        spent, took = cpu_s(server) - spent, time.monotonic() - started
    count = blocks * SUBSCRIBERS * each
    click.echo(
        f"{name:24} {count:8} messages of {readers.size / count:5.0f} bytes"
        f" {spent / count * 1e6:6.2f} us each  {count / took:8.0f} a second"
        f"  {idle:5.1f} kB a connection"
    )


@click.command()
def main() -> None:
    """Print the table."""
    os.sched_setaffinity(0, {1})
    with tempfile.TemporaryDirectory() as scratch, running(Path(scratch)) as start:
        file = Path(scratch) / "fanout.db"
        with closing(Chain(file)) as chain:
            server = start("node", database=file)
            every = iter(lambda: "tm.event='Tx'", "")
            measure("burst of 100 events", server, chain, every, (20, 100, 100))
            measure("lone event", server, chain, every, (200, 1, 1))
            own = (f"tm.event='Tx' AND app.key='{index}'" for index in range(SUBSCRIBERS))
            measure("500 distinct queries", server, chain, own, (100, SUBSCRIBERS, 1))


if __name__ == "__main__":
    main()
