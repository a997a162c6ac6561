"""Commands ``flask noderpc …``, for the current app."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from flask import Flask, current_app
from flask.cli import AppGroup, ScriptInfo

from ..feature import page_sets
from ..server.banner import Pages
from ..server.flags import given_settings, host_flags
from ..server.output import REFUSED, USAGE, LogOptions
from ..settings import all_settings, shown_setting
from .command import Failed, GroupedCommand, OneLineGroup, log, log_flags
from .maintenance import backup, from_height, prune, verify

if TYPE_CHECKING:
    from ..backends.base.backend import ChainBackend
    from ..backends.sql.store import ChainStore
    from ..chain.embedded import EmbeddedChain
    from ..feature import PageSet
    from ..mount import Mount


class OneLineAppGroup(OneLineGroup, AppGroup):
    """A group of commands that need an app, with one-line errors."""


cli = OneLineAppGroup(
    "noderpc",
    help="Inspect, serve and maintain this app's node.",
    examples=[
        ("flask --app yourapp noderpc routes", "What the app serves."),
        ("flask --app yourapp noderpc start", "Serve the app at its node's addresses."),
    ],
)


def app_mounts() -> dict[str, Mount]:
    """Return the mounts of the current app by name; raise :exc:`Failed` if it has no mount."""
    from ..extension import mounts

    found = mounts(_app())
    if not found:
        raise Failed("this app has no node RPC; register noderpc_bp on it", REFUSED)
    return found


def _app() -> Flask:
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    return app


@cli.command(
    "routes",
    examples=[("flask --app yourapp noderpc routes", "Each path with its parameters.")],
)
def show_routes() -> None:
    """List the routes of every mount, with their parameters."""
    from ..jsonrpc.params import specs
    from ..web.rule_conflicts import leave_to_host

    app = _app()
    collisions = leave_to_host(app, lambda _: None)
    # Skip rules without methods, whose paths the app itself serves.
    paths = {rule.endpoint: rule.rule for rule in app.url_map.iter_rules() if rule.methods}
    for name, mount in app_mounts().items():
        posts = paths.get(f"{name}.rpc", "is served by the app")
        click.echo(f"{name}: dialect {mount.settings.dialect}, POST {posts}")
        for route in mount.routes:
            names = ", ".join(spec.wire for spec in specs(route.params))
            path = paths.get(f"{name}.{route.name}", "(JSON-RPC only)")
            click.echo(f"  {path:28} {names:28} {route.doc}")
    for collision in collisions:
        click.echo(str(collision))


@cli.command(
    "config",
    examples=[
        (
            "flask --app yourapp noderpc config",
            "Settings with their values, a star before those that are set.",
        )
    ],
)
def show_config() -> None:
    """List the settings of every mount.

    A star marks values that differ from the default.
    """
    for name, mount in app_mounts().items():
        click.echo(f"{name}:")
        for row in all_settings():
            value = mount.settings.value(row.name)
            mark = " " if value == row.default else "*"
            click.echo(f"{mark} {row.key} = {shown_setting(row, value)}")


def _embedded() -> EmbeddedChain:
    from ..chain.embedded import EmbeddedChain

    for mount in app_mounts().values():
        if isinstance(mount.backend, EmbeddedChain):
            return mount.backend
    raise Failed(
        "expected an app with an embedded chain; this app's backend needs no genesis", REFUSED
    )


@cli.command(
    "init",
    examples=[
        (
            "flask --app yourapp noderpc init",
            "Genesis and keys, to be edited before the first start.",
        )
    ],
)
def init_home() -> None:
    """Write genesis and keys of the app's chain.

    Existing files are not changed.
    """
    chain = _embedded()
    home = chain.open_home()
    click.echo(f"chain {home.genesis.chain_id} in {chain.home}")


def _backends() -> Iterator[tuple[ChainBackend, ChainStore]]:
    """Yield each backend of the app with its store; a backend that mounts share, only once."""
    from ..backends.sql.store import STORE

    for backend in {
        id(mount.backend): mount.backend for mount in app_mounts().values()
    }.values():
        store = STORE.find(backend)
        if store is None:
            raise Failed("expected an app with a store; this app's backend has none", REFUSED)
        yield backend, store


@cli.command(
    "verify",
    examples=[
        ("flask --app yourapp noderpc verify", "Blocks, signatures, columns and indexes.")
    ],
)
def verify_store() -> None:
    """Check every hash and signature of the app's chain."""
    for _, store in _backends():
        verify(store)


