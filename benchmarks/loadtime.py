"""CometBFT's load tester against ``noderpc start``: ``python -m benchmarks.loadtime``.

``loadtime`` of CometBFT's repository sends transactions of 250 bytes over one websocket, at a
rate that does not fall when responses are late. Meanwhile another client sends one transaction
every 20 ms over HTTP, and its response times are measured. Prints the number sent and
committed, and the median and the 99th percentile of those times, without the load and with it.
The chain makes a block each second.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Iterator
from csv import DictReader
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from tempfile import NamedTemporaryFile, TemporaryDirectory
from urllib.parse import urlsplit

import click

from .chains import CACHE
from .peers.ours import COMMON, noderpc_start
from .process import PATIENCE_S, Server, until

_COMMAND = "github.com/cometbft/cometbft/test/loadtime/cmd/load@v0.38.17"
_SIZE, _EVERY_S = 250, 0.02
_numbers = count()


@click.command()
@click.option("--rate", default=1_000, show_default=True, help="Transactions a second.")
@click.option("--seconds", default=20, show_default=True, help="Length of one run.")
@click.option("--connections", default=1, show_default=True, help="Of the load tester.")
def main(rate: int, seconds: int, connections: int) -> None:
    """Print the numbers sent and committed, and the response times."""
    os.sched_setaffinity(0, {1})
    program = _built()
    with TemporaryDirectory() as scratch:
        settings = {**COMMON, "mempool_size": 200_000}
        with noderpc_start(Path(scratch), settings) as server, server.awake():
            click.echo(f"alone: {_shown(list(_timed(server, seconds / 4)))}")
            for method in ("sync", "async"):
                flags = ["-r", rate, "-T", seconds, "-c", connections, "-s", _SIZE]
                flags += ["--broadcast-tx-method", method]
                _measure(server, [program, *map(str, flags)], method, seconds)


def _built() -> Path:
    folder = CACHE / "loadtime"
    if not (folder / "load").exists():
        environment = {**os.environ, "GOBIN": str(folder)}
        subprocess.run(["go", "install", _COMMAND], env=environment, check=True)
    return folder / "load"


def _measure(server: Server, words: list[str | Path], method: str, seconds: int) -> None:
    until(lambda: _waiting(server) == 0, "all transactions in blocks", every_s=0.2)
    since, cpu_s = _height(server), server.cpu_s()
    endpoint = server.url.replace("http", "ws", 1) + "/websocket"
    with NamedTemporaryFile("r", suffix=".csv") as stats:
        words = [*words, "--endpoints", endpoint, "--stats-output", stats.name]
        load = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times = list(_timed(server, seconds - 1))
        load.wait(timeout=PATIENCE_S)
        (sent,) = (row["Value"] for row in DictReader(stats) if row["Parameter"] == "total_txs")
    until(lambda: _waiting(server) == 0, "all transactions in blocks", every_s=0.2)
    each_ms = 1000 * (server.cpu_s() - cpu_s) / (int(sent) + len(times))
    committed = sum(_counts(server, since + 1)) - len(times)
    click.echo(
        f"{method}: {sent} sent, {committed} committed, {each_ms:.2f} ms of processor time"
        f" each; {_shown(times)}"
    )


def _timed(server: Server, seconds: float) -> Iterator[float]:
    """Send a transaction every 20 ms; yield each response time."""
    client = HTTPConnection(str(urlsplit(server.url).netloc), timeout=PATIENCE_S)
    began = time.monotonic()
    for turn in range(int(seconds / _EVERY_S)):
        due = began + turn * _EVERY_S
        time.sleep(max(0.0, due - time.monotonic()))
        client.request("POST", "/", _call(), {"Content-Type": "application/json"})
        answer = json.load(client.getresponse())
        assert answer["result"]["code"] == 0, answer
        # The time counts from when the request was due, so a late predecessor makes it late,
        # too.
        yield time.monotonic() - due
    client.close()


def _call() -> str:
    tx = (b"timed%d=" % next(_numbers)).ljust(_SIZE, b"x")
    call = {"jsonrpc": "2.0", "id": 1, "method": "broadcast_tx_sync"}
    return json.dumps({**call, "params": {"tx": base64.b64encode(tx).decode()}})


def _shown(times: list[float]) -> str:
    half, almost_all = median(times), quantiles(times, n=100)[-1]
    return f"half in {1000 * half:.1f} ms, 99 % in {1000 * almost_all:.1f} ms"


def _waiting(server: Server) -> int:
    answer = json.loads(server.ask("/num_unconfirmed_txs"))
    return int(answer["result"]["n_txs"])


def _height(server: Server) -> int:
    status = json.loads(server.ask("/status"))["result"]
    return int(status["sync_info"]["latest_block_height"])


def _counts(server: Server, low: int) -> Iterator[int]:
    """Yield the number of transactions of each block from a height on."""
    for height in range(low, _height(server) + 1):
        metas = server.ask(f"/blockchain?minHeight={height}&maxHeight={height}")
        (meta,) = json.loads(metas)["result"]["block_metas"]
        yield int(meta["num_txs"])


if __name__ == "__main__":
    main()
