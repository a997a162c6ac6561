"""Pruning of a long chain: ``python -m benchmarks.realistic.prune``.

Makes a chain, or continues it, and prunes a copy. Prints the processor time of a block, how
long each transaction holds the writer, and the file's size before and after.
"""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends import open_store
from flask_noderpc.backends.sql.store import ChainStore

from ..chains import CACHE
from . import steps
from .__main__ import extend
from .content import SHAPES


@click.command()
@click.option("--shape", type=click.Choice(list(SHAPES)), default="small", show_default=True)
@click.option("--blocks", "count", default=100_100, show_default=True)
@click.option("--retain", default=100, show_default=True, help="Blocks that stay.")
@click.option("--folder", type=click.Path(path_type=Path), default=CACHE / "realistic")
@click.option("--database", help="A postgresql:// URL of an empty database to use instead.")
@click.option("--bulk", "in_bulk", is_flag=True, help="Prune as noderpc prune --bulk does.")
def main(
    shape: str, count: int, retain: int, folder: Path, database: str | None, in_bulk: bool
) -> None:
    """Print the steps of pruning a chain."""
    if database:
        with closing(open_store(database)) as remote:
            extend(remote, SHAPES[shape], count, signed=False)
            prune(remote, retain, in_bulk)
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{shape}-pruned.db"
    with TemporaryDirectory(dir=folder) as scratch:
        copy = Path(scratch) / "chain.db"
        with closing(SQLiteBackend(path)) as store:
            extend(store, SHAPES[shape], count, signed=False)
            store.backup(copy)
        before = copy.stat().st_size
        with closing(SQLiteBackend(copy)) as store:
            prune(store, retain, in_bulk)
        click.echo(f"{before / 1e6:.0f} MB before, {copy.stat().st_size / 1e6:.0f} after")


def prune(store: ChainStore, retain: int, in_bulk: bool) -> None:
    """Prune a store, and print the time that it takes."""
    latest = store.reads.latest_height()
    blocks = latest - store.reads.base_height() + 1 - retain
    began = time.process_time()
    durations = steps.timed(lambda: store.prune_some(latest - retain + 1, in_bulk=in_bulk))
    cpu = time.process_time() - began
    click.echo(
        f"{blocks} blocks pruned, {blocks / sum(durations):.0f} a second;"
        f" {1000 * cpu / blocks:.2f} ms of CPU a block in this process"
    )
    steps.show(durations)


if __name__ == "__main__":
    main()
