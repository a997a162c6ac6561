"""``noderpc start``: start the processes of a node from its settings."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from ..backends import replica_of, stored_identity
from ..backends.base.location import FileLocation, check_identity, location_of
from ..chain.source import ChainSource, Process, chain_source, worker_count
from ..errors import ConfigurationError, InvalidSetting
from ..feature import Surface, apis, application_kinds, kind_of, load
from ..settings import Settings, flag_of, read_settings
from ..settings.kinds import AUTO
from .addresses import Address, bind, parse, surfaces_of, tls_context
from .banner import Banner, Pages, ServedAddress, pages_of
from .flags import (
    config_path,
    default_database,
    default_home,
    defaults_of,
    dev_application,
    read_config,
)
from .output import LogOptions
from .supervisor import Supervisor
from .worker_spec import Listener, WorkerSpec

if TYPE_CHECKING:
    from ..mount import Mount

log = logging.getLogger("flask_noderpc.start")

Bound = Sequence[tuple[ServedAddress, socket.socket]]


def serve_own_chain(
    given: Mapping[str, Any],
    written: Mapping[str, str],
    logs: LogOptions,
    *,
    pages: Sequence[str] = (),
) -> None:
    """Serve an embedded chain without an app until a signal ends it.

    ``given`` are the settings, ``written`` the flags or variables by which errors name them,
    and ``pages`` the names of page sets to serve. Raise
    :exc:`~flask_noderpc.errors.ConfigurationError`.
    """
    given = dict(given)
    folder = _home(given.pop("home", None), given, written)
    in_file = read_config(folder)
    written = {**{name: f"{config_path(folder)}: {name}" for name in in_file}, **written}
    given = {**in_file, **given}
    is_dev = read_settings({}, given, written).dev
    given = {
        "home": str(folder),
        "database": str(default_database(folder)),
        **defaults_of(given.get("application"), dev=is_dev),
        **given,
    }
    settings = read_settings({}, given, written)
    # The database may be a file or a PostgreSQL URL.
    store = location_of(str(settings.database))
    replica_of(store, settings.replica())
    _make_folder(folder)
    if isinstance(store, FileLocation):
        _make_folder(store.folder)
        _refuse_network(store.file)
    watched: AbstractContextManager[Callable[[], Mapping[str, Any]]] = nullcontext(dict)
    source, is_pinned = chain_source(settings, store.path), "dialect" in given
    if source:
        from ..chain.comet_config import warn_of_ignored

        warn_of_ignored(folder, settings)
        # Check the source before the processes start, so that an error is reported only once.
        source.check()
        # Determine the dialect before the processes start, so that all serve the same one.
        dialect = settings.dialect if is_pinned else source.dialect()
        settings, given["dialect"] = replace(settings, dialect=dialect), dialect
        watched = source.watch("" if is_pinned else dialect, has_bars=logs.has_bars)
    else:
        _check_store(store.path, settings.application, settings.chain_id)
        for check in filter(None, (api.check for api in apis())):
            load(check)(settings)
    spec = WorkerSpec(settings=given, folder=str(folder), pages=tuple(pages), logs=logs)
    with watched as changes:

        def show(bound: Bound) -> Banner:
            home = None if source else folder
            kind = application_kinds()[settings.application]
            shown = pages_of(settings, pages)
            return Banner(
                settings, bound, store.path, shown, home=home, kind=kind, source=source
            )

        _serve(settings, spec, written, show, source, changes)


def _home(named: str | None, given: Mapping[str, Any], written: Mapping[str, str]) -> Path:
    """Return the home named by a setting, or the default one."""
    if named is not None:
        return Path(named).absolute()
    if not read_settings({}, given, written).dev:
        return default_home()
    return default_home(given.get("application", dev_application()))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{folder}: {error.strerror}; choose a writable folder with --home"
        ) from None


def _check_store(path: str, application: str, chain_id: str | None) -> None:
    """Raise an error if the store has another application's or another chain."""
    stored = stored_identity(path)
    if stored is not None:
        check_identity(stored, location_of(path).display_name, application, chain_id)


def serve_app(
    spec: WorkerSpec,
    mount: Mount,
    base: str,
    written: Mapping[str, str],
    pages: Pages,
) -> None:
    """Serve an app that has the node at the path ``base``, until a signal ends it.

    The spec's settings override the mount's; ``pages`` are the paths of the app's pages.
    """
    from ..backends.sql.store import STORE
    from ..chain.embedded import EmbeddedChain

    given = read_settings({}, spec.settings, written)
    changes = {name: given.value(name) for name in spec.settings}
    backend, settings = mount.backend, mount.settings.changed(**changes)
    if settings.workers == AUTO:
        # An app may keep state in its process, so several must be asked for.
        settings = replace(settings, workers=1)
    if isinstance(backend, EmbeddedChain) and backend.store.abci:
        _check_store(backend.store.location.path, backend.store.abci.name, settings.chain_id)

    store = STORE.find(backend)
    path = store.location.path if store else ""
    source = chain_source(settings, path)

    def show(bound: Bound) -> Banner:
        home, kind, shown = None, None, settings
        if isinstance(backend, EmbeddedChain) and backend.store.abci:
            home, kind = backend.home, kind_of(backend.store.abci)
            # Show the application of the chain, as the app may have created it itself.
            shown = replace(settings, application=backend.store.abci.name)
        return Banner(
            shown, bound, path, pages, base, is_app=True, home=home, kind=kind, source=source
        )

    _serve(settings, spec, written, show, source)


