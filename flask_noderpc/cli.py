"""``flask noderpc …`` for the current app, and ``noderpc …`` for a store or a home.

Each command imports only what it needs: ``noderpc start`` supervises the serving processes and
starts faster and uses less memory without the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from flask import Flask, current_app
from flask.cli import AppGroup, ScriptInfo

from .errors import NodeRPCError
from .server.flags import GroupedCommand, database_of, given_settings, host_flags, node_flags
from .settings import PREFIX, SETTINGS, check_chain_id, no_setting

if TYPE_CHECKING:
    from .backends.base.backend import ChainBackend
    from .backends.base.store import ChainStore
    from .chain.embedded import EmbeddedChain
    from .mount import Mount

T = TypeVar("T")

cli = AppGroup("noderpc", help="The node RPC of this app.")


class _CannotStart(click.ClickException):
    """An error of the settings or of the store, with exit status 78."""

    exit_code = os.EX_CONFIG


class _Interrupted(click.ClickException):
    """A verification that can go on later."""


def _run(
    action: Callable[[], T], failure: type[click.ClickException] = click.ClickException
) -> T:
    """Return the action's result; show an error of this package in one line."""
    try:
        return action()
    except NodeRPCError as error:
        raise failure(str(error)) from None


def _mounts() -> dict[str, Mount]:
    from .extension import mounts

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
    from .jsonrpc.params import specs
    from .web.rule_conflicts import leave_to_host

    app = _app()
    collisions = leave_to_host(app, lambda _: None)
    # Rules left to the host have no methods.
    paths = {rule.endpoint: rule.rule for rule in app.url_map.iter_rules() if rule.methods}
    for name, mount in _mounts().items():
        posts = paths.get(f"{name}.rpc", "is the app's own")
        click.echo(f"{name}: dialect {mount.settings.dialect}, POST {posts}")
        for route in mount.routes:
            names = ", ".join(spec.wire for spec in specs(route.params))
            path = paths.get(f"{name}.{route.name}", "(JSON-RPC only)")
            click.echo(f"  {path:28} {names:28} {route.doc}")
    for collision in collisions:
        click.echo(str(collision))


@cli.command("config")
def show_config() -> None:
    """List the settings of every mount.

    A star marks those that are not the default.
    """
    for name, mount in _mounts().items():
        click.echo(f"{name}:")
        for row in SETTINGS:
            value = getattr(mount.settings, row.name)
            mark = " " if value == row.default else "*"
            click.echo(f"{mark} {row.key} = {value!r}")


def _embedded() -> EmbeddedChain:
    from .chain.embedded import EmbeddedChain

    for mount in _mounts().values():
        if isinstance(mount.backend, EmbeddedChain):
            return mount.backend
    raise click.ClickException("this app serves a backend of its own, not an embedded chain")


@cli.command("init")
def init_home() -> None:
    """Write genesis and keys of the app's chain.

    Existing files are not changed.
    """
    chain = _embedded()
    home = _run(chain.open_home)
    click.echo(f"chain {home.genesis.chain_id} in {chain.home}")


def _backends() -> Iterator[tuple[ChainBackend, ChainStore]]:
    """Yield each backend of the app once, with its store: mounts may share one."""
    from .backends.base.store import ChainStore
    from .backends.base.store_backend import StoreBackend

    for backend in {id(mount.backend): mount.backend for mount in _mounts().values()}.values():
        store = backend.store if isinstance(backend, StoreBackend) else backend
        if not isinstance(store, ChainStore):
            raise click.ClickException("the backend of this app has no store")
        yield backend, store


_from = click.option(
    "--from", "first", type=int, default=0, help="Go on with a verification from this height."
)


@cli.command("verify")
def verify_store() -> None:
    """Check every hash and signature of the app's chain."""
    for _, store in _backends():
        _verify(store)


@cli.command("prune")
@click.option(
    "--retain",
    type=int,
    default=None,
    help="Number of latest blocks to retain.  [default: the app's NODERPC_RETAIN_BLOCKS;"
    " required without it]",
)
def prune_store(retain: int | None) -> None:
    """Remove the app's old blocks.

    The app may be running meanwhile.
    """
    from .chain.embedded import EmbeddedChain

    for backend, store in _backends():
        configured = backend.retain_blocks if isinstance(backend, EmbeddedChain) else None
        retained = configured if retain is None else retain
        if retained is None:
            raise click.UsageError(
                "set the number of blocks to retain: --retain, or NODERPC_RETAIN_BLOCKS"
            )
        _prune(store, retained)


@cli.command("backup")
@click.argument("target", type=click.Path(path_type=Path))
@_from
def backup_store(target: Path, first: int) -> None:
    """Copy the app's chain to a new file, TARGET.

    The app may be running meanwhile. Every hash and signature of the copy is checked.
    """
    stores = tuple(store for _, store in _backends())
    if len(stores) > 1:
        raise click.ClickException("this app has several stores: noderpc backup FILE TARGET")
    _backup(stores[0], target, first)


