"""Verification, pruning and backup of stores, shared by ``flask noderpc`` and ``noderpc``."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..backends.base.location import url_store
from ..errors import ConfigurationError, StoreError
from ..feature import application_kinds
from ..server.output import INTERRUPTED, REFUSED, Progress
from .command import Failed
from .verification import Parts, Plan

if TYPE_CHECKING:
    from ..backends.sql.store import ChainStore


class StoreName(click.Path):
    """Parameter type of a store: a SQLite file, or a URL of PostgreSQL."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        """Return the value, after checking a file like ``click.Path``; a URL is not
        checked."""
        return str(value if url_store(value) else super().convert(value, param, ctx))


class Interrupted(Failed):
    """Error for interrupted work that can be continued later."""

    def __init__(self, message: str) -> None:
        super().__init__(message, INTERRUPTED)


from_height = click.option(
    "--from",
    "first",
    type=click.IntRange(min=0),
    metavar="HEIGHT",
    default=0,
    help="Height from which to continue an interrupted verification.",
)


def verify(store: ChainStore, plan: Plan | None = None) -> None:
    """Verify blocks of a chain, show progress and findings, and close its store."""

    with closing(store):
        check_chain(store)
        unproven = _add_application(store)
        _verify(store, plan or Plan())
        if unproven:
            click.echo(f"not verified: the app hash of the state, {unproven}")
        for source, (count, low, high) in store.sources().items():
            click.echo(f"from {source}: {count} blocks between {low} and {high}")
        for field, (count, low, high) in store.all_unverified().items():
            click.echo(
                f"not verified when stored: {field} of {count} blocks between {low} and {high}"
            )
        if origin := store.reads.genesis_source():
            click.echo(f"not verified: the genesis document, from {origin.source}")
        for name in store.unread_indexes():
            click.echo(f"not verified: the index {name}, as its feature is not installed")
        for field, (count, low, high) in store.all_unchecked().items():
            click.echo(
                f"not verified: {field} of {count} blocks between {low} and {high}, for which"
                " this chain has its own rules"
            )


def _add_application(store: ChainStore) -> str:
    """Add the application to the store, to verify its state against the app hash; return the
    reason if that is impossible, else an empty string."""
    from ..chain.from_settings import application_named
    from ..lru import CacheMemory
    from ..settings import Settings

    found = store.identity()
    if store.abci is not None or found is None or not found.application:
        return ""
    if found.application not in application_kinds():
        return f"as the application {found.application!r} is not installed"
    try:
        path, memory = store.location.path, CacheMemory()
        make = application_named(found.application, Settings(), path, memory)
        store.abci = make(store.app_state)
    except ConfigurationError as error:
        return str(error)
    return ""


def _verify(store: ChainStore, plan: Plan) -> None:
    base, latest = store.reads.base_height(), store.reads.latest_height()
    low, last = max(plan.first, base), plan.last
    heights = range(low, (latest if last is None else min(last, latest)) + 1)
    parts = Parts(heights, plan)
    try:
        store.check_file()
        with Progress("verifying", parts.blocks) as bar:
            count = parts.verify(store, bar.add)
        if plan.sample is None:
            store.verify_state()
    except StoreError as error:
        # Use the exit status of a failed check instead of the one for an unusable store.
        raise Failed(str(error)) from None
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; continue with --from {parts.next}") from None
    if plan.sample is None:
        click.echo(f"{count} blocks verified")
    else:
        click.echo(f"{count} of {len(heights)} blocks verified")
        click.echo("not verified: the other blocks, the state and the counts of the index")


def read_only(path: str) -> ChainStore:
    """Open the store of a file or URL read-only."""
    from ..backends import open_store

    return open_store(path, read_only=True)


def check_chain(store: ChainStore) -> None:
    """Raise :exc:`Failed` if a store has no chain."""
    if not store.has_chain():
        shown = store.location.display_name
        raise Failed(f"{shown} has no chain; start the node, or name another store", REFUSED)


def prune(store: ChainStore, retain: int, *, in_bulk: bool = False) -> None:
    """Remove all but the latest ``retain`` blocks, show progress, and close the store."""

    with closing(store):
        check_chain(store)
        count = store.reads.latest_height() - store.reads.base_height() + 1 - retain
        with Progress("pruning", max(0, count)) as bar:
            removed = store.prune(retain, bar.add, in_bulk=in_bulk)
        click.echo(f"{removed} blocks removed; the lowest is now {store.reads.base_height()}")


def backup(store: ChainStore, target: Path, first: int = 0) -> None:
    """Copy a chain to a new file and verify the copy; from a height above 0, only continue an
    interrupted verification."""
    copy = target.with_name(f"{target.name}.unverified")
    if target.exists():
        raise Failed(f"{target} exists already; name a new file for the backup", REFUSED)
    if not first:
        _copy(store, copy)
    elif not copy.exists():
        raise Failed(f"{copy} is missing; omit --from to copy again", REFUSED)
    try:
        verify(read_only(str(copy)), Plan(first))
    except Interrupted:
        raise
    except BaseException:
        # Remove an invalid copy, so that it is not taken for a backup.
        copy.unlink()
        raise
    copy.rename(target)
    click.echo(f"{target} is a verified backup")


def _copy(store: ChainStore, target: Path) -> None:
    with closing(store), Progress("copying", unit="pages") as bar:
        check_chain(store)
        # Remove the copy that an interrupted verification has left.
        target.unlink(missing_ok=True)
        store.backup(target, lambda remaining, total: bar.show(total - remaining, total))
