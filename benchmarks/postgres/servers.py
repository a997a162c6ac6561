"""Processor time of a request with one, two and four servers on one database."""

from __future__ import annotations

from contextlib import ExitStack, closing
from random import Random
from statistics import median
from threading import Thread

import click

from flask_noderpc.backends import open_store
from tests.helpers.postgres import Cluster

from ..compare import Bench
from ..peers.ours import START_COMMAND, ours, reading
from ..process import Server
from ..realistic.__main__ import extend
from ..realistic.content import SHAPES
from ..wrk import Ask, load
from .cluster import cpu_s

_SHAPE = SHAPES["busy"]
_REQUESTS, _NUMBERS = 20_000, (1, 2, 4)


def compare(made: Cluster, bench: Bench, count: int) -> None:
    """Print the processor time of a request for a block at a random height, with nothing
    cached."""
    url = made.new_database()
    with closing(open_store(url)) as store:
        extend(store, _SHAPE, count, signed=False)
    random = Random(count)
    asked = Ask(
        tuple(f"/block?height={random.randint(2, count - 1)}" for _ in range(_REQUESTS)),
        connections=4,
    )
    with ExitStack() as stack:
        servers = [
            stack.enter_context(
                ours(
                    START_COMMAND,
                    bench.scratch / f"server {number}",
                    reading(url, cache_bytes=0),
                )
            )
            for number in range(max(_NUMBERS))
        ]
        # Servers are measured alternately, as the machine's speed changes.
        costs: dict[int, list[tuple[float, float]]] = {number: [] for number in _NUMBERS}
        for _ in range(bench.rounds):
            for number in _NUMBERS:
                costs[number].append(_cost(made, bench, servers[:number], asked))
    for number, found in costs.items():
        own, database = (median(part) for part in zip(*found, strict=True))
        click.echo(
            f"{number} servers: {own:.3f} ms of a server and {database:.3f} ms of the"
            f" database a request, {own + database:.3f} ms in all"
        )


def _cost(
    made: Cluster, bench: Bench, servers: list[Server], asked: Ask
) -> tuple[float, float]:
    """Return the milliseconds that the servers and the database take for a request."""
    own, database = _cpu_s(servers), cpu_s(made)
    counts: list[float] = []

    def ask(server: Server) -> None:
        counts.append(load(server.url, asked, bench.seconds).per_second * bench.seconds)

    with ExitStack() as awake:
        for server in servers:
            awake.enter_context(server.awake())
        threads = [Thread(target=ask, args=(server,)) for server in servers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    requests = sum(counts)
    return (
        1000 * (_cpu_s(servers) - own) / requests,
        1000 * (cpu_s(made) - database) / requests,
    )


def _cpu_s(servers: list[Server]) -> float:
    return sum(server.cpu_s() for server in servers)
