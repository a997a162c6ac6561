"""Requests a second, and processor time of a request, of one worker and of two."""

from __future__ import annotations

from contextlib import ExitStack, closing
from random import Random
from statistics import median

import click

from flask_noderpc.backends import open_store
from tests.helpers.postgres import Cluster

from ..compare import Bench, sample
from ..peers.ours import noderpc_start, reading
from ..process import Server
from ..realistic.__main__ import extend
from ..realistic.content import SHAPES
from ..wrk import Ask, load
from .cluster import cpu_s

_SHAPE = SHAPES["busy"]
_REQUESTS, _NUMBERS = 20_000, (1, 2)
# Number of different requests, which the first run puts into the caches of all workers.
_HEIGHTS = 50
# The first core is the servers' alone; the second is shared with the load.
_CORES = "0,1"


def compare(made: Cluster, bench: Bench, count: int) -> None:
    """Print the figures of both stores for blocks at random heights, uncached and cached."""
    random = Random(count)
    known = [random.randint(2, count - 1) for _ in range(_HEIGHTS)]
    heights = [random.choice(known) for _ in range(_REQUESTS)]
    asked = Ask(tuple(f"/block?height={height}" for height in heights))
    locations = {"SQLite": str(bench.scratch / "workers.db"), "PostgreSQL": made.new_database()}
    for store, location in locations.items():
        with closing(open_store(location)) as opened:
            extend(opened, _SHAPE, count, signed=False)
        for kind, cache_bytes in (("uncached", 0), ("cached", 1 << 30)):
            with ExitStack() as stack:
                servers = {
                    number: stack.enter_context(
                        noderpc_start(
                            bench.scratch / f"{store} {kind} {number}",
                            reading(location, cache_bytes=cache_bytes, workers=number),
                            _CORES,
                        )
                    )
                    for number in _NUMBERS
                }
                _compare(f"{store}, {kind}", made, bench, servers, asked)


def _compare(
    name: str, made: Cluster, bench: Bench, servers: dict[int, Server], asked: Ask
) -> None:
    for server in servers.values():
        sample(server, lambda: asked)
        # The first run fills the caches, and is not measured.
        _run(made, bench, server, asked)
    found: dict[int, list[tuple[float, float]]] = {number: [] for number in servers}
    # The numbers are measured alternately, as the machine's speed changes.
    for _ in range(bench.rounds):
        for number, server in servers.items():
            found[number].append(_run(made, bench, server, asked))
    rates, costs = (
        {number: median(run[which] for run in runs) for number, runs in found.items()}
        for which in (0, 1)
    )
    for number in servers:
        click.echo(
            f"{name}, workers: {number}: {rates[number]:,.0f} requests a second, and"
            f" {costs[number]:.3f} ms of processor time for each"
        )
    one, two = _NUMBERS
    click.echo(
        f"    {rates[two] / rates[one]:.2f} of one worker's requests, and"
        f" {costs[two] / costs[one]:.2f} of the time for each"
    )


def _run(made: Cluster, bench: Bench, server: Server, asked: Ask) -> tuple[float, float]:
    """Return the requests a second, and the milliseconds of the server and the database for
    each."""
    with server.awake():
        before = server.cpu_s() + cpu_s(made)
        rate = load(server.url, asked, bench.seconds).per_second
        spent = server.cpu_s() + cpu_s(made) - before
    return rate, 1000 * spent / (rate * bench.seconds)
