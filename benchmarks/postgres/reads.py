"""Requests a second of ``noderpc start`` over each store, uncached and cached."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import cache
from random import Random

import click

from flask_noderpc.backends import open_store
from flask_noderpc.protocol.comet.hashes import tx_hash
from tests.helpers.postgres import Cluster

from ..compare import Bench, by_turns
from ..peers.ours import START_COMMAND, ours, reading
from ..process import Server
from ..realistic.__main__ import extend
from ..realistic.content import SHAPES, content
from ..wrk import Ask
from .cluster import cpu_s

_SHAPE = SHAPES["busy"]
_REQUESTS, _TXS = 20_000, 300
_SQLITE, _POSTGRES = "SQLite", "PostgreSQL"


@cache
def _tx(height: int) -> str:
    return tx_hash(content(_SHAPE, height).txs[3]).hex()


_PATHS: dict[str, Callable[[int], str]] = {
    "block": lambda height: f"/block?height={height}",
    "block_results": lambda height: f"/block_results?height={height}",
    "tx": lambda height: f"/tx?hash=0x{_tx(height)}",
    "validators": lambda height: f"/validators?height={height}&per_page=100",
    "header": lambda height: f"/header?height={height}",
}


def compare(made: Cluster, bench: Bench, count: int) -> None:
    """Print the requests a second of both stores, and the processor time of a request."""
    locations = {_SQLITE: str(bench.scratch / "reads.db"), _POSTGRES: made.new_database()}
    for location in locations.values():
        with closing(open_store(location)) as store:
            extend(store, _SHAPE, count, signed=False)
    for kind, cache_bytes in (("uncached", 0), ("cached", 256 << 20)):
        with ExitStack() as stack:
            servers = {
                name: stack.enter_context(
                    ours(
                        START_COMMAND,
                        bench.scratch / f"{name} {kind}",
                        reading(location, cache_bytes=cache_bytes),
                    )
                )
                for name, location in locations.items()
            }
            for name, path in _PATHS.items():
                _compare(made, bench, count, f"{name}, {kind}", path, servers)


def _compare(
    made: Cluster,
    bench: Bench,
    count: int,
    name: str,
    path: Callable[[int], str],
    servers: dict[str, Server],
) -> None:
    random = Random(name)
    heights = [random.randint(2, count - 1) for _ in range(_TXS)]
    if not name.startswith("tx"):
        heights = [random.randint(2, count - 1) for _ in range(_REQUESTS)]
    asked = Ask(tuple(map(path, heights)))
    before = {name: server.cpu_s() for name, server in servers.items()}
    database_before = cpu_s(made)
    runs = by_turns(bench, name, servers, lambda _: asked)
    # The median estimates the mean of the runs.
    asked_of = {
        name: run.per_second * bench.seconds * bench.rounds for name, run in runs.items()
    }
    own = {
        name: 1000 * (server.cpu_s() - before[name]) / asked_of[name]
        for name, server in servers.items()
    }
    database_ms = 1000 * (cpu_s(made) - database_before) / asked_of[_POSTGRES]
    click.echo(
        f"    {runs[_POSTGRES].per_second / runs[_SQLITE].per_second:.2f} of SQLite's,"
        f" {own[_SQLITE] / own[_POSTGRES]:.2f} by the server's CPU time: {own[_SQLITE]:.2f} and"
        f" {own[_POSTGRES]:.2f} ms a request, and {database_ms:.2f} of the database's processes"
    )