def _verify(store: ChainStore, first: int = 0) -> None:
    def work() -> int:
        _check_chain(store)
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
                raise _Interrupted(
                    f"interrupted: --from {max(verified, low)} goes on from there"
                ) from None

    with closing(store):
        click.echo(f"{_run(work)} blocks verified")
        for source, (count, low, high) in store.sources().items():
            click.echo(f"from {source}: {count} blocks between {low} and {high}")
        for field, (count, low, high) in store.all_unchecked().items():
            click.echo(
                f"not verified: {field} of {count} blocks between {low} and {high}, which this"
                " chain computes in its own way"
            )


def _check_chain(store: ChainStore) -> None:
    if not store.has_chain():
        raise click.ClickException(f"{store.location.shown} holds no chain")


def _prune(store: ChainStore, retain: int) -> None:
    def work() -> int:
        _check_chain(store)
        count = store.latest_height() - store.base_height() + 1 - retain
        with click.progressbar(length=max(0, count), label="pruning") as bar:
            return store.prune(retain, bar.update)

    with closing(store):
        removed = _run(work)
        click.echo(f"{removed} blocks removed, the lowest is {store.base_height()}")


def _backup(store: ChainStore, target: Path, first: int = 0) -> None:
    copy = target.with_name(f"{target.name}.unverified")
    if target.exists():
        raise click.ClickException(f"{target}: is there already, a backup needs a new file")
    if not first:
        _copy(store, copy)
    elif not copy.exists():
        raise click.ClickException(f"{copy} is missing: leave --from out to copy anew")
    try:
        _verify(_read_only(copy), first)
    except _Interrupted:
        raise
    except BaseException:
        # An inconsistent copy must not be mistaken for a backup.
        copy.unlink()
        raise
    copy.rename(target)
    click.echo(f"{target} is a backup")


def _copy(store: ChainStore, target: Path) -> None:
    def work() -> None:
        _check_chain(store)
        # Of a verification that was interrupted.
        target.unlink(missing_ok=True)
        with click.progressbar(length=1, label="copying") as bar:

            def show(remaining: int, total: int) -> None:
                bar.length = max(1, total)
                bar.update(total - remaining - bar.pos)

            store.backup(target, show)

    with closing(store):
        _run(work)


@cli.command("start", cls=GroupedCommand)
@click.option(
    "--mount",
    default="noderpc",
    show_default=True,
    help="Mount whose settings are used, by the name of its blueprint.",
)
@host_flags
def start_app(mount: str, **given: str | None) -> None:
    """Serve this app at the addresses of its node.

    It runs until Ctrl-C or SIGTERM. All other settings are the app's; flask noderpc config
    lists them.
    """
    from .server.start import serve_app
    from .server.worker_spec import WorkerSpec
    from .web.rule_conflicts import leave_to_host

    found = _mounts().get(mount)
    if found is None:
        known = ", ".join(_mounts())
        raise click.ClickException(f"no node RPC is mounted as {mount!r}; mounted are: {known}")
    info = click.get_current_context().find_object(ScriptInfo)
    import_path = (info.app_import_path if info else None) or os.environ.get("FLASK_APP") or ""
    if not import_path:
        raise click.ClickException("say where the app is: flask --app NAME noderpc start")
    leave_to_host(_app(), click.echo)
    rule = next(_app().url_map.iter_rules(f"{mount}.rpc")).rule
    base = rule.rstrip("/")
    values, written = given_settings(given)
    spec = WorkerSpec(-1, app=import_path, mount=mount, settings=values)
    _run(lambda: serve_app(spec, found, base, written, click.echo), _CannotStart)


@click.group()
@click.version_option(package_name="flask-noderpc")
def main() -> None:
    """Run a node without an app, or work on its chain."""


def _warn_of_environment() -> None:
    """Warn of variables that look like settings but are none. They are no errors: Kubernetes
    names some after a service, which may be called noderpc."""
    known = {row.key for row in SETTINGS}
    for name in sorted(os.environ):
        key = name.removeprefix("FLASK_")
        if key.startswith(PREFIX) and key not in known:
            click.echo(
                f"warning: {name} of the environment is not read: {no_setting(key)}", err=True
            )


@main.command("start", cls=GroupedCommand)
@node_flags
def start_node(**given: str | None) -> None:
    """Run a node with a chain of its own.

    It runs until Ctrl-C or SIGTERM. What no flag sets is read from the environment
    (NODERPC_CHAIN_ID for --chain-id), then from config/noderpc.toml in the home. A flag without
    a value is a switch: --dev switches it on, --dev=false off. docs/settings has all settings.
    """

    from .server.start import serve_own_chain

    values, written = given_settings(given)
    _warn_of_environment()
    _run(lambda: serve_own_chain(values, written, click.echo), _CannotStart)


