"""Measure the memory of ``noderpc start``: ``python -m benchmarks.soak --minutes 30``.

Clients subscribe, read events, unsubscribe, hang up and come back, all the time, while
others ask for ever other answers and blocks are made. The node has the application of
``--kind``, or is a companion that follows a node of kvstore; with ``evm`` clients also send and
trace transactions of Ethereum. Prints the private memory of each process, its slope in the last
third, and open files and threads; fails when a slope is more than ``--at-most``.
"""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from tests.helpers.until import until
from tests.helpers.websocket import WebSocketClient
from tests.server.node_process import Node, started

KINDS = ("kvstore", "evm", "bank", "companion")
CLIENTS, READERS = 6, 2
_QUERIES = ("tm.event='Tx'", "tm.event='NewBlock'", "app.key='{}'", "tx.height>{}")
_READ = ("block", "block_results", "commit", "header", "validators")
_ROUND = 20
_LOOK_S = 1.0
_FILES = ("status", "smaps_rollup")


@dataclass(slots=True)
class Watched:
    """A process, and its samples."""

    name: str
    looks: list[Look]


@dataclass(frozen=True, slots=True)
class Look:
    """Memory, files and threads of a process at one moment."""

    minutes: float
    memory_kb: int
    """Memory in kB that the process wrote and shares with no other one.

    Pages of program files are not counted: they become private, or shared, when another process
    with the same files ends or starts.
    """
    files: int
    threads: int


def look(pid: int, began: float) -> Look:
    """Return what the kernel reports of a process."""
    status, memory = (
        dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        for text in (Path(f"/proc/{pid}/{name}").read_text() for name in _FILES)
    )
    return Look(
        (time.monotonic() - began) / 60,
        int(memory["Private_Dirty"].split()[0]),
        sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        int(status["Threads"]),
    )


def below(pid: int) -> list[int]:
    """Return the PIDs of a process's descendants."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    own = [int(number) for number in listed.split()]
    return [each for child in own for each in (child, *below(child))]


def visit(url: str, dice: random.Random) -> None:
    """Subscribe several times over one connection, and unsubscribe from some."""
    with closing(WebSocketClient(url, timeout=60)) as client:
        for number in range(dice.randint(1, 5)):
            query = dice.choice(_QUERIES).format(dice.randrange(1000))
            client.call("subscribe", {"query": query}, f"s{number}")
            client.call("broadcast_tx_sync", {"tx": "YT0x"}, "sent")
            client.call("status", request_id="status")
            while client.json()["id"] != "status":
                pass
            if dice.random() < 0.5:
                client.call("unsubscribe", {"query": query}, "ended")
        if dice.random() < 0.5:
            client.frame(8, b"\x03\xe8")
            while client.read() is not None:
                pass


def read(url: str, dice: random.Random) -> None:
    """Read responses that were not read before, over one connection."""
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=60)) as connection:

        def ask(path: str) -> Any:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())

        latest = int(ask("/status")["result"]["sync_info"]["latest_block_height"])
        for _ in range(_ROUND):
            ask(f"/{dice.choice(_READ)}?height={dice.randint(1, max(1, latest))}")
            ask(f'/abci_query?path="{dice.randrange(1 << 40)}"')


class Ethereum:
    """Sends, runs, traces and reads at the address of the EVM layer."""

    def __init__(self, url: str) -> None:
        self._netloc = urlsplit(url).netloc

    def __call__(self, url: str, dice: random.Random) -> None:
        """Make one round over one connection."""
        with closing(HTTPConnection(self._netloc, timeout=60)) as connection:

            def ask(method: str, *params: Any) -> Any:
                call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                headers = {"Content-Type": "application/json"}
                connection.request("POST", "/", json.dumps(call), headers)
                return json.loads(connection.getresponse().read()).get("result")

            own = dice.choice(ask("eth_accounts"))
            for _ in range(_ROUND):
                pays = {"from": own, "to": f"0x{dice.randrange(1 << 159):040x}", "value": "0x1"}
                sent = ask("eth_sendTransaction", {**pays, "gas": "0x5208"})
                height = hex(dice.randint(0, int(ask("eth_blockNumber"), 16)))
                ask("eth_call", pays, "latest")
                ask("eth_getBlockByNumber", height, True)
                ask("eth_getBalance", pays["to"], height)
                ask("eth_getLogs", {"fromBlock": height, "toBlock": height})
                ask("eth_getTransactionReceipt", sent)
            ask("debug_traceTransaction", sent, {"tracer": "callTracer"})


class Crowd:
    """Threads that repeat their round until they are stopped."""

    def __init__(
        self, url: str, rounds: list[Callable[[str, random.Random], None]], pause: float
    ) -> None:
        self.rounds, self._pause = 0, pause
        self.failure: Exception | None = None
        self._url = url
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(each, random.Random(seed)))
            for seed, each in enumerate(rounds)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, each: Callable[[str, random.Random], None], dice: random.Random) -> None:
        try:
            while not self._stopping.is_set():
                each(self._url, dice)
                self.rounds += 1
                self._stopping.wait(self._pause)
        except Exception as error:
            self.failure = error

    def stop(self) -> None:
        """Let each round end; raise the error of a failed one."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if self.failure is not None:
            raise self.failure


