"""PostgreSQL compared with SQLite: ``python -m benchmarks.postgres``.

Makes a private cluster and chains in both stores, and measures both alternately: blocks a
second, the requests a second of one server, the processor time of a request with several
servers or workers, and the times of first pages of searches. Server and database share two
cores, as a writer and its database do. It needs wrk and PostgreSQL.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from ..chains import CACHE
from ..compare import Bench
from . import reads, searches, servers, workers, writes
from .cluster import cluster

_PARTS = ("writes", "reads", "servers", "workers", "searches")


@click.command()
@click.option("--only", type=click.Choice(_PARTS), multiple=True, default=_PARTS)
@click.option("--blocks", default=400, show_default=True, help="That are written and read.")
@click.option("--long", default=200_000, show_default=True, help="Blocks that are searched.")
@click.option("--rounds", default=3, show_default=True, help="Of which the median is shown.")
@click.option("--seconds", default=2, show_default=True, help="Length of one run.")
def main(only: tuple[str, ...], blocks: int, long: int, rounds: int, seconds: int) -> None:
    """Print the figures of each store on two cores."""
    os.sched_setaffinity(0, {0, 1})
    with TemporaryDirectory() as scratch, cluster() as made:
        bench = Bench(rounds, seconds, CACHE, Path(scratch))
        if "writes" in only:
            writes.compare(made, Path(scratch), blocks, rounds)
        if "reads" in only:
            reads.compare(made, bench, blocks)
        if "servers" in only:
            servers.compare(made, bench, blocks)
        if "workers" in only:
            workers.compare(made, bench, blocks)
        if "searches" in only:
            searches.compare(made, Path(scratch), long)


if __name__ == "__main__":
    main()
