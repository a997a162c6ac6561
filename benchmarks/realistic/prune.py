"""Pruning of a long chain: ``python -m benchmarks.realistic.prune``.

Makes a chain, or continues it, and prunes a copy. Prints how long each transaction holds the
writer, and the file's size before and after.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from flask_noderpc import SQLiteBackend

from ..chains import CACHE
from . import steps
from .__main__ import extend
from .content import SHAPES


@click.command()
@click.option("--shape", type=click.Choice(list(SHAPES)), default="small", show_default=True)
@click.option("--blocks", "count", default=100_100, show_default=True)
@click.option("--retain", default=100, show_default=True, help="Blocks that stay.")
@click.option("--folder", type=click.Path(path_type=Path), default=CACHE / "realistic")
def main(shape: str, count: int, retain: int, folder: Path) -> None:
    """Print the steps of pruning a chain."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{shape}-pruned.db"
    with TemporaryDirectory(dir=folder) as scratch:
        copy = Path(scratch) / "chain.db"
        with closing(SQLiteBackend(path)) as store:
            extend(store, SHAPES[shape], count, signed=False)
            store.backup(copy)
        before = copy.stat().st_size
        with closing(SQLiteBackend(copy)) as store:
            base = store.reads.latest_height() - retain + 1
            durations = steps.timed(lambda: store.prune_some(base))
        blocks = count - retain
        click.echo(
            f"{blocks} blocks pruned, {blocks / sum(durations):.0f} a second;"
            f" {before / 1e6:.0f} MB before, {copy.stat().st_size / 1e6:.0f} after"
        )
    steps.show(durations)


if __name__ == "__main__":
    main()
