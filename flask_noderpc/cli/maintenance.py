"""Work on stores that ``flask noderpc`` and ``noderpc`` share, with its options and errors."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ..backends.base.location import is_url
from ..errors import BackendError, NodeRPCError

if TYPE_CHECKING:
    from ..backends.base.store import ChainStore
    from ..companion.backend import CompanionBackend

T = TypeVar("T")

_SHOW_EACH_S = 0.5


class StoreName(click.Path):
    """A SQLite file, or a URL of PostgreSQL."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        """Check a file as ``click.Path`` does; a URL is checked when it is opened."""
        return str(value if is_url(value) else super().convert(value, param, ctx))


class CannotStart(click.ClickException):
    """An error of the settings or of the store, with exit status 78."""

    exit_code = os.EX_CONFIG


class Interrupted(click.ClickException):
    """A verification that can go on later."""


def run(
    action: Callable[[], T], failure: type[click.ClickException] = click.ClickException
) -> T:
    """Return the action's result; show an error of this package in one line."""
    try:
        return action()
    except NodeRPCError as error:
        raise failure(str(error)) from None


from_height = click.option(
    "--from", "first", type=int, default=0, help="Go on with a verification from this height."
)


def verify(store: ChainStore, first: int = 0) -> None:
    """Verify a chain from a height on, with progress, and close its store."""

    def work() -> int:
        check_chain(store)
        low, verified = max(first, store.base_height()), first
        with click.progressbar(
            length=max(0, store.latest_height() - low + 1), label="verifying"
        ) as bar:

            def show(height: int) -> None:
                nonlocal verified
                verified = height
                bar.update(1)

            try:
                return store.verify(show, first)
            except KeyboardInterrupt:
                raise Interrupted(
                    f"interrupted: --from {max(verified, low)} goes on from there"
                ) from None

    with closing(store):
        click.echo(f"{run(work)} blocks verified")
        for source, (count, low, high) in store.sources().items():
            click.echo(f"from {source}: {count} blocks between {low} and {high}")
        for field, (count, low, high) in store.all_unverified().items():
            click.echo(
                f"not looked at when stored: {field} of {count} blocks between {low} and {high}"
            )
        if origin := store.genesis_source():
            click.echo(f"not verified: the genesis document, from {origin.source}")
        for field, (count, low, high) in store.all_unchecked().items():
            click.echo(
                f"not verified: {field} of {count} blocks between {low} and {high}, which this"
                " chain computes in its own way"
            )


def read_only(path: str) -> ChainStore:
    """Return the store of a file or URL, which is not written to."""
    from ..backends import open_store

    return run(lambda: open_store(path, read_only=True))


def check_chain(store: ChainStore) -> None:
    """Raise :exc:`click.ClickException` for a store without a chain."""
    if not store.has_chain():
        raise click.ClickException(f"{store.location.shown} holds no chain")


def prune(store: ChainStore, retain: int) -> None:
    """Prune a chain, with progress, and close its store."""

    def work() -> int:
        check_chain(store)
        count = store.latest_height() - store.base_height() + 1 - retain
        with click.progressbar(length=max(0, count), label="pruning") as bar:
            return store.prune(retain, bar.update)

    with closing(store):
        removed = run(work)
        click.echo(f"{removed} blocks removed, the lowest is {store.base_height()}")


def follow(backends: Sequence[CompanionBackend]) -> None:
    """Follow chains until a signal ends it, with the progress of the backfill."""
    from ..server.companion_watch import BackfillBar

    ended, bar = threading.Event(), BackfillBar()
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s: %(message)s")
    if not sys.stdout.isatty():
        logging.getLogger("flask_noderpc.companion.progress").setLevel(logging.INFO)
    before = {
        number: signal.signal(number, lambda *_: ended.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        for backend in backends:
            backend.follow()
        while not ended.wait(_SHOW_EACH_S):
            with suppress(BackendError):
                # Of several chains the bars would overwrite each other.
                bar.show(backends[0].backfill_progress())
    finally:
        bar.close()
        for backend in backends:
            backend.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def backup(store: ChainStore, target: Path, first: int = 0) -> None:
    """Copy a chain to a new file and verify the copy, from a height on."""
    copy = target.with_name(f"{target.name}.unverified")
    if target.exists():
        raise click.ClickException(f"{target}: is there already, a backup needs a new file")
    if not first:
        _copy(store, copy)
    elif not copy.exists():
        raise click.ClickException(f"{copy} is missing: leave --from out to copy anew")
    try:
        verify(read_only(str(copy)), first)
    except Interrupted:
        raise
    except BaseException:
        # An inconsistent copy must not be mistaken for a backup.
        copy.unlink()
        raise
    copy.rename(target)
    click.echo(f"{target} is a backup")


def _copy(store: ChainStore, target: Path) -> None:
    def work() -> None:
        check_chain(store)
        # Of a verification that was interrupted.
        target.unlink(missing_ok=True)
        with click.progressbar(length=1, label="copying") as bar:

            def show(remaining: int, total: int) -> None:
                bar.length = max(1, total)
                bar.update(total - remaining - bar.pos)

            store.backup(target, show)

    with closing(store):
        run(work)
