"""Migration of a store of version 0.1: ``python -m benchmarks.realistic.migrate FILE``.

Version 0.1's own ``python -m benchmarks.realistic`` makes such a store. The benchmark migrates
a copy. It prints how long each transaction holds the writer, and the file's size before and
after.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.sqlite.connection import SQLiteFile

from . import steps


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def main(file: Path) -> None:
    """Print the steps of migrating a copy of the store in FILE."""
    with TemporaryDirectory(dir=file.parent) as scratch:
        copy = Path(scratch) / "chain.db"
        shutil.copy(file, copy)
        migration = SQLiteFile(copy).migrate()
        total = next(migration)
        durations = steps.timed(lambda: _step(migration))
        with closing(SQLiteBackend(copy)) as store:
            assert store.reads.latest_height() - store.reads.base_height() + 1 == total
        click.echo(
            f"{total} blocks migrated, {total / sum(durations):.0f} a second;"
            f" {file.stat().st_size / 1e6:.0f} MB before, {copy.stat().st_size / 1e6:.0f} after"
        )
    steps.show(durations)


def _step(migration: Iterator[int]) -> bool:
    return next(migration, None) is not None


if __name__ == "__main__":
    main()
