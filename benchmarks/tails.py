"""Tail latency of ``noderpc start`` under load: ``python -m benchmarks.tails``.

Requests ``/status`` of ``noderpc start`` 200 times a second, regardless of response times, and
prints their median and 99th percentile: alone; while blocks of 2,000 transactions are sent and
committed; while another program repeatedly holds the store's write lock for 600 ms; and beside
200 slow headers, 200 slow bodies and 10,000 connections without a request. The node is on the
first core with all its processes, the load on the second.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import socket
import sqlite3
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit

import click

from flask_noderpc import jsoncodec

from .chains import CACHE, TEN_THOUSAND, build
from .endless import endless_calls
from .evm import chain
from .peers.ours import START_COMMAND, noderpc_start, reading
from .process import Server, free_port

PROBES, EVERY_S = 20, 0.1
TXS, BATCH = 2_000, 100
HELD_S = 0.6
SLOW, IDLE, SEARCHES = 200, 10_000, 50
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
SLOWLY = (
    b"GET /status HTTP/1.1\r\nHost: localhost",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n",
)


Part = Callable[[int, Path], AbstractContextManager[None]]
"""A disturbance of a port and a store, during which is measured."""
Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _probe(port: int, seconds: float) -> list[float]:
    """Return each response time; several connections take turns, so that none waits for
    another."""
    peers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(PROBES)]
    for peer in peers:
        # The queue of new connections is not part of the measurement.
        await _ask(peer)
    began = time.perf_counter()

    async def one(number: int) -> list[float]:
        found = []
        for turn in range(int(seconds / EVERY_S)):
            due = began + number * EVERY_S / PROBES + turn * EVERY_S
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await _ask(peers[number])
            # The time counts from when the request was due, so a late response makes the next
            # ones late, too.
            found.append(time.perf_counter() - due)
        return found

    found = list(itertools.chain(*await asyncio.gather(*map(one, range(PROBES)))))
    for _, writer in peers:
        writer.close()
    return found


async def _ask(peer: Peer) -> None:
    reader, writer = peer
    writer.write(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    await reader.readexactly(int(head.lower().split(b"length:")[1].split(b"\r")[0]))


@contextmanager
def _repeated(step: Callable[[], None]) -> Iterator[None]:
    """Repeat a step in a thread."""
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            step()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    over.set()
    thread.join()


@contextmanager
def alone(port: int, store: Path) -> Iterator[None]:
    """Disturb nothing."""
    yield


@contextmanager
def large_blocks(port: int, store: Path) -> Iterator[None]:
    """Send 2,000 transactions, and the next ones when they are in a block."""
    numbers = itertools.count()
    url = f"http://127.0.0.1:{port}"
    sizes: list[int] = []

    def ask(body: object) -> bytes:
        with urllib.request.urlopen(url, jsoncodec.encode(body)) as answer:
            content: bytes = answer.read()
        return content

    def call(method: str, params: object) -> dict[str, object]:
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

    def height() -> int:
        answer = jsoncodec.decode(ask(call("status", {})))
        return int(answer["result"]["sync_info"]["latest_block_height"])

    def step() -> None:
        before = height()
        for _ in range(TXS // BATCH):
            txs = [base64.b64encode(b"k%d=v" % next(numbers)).decode() for _ in range(BATCH)]
            ask([call("broadcast_tx_async", {"tx": tx}) for tx in txs])
        while height() == before:
            time.sleep(0.05)
        block = jsoncodec.decode(ask(call("block", {})))
        sizes.append(len(block["result"]["block"]["data"]["txs"]))

    with _repeated(step):
        yield
    click.echo(f"  blocks of {sizes}")


@contextmanager
def held_lock(port: int, store: Path) -> Iterator[None]:
    """Hold the write lock of another program repeatedly."""

    def step() -> None:
        with closing(sqlite3.connect(store, isolation_level=None, timeout=5)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(HELD_S)
            connection.execute("ROLLBACK")
        time.sleep(0.2)

    with _repeated(step):
        yield


@contextmanager
def crowd(port: int, store: Path) -> Iterator[None]:
    """Keep slow clients connected, and many without a request."""
    with _elsewhere(_stay, port):
        yield


@contextmanager
def arrivals(port: int, store: Path) -> Iterator[None]:
    """Open as many connections one after the other, without a pause."""
    with _elsewhere(_arrive, port):
        yield


@contextmanager
def scans(port: int, store: Path) -> Iterator[None]:
    """Run 50 searches at a time, each for another value, that read a whole key."""
    over, numbers = threading.Event(), itertools.count()

    def search() -> None:
        while not over.is_set():
            query = quote(f"\"app.key CONTAINS 'none{next(numbers)}'\"")
            with suppress(HTTPError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/tx_search?query={query}")

    threads = [threading.Thread(target=search) for _ in range(SEARCHES)]
    for thread in threads:
        thread.start()
    yield
    over.set()
    for thread in threads:
        thread.join()
    click.echo(f"  {next(numbers)} searches")


@contextmanager
def _elsewhere(crowd: Callable[[int, Connection], None], port: int) -> Iterator[None]:
    """Run a crowd in a separate process, so that it takes no time from the measurement."""
    ours, theirs = Pipe()
    process = get_context("spawn").Process(target=crowd, args=(port, theirs))
    process.start()
    ours.recv()
    yield
    ours.send("over")
    click.echo(f"  {ours.recv()} connections")
    process.join()


def _connected(port: int, sends: bytes) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(sends)
    return sock


def _stay(port: int, parent: Connection) -> None:
    slow = [_connected(port, begin) for begin in SLOWLY for _ in range(SLOW)]
    idle = [_connected(port, HEALTH) for _ in range(IDLE)]
    parent.send("ready")
    while not parent.poll(1.0):
        for number, sock in enumerate(slow):
            try:
                sock.sendall(b"a")
            except OSError:
                # The server closed the connection, so connect again.
                sock.close()
                slow[number] = _connected(port, SLOWLY[number // SLOW])
    parent.send(len(slow) + len(idle))


def _arrive(port: int, parent: Connection) -> None:
    came: list[socket.socket] = []
    parent.send("ready")
    while not parent.poll(0):
        if len(came) == IDLE:
            came.pop(0).close()
        came.append(_connected(port, HEALTH))
    parent.send(len(came))


@contextmanager
def node(folder: Path, workers: int) -> Iterator[int]:
    """Run a node on the first core; yield its port."""
    settings = {"workers": workers, "max_batch": BATCH, "dialect": "comet-0.38"}
    with noderpc_start(folder, {**settings, "block_interval": 3}) as server, server.awake():
        yield _port(server)


@contextmanager
def long_node(folder: Path) -> Iterator[int]:
    """Run a node with a long chain, which makes no blocks."""
    with noderpc_start(folder, reading(build(TEN_THOUSAND, CACHE))) as server, server.awake():
        yield _port(server)


def _port(server: Server) -> int:
    server.ask("/status")
    port = urlsplit(server.url).port
    assert port is not None
    return port


def _measure(port: int, store: Path, seconds: float, *parts: Part) -> None:
    for beside in parts:
        with beside(port, store):
            found = sorted(asyncio.run(_probe(port, seconds)))
        half, most = found[len(found) // 2], found[len(found) * 99 // 100]
        click.echo(
            f"  {beside.__name__:14} half {half * 1000:6.1f} ms, 99 %"
            f" {most * 1000:6.1f} ms, all {found[-1] * 1000:6.1f} ms"
        )


@click.command()
@click.option("--seconds", default=10.0, show_default=True, help="Length of each part.")
def main(seconds: float) -> None:
    """Print the table."""
    os.sched_setaffinity(0, {1})
    for workers in (1, 2):
        click.echo(f"--workers {workers}")
        with tempfile.TemporaryDirectory() as folder, node(Path(folder), workers) as port:
            store = Path(folder) / "data" / "noderpc.db"
            _measure(port, store, seconds, alone, large_blocks, held_lock, crowd, arrivals)
    click.echo("an EVM chain")
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        address = {"rpc_laddr": f"tcp://127.0.0.1:{port}"}
        with chain(START_COMMAND, Path(folder), **address) as server, server.awake():

            @contextmanager
            def endless(_port: int, _store: Path) -> Iterator[None]:
                with endless_calls(server):
                    yield

            _measure(port, Path(folder), seconds, alone, endless)
    click.echo(f"a chain of {TEN_THOUSAND.blocks} blocks")
    with tempfile.TemporaryDirectory() as folder, long_node(Path(folder)) as port:
        _measure(port, Path(folder), seconds, alone, scans)


if __name__ == "__main__":
    main()