def name(pid: int) -> str:
    """Return the module that a process runs."""
    command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return next((word for word in command if word.startswith("flask_noderpc")), command[0])


def soak(node: Node, crowd: Crowd, minutes: float) -> dict[int, Watched]:
    """Sample all processes once a second."""
    began = time.monotonic()
    found: dict[int, Watched] = {}
    pause = threading.Event()
    while time.monotonic() - began < minutes * 60 and crowd.failure is None:
        for pid in below(node.pid):
            # A process that has just ended has no files.
            with suppress(OSError):
                watched = found.get(pid) or found.setdefault(pid, Watched(name(pid), []))
                watched.looks.append(look(pid, began))
        pause.wait(_LOOK_S)
    crowd.stop()
    return found


def slope(looks: list[Look]) -> float:
    """Return the growth in kilobytes a minute, by least squares."""
    found = statistics.linear_regression(
        [one.minutes for one in looks], [one.memory_kb for one in looks]
    )
    return found.slope


def tell(pid: int, watched: Watched, minutes: float, say: Callable[[str], None]) -> float:
    """Print the samples of one process; return its slope in the last third, 0 if it ended."""
    looks = watched.looks
    say(f"{pid} {watched.name}")
    for one in looks[:: len(looks) // 12 + 1]:
        say(f"  {one.minutes:6.2f} min {one.memory_kb:8} kB")
    steady = [one for one in looks if one.minutes > minutes * 2 / 3]
    found = slope(steady) if len(steady) > 1 else 0.0
    first, last = looks[0], looks[-1]
    say(f"  most {max(one.memory_kb for one in looks)} kB, {found:+.1f} kB a minute at the end")
    say(f"  files {first.files} -> {last.files}, threads {first.threads} -> {last.threads}")
    return found


@click.command()
@click.option("--minutes", default=1.0, show_default=True)
@click.option("--at-most", default=1000.0, show_default=True, help="Kilobytes a minute.")
@click.option("--kind", type=click.Choice(KINDS), default="kvstore", show_default=True)
@click.option("--cache-bytes", default=64 << 20, show_default=True)
@click.option("--workers", default=1, show_default=True)
@click.option("--pause", default=0.0, show_default=True, help="Seconds after each round.")
@click.option("--block-interval", default=0.01, show_default=True)
def main(
    minutes: float,
    at_most: float,
    kind: str,
    cache_bytes: int,
    workers: int,
    pause: float,
    block_interval: float,
) -> None:
    """Print memory, files and threads, and fail when memory grows."""
    flags = ["--cache-bytes", str(cache_bytes), "--workers", str(workers)]
    # A block every hundredth of a second: SQLite's cache of pages is full early on, and
    # would look like a leak while it fills.
    blocks = ["--block-interval", str(block_interval), "--empty-blocks"]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        match kind:
            case "evm":
                flags += ["--dev"]
            case "companion":
                (folder / "followed").mkdir()
                followed = stack.enter_context(started(folder / "followed", *blocks))
                followed.until_up()
                flags += ["--upstream", followed.url()]
            case _:
                flags += ["--application", kind, *blocks]
        node = stack.enter_context(started(folder, *flags))
        node.until_up()
        if kind != "evm":
            until(lambda: node.height() > 1, "blocks")
        rounds: list[Callable[[str, random.Random], None]] = [visit] * CLIENTS
        rounds += [read] * READERS
        rounds += [Ethereum(node.url("EVM JSON-RPC"))] * READERS if kind == "evm" else []
        crowd = Crowd(node.url(), rounds, pause)
        found = soak(node, crowd, minutes)
        click.echo(f"{crowd.rounds} rounds in {minutes:g} minutes, {node.height()} blocks")
        slopes = [tell(pid, each, minutes, click.echo) for pid, each in found.items()]
    if max(slopes) > at_most:
        raise click.ClickException(f"memory grows by more than {at_most:g} kB a minute")


if __name__ == "__main__":
    main()
