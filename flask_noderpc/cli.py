"""``flask noderpc …`` for the current app, and ``noderpc …`` for a store or a home."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
from flask import Flask, current_app
from flask.cli import AppGroup, ScriptInfo

from .backend.sqlite import SQLiteBackend
from .chain import home as homes
from .chain.clock import SystemClock
from .chain.embedded import EmbeddedChain
from .errors import NodeRPCError
from .extension import mounts
from .mount import Mount
from .rpc.params import specs
from .settings import SETTINGS

T = TypeVar("T")

cli = AppGroup("noderpc", help="The node RPC of this app.")


def _told(action: Callable[[], T]) -> T:
    """The action's result; an error of ours ends the command in one line."""
    try:
        return action()
    except NodeRPCError as error:
        raise click.ClickException(str(error)) from None


def _mounts() -> dict[str, Mount]:
    found = mounts(_app())
    if not found:
        raise click.ClickException("this app has no node RPC: register noderpc_bp on it")
    return found


def _app() -> Flask:
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    return app


@cli.command("routes")
def show_routes() -> None:
    """List the routes of every mount, with their parameters."""
    app = _app()
    for name, mount in _mounts().items():
        paths = {rule.endpoint: rule.rule for rule in app.url_map.iter_rules()}
        click.echo(f"{name}: dialect {mount.settings.dialect}, POST {paths[f'{name}.rpc']}")
        for route in mount.routes:
            names = ", ".join(spec.wire for spec in specs(route.params))
            path = paths.get(f"{name}.{route.name}", "(JSON-RPC only)")
            click.echo(f"  {path:28} {names:28} {route.doc}")


@cli.command("config")
def show_config() -> None:
    """List the settings of every mount; a star marks those that are not the default."""
    for name, mount in _mounts().items():
        click.echo(f"{name}:")
        for row in SETTINGS:
            value = getattr(mount.settings, row.name)
            mark = " " if value == row.default else "*"
            click.echo(f"{mark} {row.key} = {value!r}")


def _embedded() -> EmbeddedChain:
    for mount in _mounts().values():
        if isinstance(mount.backend, EmbeddedChain):
            return mount.backend
    raise click.ClickException("this app serves a backend of its own, not an embedded chain")


@cli.command("init")
def init_home() -> None:
    """Write genesis and keys of the app's embedded chain, where they are missing."""
    chain = _embedded()
    home = _told(chain.open_home)
    click.echo(f"chain {home.genesis.chain_id} in {chain.home}")


@cli.command("verify")
def verify_store() -> None:
    """Check every hash and signature of the app's chain."""
    # Mounts may share a store.
    for backend in {id(mount.backend): mount.backend for mount in _mounts().values()}.values():
        if not isinstance(backend, SQLiteBackend):
            raise click.ClickException("only a SQLite store can be verified")
        _verify(backend)


def _verify(backend: SQLiteBackend) -> None:
    def work() -> int:
        if not backend.has_chain():
            raise click.ClickException(f"{backend.path} holds no chain")
        with click.progressbar(length=backend.latest_height(), label="verifying") as bar:
            return backend.verify(lambda height: bar.update(1))

    click.echo(f"{_told(work)} blocks verified")
    backend.close()


@cli.command("start")
@click.option("--mount", default="noderpc", show_default=True, help="Whose settings count.")
@click.pass_context
def start_app(context: click.Context, mount: str) -> None:
    """Serve this app at the addresses of its node, until a signal comes."""
    from .serve.start import start_host

    found = _mounts().get(mount)
    if found is None:
        raise click.ClickException(f"no node RPC is mounted as {mount!r}")
    info = context.find_object(ScriptInfo)
    where = (info.app_import_path if info else None) or os.environ.get("FLASK_APP") or ""
    if not where:
        raise click.ClickException("say where the app is: flask --app NAME noderpc start")
    settings = found.settings
    _told(lambda: start_host(where, mount, settings, click.echo))


@click.group()
def main() -> None:
    """Work on a node's home or store without an app."""


def _flags(command: Callable[..., None]) -> Callable[..., None]:
    """An option for each setting; what is not given is left to the environment."""
    for row in reversed(SETTINGS):
        shown = "" if row.default in (None, "", ()) else f"  [default: {row.default}]"
        command = click.option(
            *row.flags,
            row.name,
            default=None,
            envvar=[row.key, f"FLASK_{row.key}"],
            help=row.doc.replace("``", "") + shown,
            # A switch may stand alone.
            is_flag=False,
            flag_value="true" if row.type == "bool" else None,
        )(command)
    return command


@main.command("start")
@_flags
def start_node(**given: str | None) -> None:
    """Serve a chain of its own, with its producer, until a signal comes."""
    from .serve.start import start_own

    said = {name: value for name, value in given.items() if value is not None}
    folder = Path(said.pop("home", Path.home() / ".noderpc")).absolute()
    _told(lambda: start_own(folder, said, click.echo))


@main.command("init")
@click.option("--home", type=click.Path(path_type=Path), required=True)
@click.option("--chain-id", default=None, help="Random when not given.")
def init_at(home: Path, chain_id: str | None) -> None:
    """Write genesis and keys to a folder, where they are missing."""
    made = _told(lambda: homes.create(home, chain_id, SystemClock().now()))
    click.echo(f"chain {made.genesis.chain_id} in {home}")


@main.command("verify")
@click.argument("database", type=click.Path(exists=True, dir_okay=False))
def verify_at(database: str) -> None:
    """Check every hash and signature of a store."""
    # Read-only, so that a file of something else is not made into a store.
    _verify(SQLiteBackend(f"{Path(database).absolute().as_uri()}?mode=ro"))