@cli.command(
    "prune",
    examples=[
        ("flask --app yourapp noderpc prune --retain 100000", "The latest 100,000 blocks stay.")
    ],
)
@click.option(
    "--retain",
    type=click.IntRange(min=1),
    metavar="INTEGER",
    default=None,
    help="Number of latest blocks to retain.  [default: the app's NODERPC_RETAIN_BLOCKS;"
    " required without it]",
)
def prune_store(retain: int | None) -> None:
    """Remove the app's old blocks.

    The app may be running meanwhile.
    """
    from ..chain.embedded import EmbeddedChain

    for backend, store in _backends():
        configured = backend.retain_blocks if isinstance(backend, EmbeddedChain) else None
        retained = configured if retain is None else retain
        if retained is None:
            raise click.UsageError(
                "expected the number of blocks to retain; set --retain or NODERPC_RETAIN_BLOCKS"
            )
        prune(store, retained)


@cli.command(
    "backup",
    examples=[
        (
            "flask --app yourapp noderpc backup /backup/chain.db",
            "A copy that is verified, of an app that may be running.",
        )
    ],
)
@click.argument("target", type=click.Path(path_type=Path))
@from_height
def backup_store(target: Path, first: int) -> None:
    """Copy the app's chain to a new file, TARGET.

    The app may be running meanwhile. Every hash and signature of the copy is checked.
    """
    stores = tuple(store for _, store in _backends())
    if len(stores) > 1:
        raise Failed(
            "this app has several stores; copy each with noderpc backup FILE TARGET", REFUSED
        )
    backup(stores[0], target, first)


@cli.command(
    "start",
    cls=GroupedCommand,
    examples=[
        ("flask --app yourapp noderpc start", "At the addresses of the app's settings."),
        (
            "flask --app yourapp noderpc start --rpc.laddr tcp://0.0.0.0:26657 --workers 2",
            "At another address, by two processes.",
        ),
    ],
)
@click.option(
    "--mount",
    default="noderpc",
    show_default=True,
    help="Mount whose settings are used, by the name of its blueprint.",
)
@host_flags
@log_flags
def start_app(mount: str, logs: LogOptions, **given: str | None) -> None:
    """Serve this app at the addresses of its node.

    It runs until Ctrl-C or SIGTERM. Settings without an option here are taken from the app;
    flask noderpc config lists them.
    """
    from ..server.start import serve_app
    from ..server.worker_spec import WorkerSpec
    from ..web.rule_conflicts import leave_to_host

    found = app_mounts().get(mount)
    if found is None:
        known = ", ".join(app_mounts())
        raise Failed(f"--mount: expected one of {known}, got {mount!r}", USAGE)
    info = click.get_current_context().find_object(ScriptInfo)
    import_path = (info.app_import_path if info else None) or os.environ.get("FLASK_APP") or ""
    if not import_path:
        raise Failed("expected the app's name; use flask --app NAME noderpc start", USAGE)
    leave_to_host(_app(), log.warning)
    rule = next(_app().url_map.iter_rules(f"{mount}.rpc")).rule
    base = rule.rstrip("/")
    values, written = given_settings(given)
    spec = WorkerSpec(app=import_path, mount=mount, settings=values, logs=logs)
    serve_app(spec, found, base, written, _pages(mount))


def _pages(mount: str) -> Pages:
    """Return the paths of a mount's pages, and of page sets that show it."""
    from ..web.pages import EXPLORERS

    found = {}
    for rule in _app().url_map.iter_rules():
        # A mounted rule without GET has no page: the user's app has a GET view at that path.
        if "GET" in (rule.methods or ()) and not rule.arguments:
            found[rule.endpoint] = rule.rule
    explorers = _app().extensions.get(EXPLORERS, {})
    of_mount = [name for name, shown in explorers.items() if shown == mount]

    def paths(endpoints: Iterable[str]) -> tuple[str, ...]:
        return tuple(found[each] for each in endpoints if each in found)

    def overviews(pages: PageSet) -> Iterator[str]:
        module, blueprints = pages.blueprint.partition(":")[0], _app().blueprints
        for name in of_mount:
            if blueprints[name].import_name == module:
                yield f"{name}.overview"

    own = (f"{mount}.{name}" for name in ("index", "try", "openapi"))
    of_features = {name: paths(overviews(pages)) for name, pages in page_sets().items()}
    return Pages(paths(own), of_features)
