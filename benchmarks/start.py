"""Start time and memory of ``noderpc start`` in an empty folder."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from tempfile import mkdtemp

import click

from .cold import new_txs
from .compare import Bench
from .peers.ours import noderpc_start
from .process import Server
from .table import Table, verdict
from .wrk import Ask, load

_SOONEST_S, _MOST_MB = 1.0, 80.0
_LOAD_S = 30
_READS = ("/status", "/block", "/block_results", "/validators", "/abci_query?data=%22k%22")


def compare(bench: Bench) -> Table:
    """Return the table of seconds and megabytes, of new nodes and of one after some load."""
    seconds, idle = list[float](), list[float]()
    for _ in range(bench.rounds):
        began = time.monotonic()
        home = Path(mkdtemp(dir=bench.scratch))
        with noderpc_start(home, {"dialect": "comet-0.38"}) as server, server.awake():
            server.ask("/health")
            seconds.append(time.monotonic() - began)
            idle.append(_serving_mb(server))
            others = sum(server.memory_mb().values()) - idle[-1]
            click.echo(f"{seconds[-1]:.2f} s, {idle[-1]:.0f} MB")
    return Table(
        "start",
        ("What", "Found", "Target", "Met"),
        (
            _line("Start to first answer, s", statistics.median(seconds), _SOONEST_S),
            _line("Memory of the serving process, idle, MB", statistics.median(idle), _MOST_MB),
            _line(f"The same after {_LOAD_S} s of load", _loaded_mb(bench)),
            _line("Memory of its supervisor, MB", others),
        ),
    )


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