def _check_chain_id(
    context: click.Context, option: click.Parameter, value: str | None
) -> str | None:
    try:
        return None if value is None else check_chain_id(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@main.command("init")
@click.option(
    "--home",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder to write them to; created if it is missing.",
)
@click.option(
    "--chain-id",
    default=None,
    callback=_check_chain_id,
    help="Of a new chain, at most 50 bytes.  [default: test-chain- and six letters]",
)
def init_at(home: Path, chain_id: str | None) -> None:
    """Write genesis and keys of a node to a folder.

    Existing files are not changed.
    """
    from .chain import home as homes
    from .chain.clock import SystemClock

    home_files = _run(lambda: homes.create(home, chain_id, SystemClock().now()))
    click.echo(f"chain {home_files.genesis.chain_id} in {home}")


_home = click.option(
    "--home",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="Folder of a node, instead of DATABASE.",
)
_file = click.argument(
    "database", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)


def _read_only(path: Path) -> ChainStore:
    from .backends import open_store

    return open_store(path, read_only=True)


def _store_path(database: Path | None, home: Path | None) -> Path:
    """Return the path of the store that is named, or of the home; never create it."""
    if (database is None) == (home is None):
        raise click.UsageError("name a store, or a node's folder with --home")
    if home is None:
        assert database is not None
        return database
    path = _run(lambda: database_of(home))
    if not path.is_file():
        raise click.ClickException(f"{path}: no store is here")
    return path


@main.command("verify")
@_file
@_home
@_from
def verify_at(database: Path | None, home: Path | None, first: int) -> None:
    """Check every hash and signature of a chain.

    DATABASE is its SQLite file.
    """
    # Read-only, so that a file of something else is not made into a store.
    _verify(_read_only(_store_path(database, home)), first)


@main.command("prune")
@_file
@_home
@click.option("--retain", type=int, required=True, help="Number of latest blocks to retain.")
def prune_at(database: Path | None, home: Path | None, retain: int) -> None:
    """Remove the old blocks of a chain.

    DATABASE is its SQLite file. The node may be running meanwhile.
    """
    from .backends import open_store
    from .chain.applications.evm.state import BLOCKS_NEEDED, head

    path = _store_path(database, home)
    readable = _read_only(path)
    _run(lambda: _check_chain(readable))
    # The application's name is not known here; the EVM's is recognized by its state.
    minimum = BLOCKS_NEEDED if _run(lambda: head(readable.app_state())) else 1
    readable.close()
    if retain < minimum:
        raise click.ClickException(
            f"{retain} blocks are too few to keep, the chain needs the last {minimum}"
        )
    _prune(open_store(path), retain)


@main.command("migrate")
@_file
@_home
def migrate_at(database: Path | None, home: Path | None) -> None:
    """Bring a large store of version 0.1 to this version's tables.

    DATABASE is its SQLite file. No node may be running. It can be interrupted at any time, and
    goes on when it is called again; only then the store can be opened. The file does not
    shrink, but its free pages are used again.
    """
    from .backends import open_store

    store = open_store(_store_path(database, home))

    def work() -> int:
        with click.progressbar(length=1, label="migrating") as bar:

            def show(remaining: int) -> None:
                bar.length = max(bar.length or 1, remaining)
                bar.update(bar.length - remaining - bar.pos)

            return store.migrate(show)

    click.echo(f"{_run(work)} blocks migrated")


@main.command("compact")
@_file
@_home
def compact_at(database: Path | None, home: Path | None) -> None:
    """Make the file of a chain as small as it can be.

    DATABASE is its SQLite file, which no process may have open. It is rewritten beside itself,
    and replaced when the copy is complete.
    """
    from .backends import open_store

    before, after = _run(open_store(_store_path(database, home)).compact)
    click.echo(f"{before >> 20} MB before, {after >> 20} MB after")


@main.command("backup")
@click.argument("paths", nargs=-1, metavar="[DATABASE] TARGET", type=click.Path(path_type=Path))
@_home
@_from
def backup_at(paths: tuple[Path, ...], home: Path | None, first: int) -> None:
    """Copy a chain to a new file, TARGET.

    DATABASE is its SQLite file. The node may be running meanwhile. Every hash and signature of
    the copy is checked.
    """
    if len(paths) != (2 if home is None else 1):
        raise click.UsageError("name a store, or a node's folder with --home, and a new file")
    database = None if home else paths[0]
    if database is not None and not database.is_file():
        raise click.UsageError(f"{database}: no store is here")
    _backup(_read_only(_store_path(database, home)), paths[-1], first)
