"""Commands ``noderpc verify``, ``prune``, ``migrate``, ``compact`` and ``backup`` for
stores."""

from __future__ import annotations

from pathlib import Path

import click

from ..backends.base.location import url_store
from ..feature import application_kinds
from ..server.flags import database_of
from ..server.output import REFUSED, USAGE, Progress
from .command import Failed
from .maintenance import (
    StoreName,
    backup,
    check_chain,
    from_height,
    prune,
    read_only,
    verify,
)
from .node import main
from .verification import Plan

_home = click.option(
    "--home",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="Folder of a node whose store is used, instead of DATABASE.",
)
_file = click.argument("database", required=False, type=StoreName(exists=True, dir_okay=False))


def _store_path(database: str | None, home: Path | None) -> str:
    """Return the path or URL of the store that is named, or of a home's store, which must
    exist."""
    if (database is None) == (home is None):
        raise click.UsageError("expected either DATABASE, or a node's folder with --home")
    if home is None:
        assert database is not None
        return database
    path = database_of(home)
    if not url_store(path) and not Path(path).is_file():
        raise Failed(
            f"{path}: there is no store; name the file of a chain, or the home of a node",
            REFUSED,
        )
    return path


@main.command(
    "verify",
    examples=[
        ("noderpc verify chain.db", "A file, which a node may be using."),
        ("noderpc verify --home ~/.noderpc", "The chain of a node's folder."),
        ("noderpc verify chain.db --jobs 8", "With eight processes."),
        ("noderpc verify chain.db --sample 10000", "Some blocks of a long chain."),
    ],
)
@_file
@_home
@from_height
@click.option(
    "--to", "last", type=click.IntRange(min=1), metavar="HEIGHT", help="Highest height."
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Verify N blocks only, spread at random over the range.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of processes.",
)
@click.option(
    "--all-signatures",
    is_flag=True,
    help="Verify signatures beyond two thirds of the voting power, too. The header of the next"
    " block has their hash.",
)
def verify_at(
    database: str | None,
    home: Path | None,
    first: int,
    last: int | None,
    sample: int | None,
    jobs: int,
    all_signatures: bool,
) -> None:
    """Check every hash and signature of a chain.

    DATABASE is its SQLite file, or a postgresql:// URL.
    """
    # Open it read-only, so that another file is not changed into a store.
    plan = Plan(first, last, all_signatures, sample, jobs)
    verify(read_only(_store_path(database, home)), plan)


@main.command(
    "prune",
    examples=[("noderpc prune chain.db --retain 100000", "The latest 100,000 blocks stay.")],
)
@_file
@_home
@click.option("--retain", type=int, required=True, help="Number of latest blocks to retain.")
@click.option(
    "--bulk",
    "in_bulk",
    is_flag=True,
    help="Prune in transactions of about a second, which is faster, but a running node has to"
    " wait for them.",
)
def prune_at(database: str | None, home: Path | None, retain: int, in_bulk: bool) -> None:
    """Remove the old blocks of a chain.

    DATABASE is its SQLite file, or a postgresql:// URL. The node may be running meanwhile.
    """
    from ..backends import open_store

    path = _store_path(database, home)
    readable = read_only(path)
    check_chain(readable)
    # Find the application by a key of its state, as a subclass has another name.
    state = readable.app_state
    minimum = max(
        kind.blocks_needed
        for kind in application_kinds().values()
        if not kind.state_key or state.get(kind.state_key) is not None
    )
    readable.close()
    if retain < minimum:
        raise Failed(
            f"--retain: expected at least {minimum}, which the application needs, got {retain}",
            USAGE,
        )
    prune(open_store(path), retain, in_bulk=in_bulk)


@main.command(
    "migrate",
    examples=[("noderpc migrate chain.db", "Once, after the upgrade of the package.")],
)
@_file
@_home
def migrate_at(database: str | None, home: Path | None) -> None:
    """Convert a large store of version 0.1 to this version's tables.

    DATABASE is its SQLite file. No node may be running. The command can be interrupted, and
    continues when it is called again; the store can be opened after it has finished. The file
    does not shrink, but its free pages are reused.
    """
    from ..backends import open_store

    store = open_store(_store_path(database, home))

    def work() -> int:
        with Progress("migrating") as bar:

            def show(remaining: int) -> None:
                total = max(bar.total, remaining)
                bar.show(total - remaining, total)

            return store.migrate(show)

    click.echo(f"{work()} blocks migrated")


@main.command(
    "compact",
    examples=[("noderpc compact chain.db", "After much was pruned.")],
)
@_file
@_home
def compact_at(database: str | None, home: Path | None) -> None:
    """Make the file of a chain as small as possible.

    DATABASE is its SQLite file, which no process may have open. A copy is written to the same
    folder, and replaces the file when it is complete.
    """
    from ..backends import open_store

    with Progress("compacting", unit="MB") as bar:

        def show(done: int, total: int) -> None:
            bar.show(done >> 20, total >> 20)

        before, after = open_store(_store_path(database, home)).compact(show)
    click.echo(f"{before >> 20} MB before, {after >> 20} MB after")


@main.command(
    "backup",
    examples=[
        ("noderpc backup chain.db /backup/chain.db", "A copy of a file."),
        ("noderpc backup --home ~/.noderpc copy.db", "A copy of the chain of a node's folder."),
    ],
)
@click.argument("paths", nargs=-1, metavar="[DATABASE] TARGET")
@_home
@from_height
def backup_at(paths: tuple[str, ...], home: Path | None, first: int) -> None:
    """Copy a chain to a new file, TARGET.

    DATABASE is its SQLite file. The node may be running meanwhile. Every hash and signature of
    the copy is checked.
    """
    if len(paths) != (2 if home is None else 1):
        raise click.UsageError("expected DATABASE, or a node's folder with --home, and TARGET")
    database = None if home else paths[0]
    if database is not None and not url_store(database) and not Path(database).is_file():
        raise click.UsageError(f"{database}: there is no store; name the file of a chain")
    backup(read_only(_store_path(database, home)), Path(paths[-1]), first)