def _serve(
    settings: Settings,
    spec: WorkerSpec,
    written: Mapping[str, str],
    show: Callable[[Bound], Banner],
    source: ChainSource | None,
    changes: Callable[[], Mapping[str, Any]] = dict,
) -> None:
    places = tuple(_places(settings, written))
    _refuse_shared(places)
    with ExitStack() as stack:
        bound = [
            (place, stack.enter_context(bind(place.address, flag_of(place.surface.address))))
            for place in places
        ]
        listeners = tuple(
            Listener(sock.fileno(), place.surface.name, place.certificate, place.key)
            for place, sock in bound
        )
        processes = tuple(
            source.processes() if source else _own_processes(settings, is_app=bool(spec.app))
        )
        if settings.metrics:
            # Use a new folder, so that counters of earlier runs are not included.
            folder = stack.enter_context(TemporaryDirectory(prefix="noderpc-metrics-"))
            spec = replace(spec, metrics=folder)
        specs = tuple(_worker_specs(replace(spec, listeners=listeners), processes))
        Supervisor(
            specs,
            lambda: _announce(replace(show(bound), processes=processes), spec.logs),
            changes,
        ).run()


def _announce(banner: Banner, logs: LogOptions) -> None:
    if logs.is_json:
        log.info("the node is ready", extra={"event": "ready", **banner.fields()})
    elif not logs.quiet:
        click.echo(banner.text())


def _worker_specs(serving: WorkerSpec, processes: Sequence[Process]) -> Iterator[WorkerSpec]:
    for row, each in enumerate(processes):
        yield replace(
            serving,
            row=row,
            processes=len(processes),
            settings={**serving.settings, **each.settings},
            listeners=serving.listeners if each.serves else (),
        )


def _own_processes(settings: Settings, *, is_app: bool) -> Iterator[Process]:
    """Yield the processes of an embedded chain.

    One worker serves and produces blocks; with several, a separate process produces them. Each
    worker of an app does both.
    """
    workers = worker_count(settings)
    if workers == 1 or is_app:
        yield from [Process()] * workers
        return
    if settings.produce:
        yield Process(serves=False)
    for _ in range(workers):
        yield Process(settings={"produce": False})


def _refuse_shared(places: Sequence[ServedAddress]) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidSetting` if two surfaces have the same address.

    Otherwise the system would report this only when both listen, and never for Unix sockets.
    """
    seen: dict[Address, str] = {}
    for place in places:
        address, flag = place.address, flag_of(place.surface.address)
        if address in seen:
            raise InvalidSetting(
                f"{address} is set by {seen[address]} and by {flag}; give each a different"
                " address"
            )
        if address.port or address.path:
            seen[address] = flag


def _places(settings: Settings, written: Mapping[str, str]) -> Iterator[ServedAddress]:
    for surface in surfaces_of(settings):
        yield from _places_of(surface, settings, written)


def _places_of(
    surface: Surface, settings: Settings, written: Mapping[str, str]
) -> Iterator[ServedAddress]:
    name, tls = surface.address, [settings.value(each) for each in surface.tls]
    if any(tls) and not all(tls):
        flags = " and ".join(flag_of(each) for each in surface.tls)
        raise InvalidSetting(f"TLS needs both a certificate and its key; set {flags}")
    if all(tls):
        # Read the files before the processes do, so that an error is reported only once.
        tls_context(*tls)
    addresses = settings.value(name)
    for address in parse(addresses, written.get(name, f"NODERPC_{name.upper()}")):
        # A development chain signs with publicly known keys, so it only listens on the
        # loopback interface unless an address was given.
        bound = address.on_loopback() if settings.dev and name not in written else address
        yield ServedAddress(surface, bound, *tls)


_NETWORK = {
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p"),
    *("afs", "ceph", "fuse.sshfs", "fuse.s3fs"),
}


def _refuse_network(file: Path) -> None:
    """Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a file on a network file
    system.

    SQLite's write-ahead log needs shared memory, so all processes must be on one machine.
    """
    kind = _file_system(file.parent.resolve())
    if kind in _NETWORK:
        raise ConfigurationError(
            f"NODERPC_DATABASE: expected a file on a local disk, got {file} on a network file"
            f" system ({kind}); choose a local disk, or a postgresql:// URL"
        )


def _file_system(folder: Path) -> str:
    try:
        lines = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        # Only Linux has this file; elsewhere the file system is unknown.
        return ""
    found = ("", "")
    for line in lines:
        _, where, kind, *_ = line.split(" ")
        where = where.replace("\\040", " ")
        if folder.is_relative_to(where) and len(where) >= len(found[0]):
            found = (where, kind)
    return found[1]
