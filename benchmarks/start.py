"""Start time and memory of ``noderpc start`` in an empty folder, and time of the import."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click

from .cold import new_txs
from .compare import Bench
from .peers import MissingError
from .peers.anvil import anvil
from .peers.ours import noderpc_start
from .process import Server, until
from .table import Table, verdict
from .wrk import Ask, load

_SOONEST_S, _MOST_MB = 0.5, 80.0
_DEV_S, _MINED_S, _MOST_IMPORTS = 1.0, 1.5, 1.7
# The processes of a start run side by side.
_CORES = "0,1"
_LOAD_S = 30
_READS = ("/status", "/block", "/block_results", "/validators", "/abci_query?data=%22k%22")


def compare(bench: Bench) -> Table:
    """Return the table of seconds and megabytes, of new nodes and of one after some load."""
    seconds, idle = list[float](), list[float]()
    for _ in range(bench.rounds):
        began = time.monotonic()
        home = Path(mkdtemp(dir=bench.scratch))
        started = noderpc_start(home, {"dialect": "comet-0.38"}, _CORES)
        with started as server, server.awake():
            server.ask("/status")
            seconds.append(time.monotonic() - began)
            idle.append(_serving_mb(server))
            others = sum(server.memory_mb().values()) - idle[-1]
            click.echo(f"{seconds[-1]:.2f} s, {idle[-1]:.0f} MB")
    return Table(
        "start",
        ("What", "Found", "Target", "Met"),
        (
            _line("Import of noderpc_bp / import of Flask", _imports(bench), _MOST_IMPORTS),
            _line("Start to first answer, s", statistics.median(seconds), _SOONEST_S),
            *_dev_lines(bench),
            _line("Memory of the serving process, idle, MB", statistics.median(idle), _MOST_MB),
            _line(f"The same after {_LOAD_S} s of load", _loaded_mb(bench)),
            _line("Memory of its supervisor, MB", others),
        ),
    )


def _imports(bench: Bench) -> float:
    """Return the time of importing the extension as a multiple of Flask's."""
    imports = ("import flask", "from flask_noderpc import noderpc_bp")
    found = {line: list[float]() for line in imports}
    for line in imports * (bench.rounds + 1):
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", line], check=True)
        found[line].append(time.monotonic() - began)
    # The first round may have to compile the modules.
    flask, ours = (statistics.median(found[line][1:]) for line in imports)
    return ours / flask


def _dev_lines(bench: Bench) -> Iterator[tuple[str, ...]]:
    """Yield the seconds of a development chain until its first response and its first mined
    transaction, and those of anvil if it is installed."""

    def ours() -> AbstractContextManager[Server]:
        settings = {"dev": True, "json_rpc_enable": True}
        return noderpc_start(Path(mkdtemp(dir=bench.scratch)), settings, _CORES)

    answered, mined = _dev_seconds(bench, ours)
    yield _line("--dev: start to first answer, s", answered, _DEV_S)
    yield _line("--dev: start to first mined transaction, s", mined, _MINED_S)
    try:
        answered, mined = _dev_seconds(
            bench, lambda: anvil(1337, block_time=False, cores=_CORES)
        )
    except MissingError as error:
        click.echo(f"anvil is missing: {error}")
        return
    yield _line("anvil: start to first answer, s", answered)
    yield _line("anvil: start to first mined transaction, s", mined)


def _dev_seconds(
    bench: Bench, run: Callable[[], AbstractContextManager[Server]]
) -> tuple[float, float]:
    """Return the medians of both times of a development chain."""
    times = list[tuple[float, float]]()
    for _ in range(bench.rounds):
        began = time.monotonic()
        with run() as server, server.awake():
            _call(server, "eth_blockNumber")
            answered = time.monotonic() - began
            sender, receiver, *_ = _call(server, "eth_accounts")
            tx = {"from": sender, "to": receiver, "value": "0x1"}
            digest = _call(server, "eth_sendTransaction", tx)
            until(partial(_is_mined, server, digest), "a receipt", every_s=0.005)
            times.append((answered, time.monotonic() - began))
            click.echo(f"{answered:.2f} s, mined {times[-1][1]:.2f} s")
    answered, mined = map(statistics.median, zip(*times, strict=True))
    return answered, mined


def _is_mined(server: Server, digest: str) -> bool:
    return _call(server, "eth_getTransactionReceipt", digest) is not None


def _call(server: Server, method: str, *params: object) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return json.loads(server.ask(body=json.dumps(body)))["result"]


def _loaded_mb(bench: Bench) -> float:
    """Return the memory after transactions, and reads of them."""
    home = Path(mkdtemp(dir=bench.scratch))
    asks = [new_txs(), *(Ask((path,)) for path in _READS)]
    with noderpc_start(home, {"mempool_size": 1_000_000}) as server, server.awake():
        server.ask("/health")
        for ask in asks:
            load(server.url, ask, _LOAD_S // len(asks))
        return _serving_mb(server)


def _serving_mb(server: Server) -> float:
    """Return the memory of the serving process, which the supervisor started."""
    return list(server.memory_mb().values())[1]


def _line(what: str, found: float, most: float | None = None) -> tuple[str, ...]:
    shown = f"{found:.2f}"
    if most is None:
        return what, shown, "", ""
    return what, shown, *verdict([f"{most:g} at most"], [shown] if found > most else [])
