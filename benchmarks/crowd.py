"""Thousands of websocket subscribers on two cores: ``python -m benchmarks.crowd``.

Prints, for each node, the milliseconds from the first subscriber that receives a block's
message to the last one, the processor time of a message, and the memory of a subscriber: new
blocks of our node beside CometBFT's, new heads of our Ethereum layer beside geth's. The
subscribers share the two cores with the node. Go builds geth if ``--geth`` names no program.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import click

from tests.clients.test_fork_flows import GETH
from tests.helpers.websocket import WebSocketClient

from .chains import CACHE
from .fanout import PONG, Readers
from .peers import cometbft
from .peers.ours import COMMON, noderpc_start
from .process import PATIENCE_S, Server, free_port, served

_CORES = "0,1"
# Long enough that the last message of a block has arrived before the next block.
_INTERVAL_S = 3
_MANY = 20_000
_COMET = "/websocket", "subscribe", {"query": "tm.event='NewBlock'"}
_ETHEREUM = "/", "eth_subscribe", ["newHeads"]


class Crowd(NamedTuple):
    """Figures of a node with its subscribers."""

    spread_ms: float
    message_us: float
    subscriber_kb: float
    size: float


@contextmanager
def _ours(folder: Path, **more: Any) -> Iterator[Server]:
    limits = dict.fromkeys(("max_open_connections", "max_subscription_clients"), _MANY)
    pace = {"block_interval": _INTERVAL_S, "empty_blocks": True, "workers": 2}
    own = {**COMMON, **limits, **pace, "database": str(folder / "noderpc.db"), **more}
    with noderpc_start(folder, own, _CORES) as server:
        yield server


@contextmanager
def _our_ethereum(folder: Path) -> Iterator[Server]:
    address = f"127.0.0.1:{free_port()}"
    more = {"json_rpc_ws_address": f"tcp://{address}", "evm_max_subscriptions": _MANY}
    evm = {"application": "evm", "dev": True, "json_rpc_enable": True}
    with _ours(folder, **evm, **more) as server:
        yield replace(server, url=f"http://{address}")


@contextmanager
def _comet(folder: Path) -> Iterator[Server]:
    program = cometbft.binary(CACHE)
    cometbft.make_home(program, folder)
    with cometbft.cometbft(program, folder, f"{_INTERVAL_S}s", _CORES) as server:
        yield server


@contextmanager
def _geth(folder: Path, program: Path | None) -> Iterator[Server]:
    if program is None:
        program = folder / "geth"
        package = "github.com/ethereum/go-ethereum/cmd/geth"
        subprocess.run(
            ["go", "build", "-buildvcs=false", "-o", program, package], cwd=GETH, check=True
        )
    port = free_port()
    flags = ["--dev", f"--dev.period={_INTERVAL_S}", "--ipcdisable", "--port=0"]
    flags += ["--authrpc.port=0", "--ws", f"--ws.port={port}", f"--datadir={folder}"]
    with served([program, *flags], port, cores=_CORES) as server:
        yield server


def _measure(server: Server, subscription: tuple[str, str, Any], count: int) -> Crowd:
    path, method, params = subscription
    with ExitStack() as stack:
        stack.enter_context(server.awake())
        one = stack.enter_context(closing(WebSocketClient(server.url, path, PATIENCE_S)))
        one.asked(method, params)
        alone = stack.enter_context(closing(Readers([one])))
        before = _blocks(server, alone, [one])[1]
        memory = sum(server.memory_mb().values())
        clients = [one]
        for _ in range(count - 1):
            client = WebSocketClient(server.url, path, PATIENCE_S)
            clients.append(stack.enter_context(closing(client)))
            assert "error" not in client.asked(method, params)
            if not len(clients) % 500:
                _stay(clients)
        readers = stack.enter_context(closing(Readers(clients)))
        spread, cpu_s, size = _blocks(server, readers, clients)
        grown = sum(server.memory_mb().values()) - memory
    each = (cpu_s - before) / (count - 1) * 1e6
    return Crowd(spread * 1e3, each, grown * 1e3 / (count - 1), size)


def _stay(clients: list[WebSocketClient]) -> None:
    """Show that the clients are there, as nodes close connections that answer no ping."""
    for client in clients:
        client.frame(PONG, b"")


def _blocks(
    server: Server, readers: Readers, clients: list[WebSocketClient]
) -> tuple[float, float, float]:
    """Return the seconds from the first message to the last one, the processor time of a block
    and the bytes of a message: medians of five blocks."""
    found = []
    for _ in range(5):
        _stay(clients)
        # The end of a message may arrive after the part that is counted.
        readers.drain()
        used, readers.size = server.cpu_s(), 0
        spread = readers.read(len(clients))
        found.append((spread, server.cpu_s() - used, readers.size / len(clients)))
    spreads, cpu, sizes = zip(*found, strict=True)
    return median(spreads), median(cpu), median(sizes)


@click.command()
@click.option("--subscribers", default=5_000, show_default=True)
@click.option("--geth", type=click.Path(path_type=Path), help="The program of geth.")
def main(subscribers: int, geth: Path | None) -> None:
    """Print the figures of each node."""
    with TemporaryDirectory() as scratch:
        homes = [Path(scratch) / name for name in ("ours", "comet", "evm", "geth")]
        for home in homes:
            home.mkdir()
        nodes = (
            ("noderpc start, NewBlock", _ours(homes[0]), _COMET),
            ("CometBFT, NewBlock", _comet(homes[1]), _COMET),
            ("noderpc start, newHeads", _our_ethereum(homes[2]), _ETHEREUM),
            ("geth, newHeads", _geth(homes[3], geth), _ETHEREUM),
        )
        for name, node, subscription in nodes:
            with node as server:
                found = _measure(server, subscription, subscribers)
            click.echo(f"{name}: {found.spread_ms:.0f} ms from the first to the last message")
            click.echo(
                f"    {found.message_us:.1f} us of processor time and {found.size:.0f} bytes a"
                f" message, {found.subscriber_kb:.1f} kB a subscriber"
            )


if __name__ == "__main__":
    main()
