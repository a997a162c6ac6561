"""One process of a node: ``python -m flask_noderpc.server.worker FD``, which gets a
:class:`~flask_noderpc.server.worker_spec.WorkerSpec` at the socket with this file descriptor.

The process applies gevent's patches, serves its sockets until a signal or the end of its
parent, and then shuts down gracefully.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flask import Flask

    from ..backends.base.backend import ChainBackend
    from ..mount import Mount
    from ..shared import Counters
    from .connection import Limits
    from .server import NodeServer
    from .worker_spec import Listener, WorkerSpec

log = logging.getLogger("flask_noderpc.server")

# Seconds between two attempts to start a mount that failed to start.
_PAUSE_S = 1.0

# Seconds that open requests may take at the end: CometBFT's write timeout plus a margin.
_GRACE_S = 12.0

# Seconds between two checks for the first block of a new chain.
_LOOK_S = 0.02

# Seconds for which gevent runs ready greenlets before it polls sockets again. With Python's
# default of 5 ms, 1 % of the quick responses were ten times slower.
_SWITCH_S = 0.0005


# Modules that a process without an app imports while it waits for its spec.
_NEEDED = ("flask", *(f"flask_noderpc.{name}" for name in ("mounting", "server.app")))
_NEEDED += tuple(f"flask_noderpc.server.{name}" for name in ("places", "direct", "server"))


def main() -> None:
    """Apply gevent's patches, receive the spec, and serve it."""
    # Don't collect garbage during imports, which produce none: this takes a tenth of the time.
    gc.disable()
    sys.setswitchinterval(_SWITCH_S)
    # Ignore these signals, as nodes do; executor processes inherit this.
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    _apply_patches()
    spec = _received(socket.socket(fileno=int(sys.argv[1])))
    from . import output
    from .worker_spec import report_ready, report_stored

    output.configure(spec.logs)
    # The parent process logs the development accounts once for all.
    logging.getLogger("flask_noderpc.dev.accounts").disabled = True
    ended, orphaned = threading.Event(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    watch = threading.Thread(target=_watch, args=(spec.watched, orphaned, ended), daemon=True)
    watch.start()
    stored = [0]
    _record_stored_height(stored)
    app, servers = _started(spec, ended)
    from .app import end_export

    report_ready(spec.watched)
    gc.freeze()
    gc.enable()
    ended.wait()
    _stop(app, servers)
    if stored[0]:
        report_stored(spec.watched, stored[0])
    if orphaned.is_set():
        logging.getLogger("flask_noderpc.start").info(
            "process %d has stopped, as the node's first process has gone: all blocks are"
            " stored",
            os.getpid(),
            extra={"event": "stopped", "pid": os.getpid()},
        )
    end_export()
    logging.shutdown()
    sys.stderr.flush()
    # Skip the interpreter's finalization, which removes gevent before logging's patched locks;
    # some versions report that as an error.
    os._exit(0)


def _apply_patches() -> None:
    """Apply gevent's patches, without reading the metadata of all installed distributions for
    each of the 25 patches, in which gevent looks for its plugins."""
    from importlib import metadata

    from gevent import monkey

    module: Any = metadata
    find = module.entry_points
    # gevent calls this function of the module for a few groups.
    module.entry_points = cache(find().select)
    monkey.patch_all()
    module.entry_points = find


def _received(channel: socket.socket) -> WorkerSpec:
    """Return the spec from the parent process, and import needed modules until it arrives; exit
    if the parent ends before."""
    from ..concurrency import has_input
    from . import launch

    with channel:
        for name in _NEEDED:
            if has_input(channel):
                break
            # An error is raised again where the module is used, and reported there.
            with suppress(Exception):
                import_module(name)
        text, descriptors = launch.receive(channel)
    if not text:
        sys.exit(0)
    from .worker_spec import WorkerSpec

    spec = WorkerSpec.decode(text, descriptors)
    if spec.metrics:
        # prometheus_client reads this variable when it is imported.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = spec.metrics
    return spec


def _record_stored_height(stored: list[int]) -> None:
    """Keep the height of the last block that this process has committed in ``stored``."""
    from ..signals import block_committed

    def note(_sender: object, height: int) -> None:
        stored[0] = height

    block_committed.connect(note, weak=False)


def _watch(descriptor: int, orphaned: threading.Event, ended: threading.Event) -> None:
    """Set both events when the parent process ends, which closes its end of the socket.

    ``os.getppid`` would be too late: the kernel closes a process's sockets before it gives its
    children another parent.
    """
    parent = socket.socket(fileno=descriptor)
    # The connection is reset if the parent was killed before it read our report.
    with suppress(ConnectionError):
        while parent.recv(1):
            pass
    # Leave the descriptor open, so that a later report can't go to another file with its
    # number.
    parent.detach()
    orphaned.set()
    ended.set()


def _started(spec: WorkerSpec, ended: threading.Event) -> tuple[Flask, list[NodeServer]]:
    """Return the app and its started servers; report the error and exit if they can't
    start."""
    from ..errors import NodeRPCError
    from ..extension import mounts
    from ..web.rule_conflicts import leave_to_host
    from .worker_spec import report_refusal

    try:
        app = _app(spec)
        # All mounts of an app share one limit.
        mounts(app)[spec.mount].memory.divide(spec.processes)
        # Ignore the conflicts, which the parent process has reported.
        leave_to_host(app, lambda _: None)
        servers = list(_servers(app, spec))
        _start(app, servers, spec.restarted, ended)
    except NodeRPCError as error:
        # Let the parent report the error, as all processes have the same settings.
        report_refusal(spec.watched, error)
        sys.exit(1)
    return app, servers


def _app(spec: WorkerSpec) -> Flask:
    if spec.app:
        from flask.cli import ScriptInfo

        app = ScriptInfo(app_import_path=spec.app).load_app()
        _show_address(app, spec)
        return app
    _start_executor(spec)
    from .app import export_spans, node_app

    export_spans()
    return node_app(Path(spec.folder), spec.settings, pages=spec.pages)


def _start_executor(spec: WorkerSpec) -> None:
    """Start the executor process of the application's blocks, which gets ready while this
    process imports the rest."""
    from ..chain.source import chain_source
    from ..executors.process import start_early
    from ..feature import application_kinds, load
    from ..settings import read_settings

    settings = read_settings({}, spec.settings)
    path = str(settings.database)
    command = application_kinds()[settings.application].executor
    if command and settings.produce and not chain_source(settings, path):
        start_early(load(command)(settings, path))


def _show_address(app: Flask, spec: WorkerSpec) -> None:
    """Let ``status`` return the address from a flag, as the app only knows its own setting."""
    from ..chain.embedded import EmbeddedChain
    from ..extension import mounts

    backend = mounts(app)[spec.mount].backend
    if isinstance(backend, EmbeddedChain) and "rpc_laddr" in spec.settings:
        backend.rpc_address = spec.settings["rpc_laddr"]


def _servers(app: Flask, spec: WorkerSpec) -> Iterator[NodeServer]:
    from ..extension import mounts
    from ..web.rules.head import ClientLimit
    from .connection import Limits
    from .places import FdBudget, budget_within

    settings = mounts(app)[spec.mount].settings
    found = mounts(app).values()
    budget = budget_within(
        FdBudget(
            settings.max_open_connections,
            max(mount.settings.max_open_connections for mount in found),
            max(mount.settings.max_waiting_calls for mount in found),
        ),
        len(spec.listeners),
        len(found),
    )
    for mount in found:
        mount.limit(budget.websockets, budget.waiting)
    limits = Limits(
        connections=budget.connections,
        # Don't limit connections per client behind proxies, whose connections many clients
        # share.
        per_client=None
        if settings.trusted_proxies
        else ClientLimit(settings.max_connections_per_client),
    )
    # A quarter of the cache memory is for responses, divided among the listeners.
    memory = mounts(app)[spec.mount].memory
    cache_bytes = memory.limit // 4 // max(1, len(spec.listeners))
    counters = _counters(spec)
    for listener in spec.listeners:
        server = _server(listener, app, spec, limits, cache_bytes)
        if counters is not None:
            server.share(counters)
        yield server


def _counters(spec: WorkerSpec) -> Counters | None:
    """Return the counters of the node, in which this process notes changes of the chain;
    ``None`` if it has no other process."""
    from .. import shared

    if spec.processes == 1:
        return None
    counters = shared.Counters(spec.counters, spec.row)
    shared.join(counters)
    return counters


def _server(
    listener: Listener,
    app: Flask,
    spec: WorkerSpec,
    limits: Limits,
    cache_bytes: int,
) -> NodeServer:
    from ..extension import mounts
    from ..feature import load
    from ..web.views import LOOPBACK
    from .addresses import NODE, is_on_loopback, surfaces, tls_context
    from .direct import DirectAdapter, ResponseCache
    from .server import NodeServer

    sock = socket.socket(fileno=listener.descriptor)
    options: dict[str, Any] = {}
    if listener.certificate:
        options["ssl_context"] = tls_context(listener.certificate, listener.key)
    wsgi: Any = app
    mount = mounts(app)[spec.mount]
    settings = mount.settings
    # Check host names only for the node's own app without a proxy: other apps check them
    # themselves, and a proxy forwards its own.
    if not spec.app and not settings.trusted_proxies and is_on_loopback(sock):
        options["environ"] = {LOOPBACK: True}
    surface = surfaces()[listener.surface]
    if surface is not NODE:
        options["environ"] = options.get("environ", {}) | _node_address(spec, sock)
        path = _path(app, f"{spec.mount}.{surface.endpoint}")
        wsgi = load(surface.middleware)(wsgi, path)
    if not spec.app and not settings.log_calls:
        # Bypass Flask only here: an app's hooks and the log of calls need Flask's request.
        options["direct"] = DirectAdapter(app, mount, surface)
        if cache_bytes > 0:
            options["response_cache"] = ResponseCache(cache_bytes, mount.memory)
    return NodeServer(sock, wsgi, limits, proxies=settings.trusted_proxies, **options)


def _node_address(spec: WorkerSpec, sock: socket.socket) -> dict[str, Any]:
    """Return scheme and port of the node's first TCP address and the port of a socket, with
    their key in the environ; an empty dictionary if there is no such address."""
    from ..web.html import NODE_ADDRESS
    from .addresses import NODE

    own = sock.getsockname()
    for listener in spec.listeners:
        if listener.surface == NODE.name and isinstance(own, tuple):
            with closing(socket.fromfd(listener.descriptor, sock.family, sock.type)) as other:
                found = other.getsockname()
            if isinstance(found, tuple):
                scheme = "https" if listener.certificate else "http"
                return {NODE_ADDRESS: (scheme, found[1], own[1])}
    return {}


def _path(app: Flask, endpoint: str) -> str:
    return next(rule.rule for rule in app.url_map.iter_rules(endpoint))


def _start(
    app: Flask, servers: list[NodeServer], restarted: bool, ended: threading.Event
) -> None:
    from ..errors import NodeRPCError
    from ..extension import mounts
    from .addresses import listen

    for mount in mounts(app).values():
        try:
            mount.start()
            if not servers:
                mount.backend.follow()
            _wait_for_first_block(mount.backend, mount.settings.broadcast_timeout, ended)
        except NodeRPCError as error:
            if not restarted:
                raise
            # The node was ready before: serve anyway, so that clients get an error, and retry.
            log.error("the node can't start; retrying every second: %s", error)
            threading.Thread(target=_start_later, args=(mount,), daemon=True).start()
        else:
            mount.prepare(serves=bool(servers))
    for server in servers:
        listen(server.socket)
        server.start()


def _wait_for_first_block(
    backend: ChainBackend, seconds: float, ended: threading.Event
) -> None:
    """Wait until a new chain has its first block, as clients of CometBFT reject a status
    without a block."""
    deadline = time.monotonic() + seconds
    while backend.awaits_first_block() and time.monotonic() < deadline:
        if ended.wait(_LOOK_S):
            return


def _start_later(mount: Mount) -> None:
    """Retry the start of a mount until it succeeds."""
    from ..errors import NodeRPCError

    while True:
        time.sleep(_PAUSE_S)
        with suppress(NodeRPCError):
            mount.start()
            log.warning("the node has started")
            return


def _stop(app: Flask, servers: list[NodeServer]) -> None:
    from ..extension import hang_up, mounts

    hang_up(app)
    stopping = [threading.Thread(target=server.stop, args=(_GRACE_S,)) for server in servers]
    for thread in stopping:
        thread.start()
    for thread in stopping:
        thread.join()
    for backend in {
        id(mount.backend): mount.backend for mount in mounts(app).values()
    }.values():
        backend.close()


if __name__ == "__main__":
    main()
