"""Speed of a node compared with other servers: ``python -m benchmarks``.

Starts each server on the first core and the load on the second, measures the servers
alternately, and prints ratios. Needs wrk (Debian's package of that name); missing peers are
left out.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from . import cold, evm, fanout, intake, long, mixed, nodes, report, start
from .chains import CACHE
from .compare import Bench
from .table import Table

GROUPS: dict[str, Callable[[Bench], Table]] = {
    "nodes": nodes.compare,
    "cold": cold.compare,
    "evm": evm.compare,
    "mixed": mixed.compare,
    "fanout": fanout.compare,
    "intake": intake.compare,
    "long": long.compare,
    "start": start.compare,
}


@click.command()
@click.option("--rounds", default=3, show_default=True, help="Of which the median is shown.")
@click.option("--seconds", default=1, show_default=True, help="Length of one run.")
@click.option("--only", type=click.Choice(list(GROUPS)), multiple=True, help="Not all groups.")
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    default=CACHE,
    show_default=True,
    help="Where what takes long to build is kept.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    help="Folder for tables and chart; in the repository the README is renewed, too.",
)
def main(
    rounds: int, seconds: int, only: tuple[str, ...], cache: Path, save: Path | None
) -> None:
    """Print the tables."""
    if only and save is not None:
        raise click.UsageError("--save wants all groups, as they are shown side by side")
    for tool in ("wrk", "taskset"):
        if shutil.which(tool) is None:
            raise click.ClickException(f"{tool} is not installed")
    os.sched_setaffinity(0, {1})
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(rounds, seconds, cache, Path(scratch))
        tables = list[Table]()
        for name in only or GROUPS:
            click.echo(f"== {name}")
            tables.append(GROUPS[name](bench))
        for table in tables:
            click.echo(f"\n{table.text()}")
        click.echo("\n" + "\n".join(report.about(bench)))
        if save is not None:
            report.save(save, tables, bench)


if __name__ == "__main__":
    main()
