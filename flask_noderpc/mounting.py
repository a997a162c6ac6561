"""Mounting: what a registration of the extension's blueprint adds to an app."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from flask import Flask, request_started
from flask.blueprints import BlueprintSetupState

from .backends.base.backend import ChainBackend
from .chain.embedded import EmbeddedChain
from .chain.from_settings import chain_from_settings, chain_path
from .chain.source import ChainSource, chain_source
from .cometbft.routes import COMETBFT_ROUTES, feature_routes
from .errors import ConfigurationError, unfit_argument
from .jsonrpc.guard import Authorize
from .jsonrpc.route import RouteTable
from .lru import CacheMemory
from .mount import Mount
from .settings import Settings, all_settings, read_settings
from .web.rule_conflicts import check_request, refuse_overlap, refuse_taken_names
from .web.views import View
from .wire.dialect import Dialect
from .wire.dialects import dialect_named

# Arguments of Flask's register_blueprint().
_BLUEPRINT_OPTIONS = {
    "url_prefix",
    "subdomain",
    "url_defaults",
    "name",
    "name_prefix",
    "cli_group",
}


def add_mount(  # noqa: PLR0913  # keywords of NodeRPC
    state: BlueprintSetupState,
    mounts: dict[str, Mount],
    *,
    url_prefix: str,
    backend: ChainBackend | None,
    given: Mapping[str, Any],
    routes: RouteTable | None,
    rows: Mapping[str, RouteTable],
    authorize: Authorize | None,
) -> None:
    """Add a mount to the app of a registration, and to the app's ``mounts``; options of the
    registration override the backend and the ``given`` settings.

    ``routes`` are the routes of the node RPC, ``None`` for the node's own, and ``rows`` further
    routes for APIs of features. Raise :exc:`~flask_noderpc.errors.ConfigurationError`.
    """
    app = cast(Flask, state.app)
    options = {k: v for k, v in state.options.items() if k not in _BLUEPRINT_OPTIONS}
    backend = options.pop("backend", backend)
    settings, dialect = _read(app, {**given, **options}, has_backend=backend is not None)
    memory = _cache_memory(mounts, settings.cache_bytes)
    backend = (
        _own_chain(app, mounts, settings, memory) if backend is None else _checked(backend)
    )
    if isinstance(backend, EmbeddedChain) and dialect.behaviours.proves_each_block:
        backend.prove_blocks()
    mount = Mount(
        backend,
        (routes or COMETBFT_ROUTES).with_custom(feature_routes(settings)),
        settings,
        dialect,
        url_prefix=url_prefix,
        authorize=authorize,
        memory=memory,
        rows=rows,
    )
    name = f"{state.name_prefix}.{state.name}".lstrip(".")
    mounts[name] = mount
    state.url_prefix = url_prefix or None
    _add_rules(state, mount)
    _add_hooks(app, name, mount, url_prefix)
    refuse_overlap(app)
    request_started.connect(check_request, app)


def _add_hooks(app: Flask, name: str, mount: Mount, url_prefix: str) -> None:
    # Add hooks only if they are needed, because each one slows down every request.
    views = mount.views
    if views.policy.refuses_hosts:
        app.before_request_funcs.setdefault(name, []).append(views.refuse_host)
    if views.policy.adds_headers:
        app.after_request_funcs.setdefault(name, []).append(views.add_headers_to)
        # Add the headers to 404 responses as well, as CometBFT does.
        adder = views.adder_to_unmatched(url_prefix)
        app.after_request_funcs.setdefault(None, []).append(adder)


def _read(app: Flask, given: dict[str, Any], *, has_backend: bool) -> tuple[Settings, Dialect]:
    dialect = given.get("dialect")
    if not isinstance(dialect, Dialect):
        settings = read_settings(app.config, given)
        is_named = dialect is not None or bool(app.config.get("NODERPC_DIALECT"))
        if not has_backend and not is_named and (source := _source(app, settings)):
            settings = replace(settings, dialect=source.dialect())
        return settings, dialect_named(settings.dialect)
    # Compile the dialect now, so that its errors are not raised at the first response or
    # event.
    dialect.compile()
    settings = read_settings(app.config, {**given, "dialect": None})
    return replace(settings, dialect=dialect.name), dialect


def _add_rules(state: BlueprintSetupState, mount: Mount) -> None:
    # Add rules for OPTIONS if CORS is enabled, as browsers send it before other requests.
    asked, answers = (["OPTIONS"], True) if mount.settings.cors_origins else ([], None)
    refuse_taken_names(
        (*(path.endpoint for path in mount.paths), *(name for _, name, _ in mount.websockets))
    )
    for path in mount.paths:
        state.add_url_rule(
            path.rule,
            path.endpoint,
            path.view,
            methods=path.methods + asked,
            provide_automatic_options=answers,
        )
    for rule, endpoint, handler in mount.websockets:
        mount.websocket_routes.route(rule, bp=_Rules(state), endpoint=endpoint)(handler)


class _Rules:
    """Stand-in for a blueprint with the method ``route``, which flask-sock needs."""

    def __init__(self, state: BlueprintSetupState) -> None:
        self._state = state

    def route(self, path: str, endpoint: str, **options: Any) -> Callable[[View], None]:
        return lambda view: self._state.add_url_rule(path, endpoint, view, **options)


def _checked(backend: object) -> ChainBackend:
    if not isinstance(backend, ChainBackend):
        needed = "expected a ChainBackend, such as ChainBackend(reads) of your ChainReads"
        raise unfit_argument("backend", backend, needed)
    return backend


def _cache_memory(mounts: Mapping[str, Mount], limit: int) -> CacheMemory:
    """Return the cache memory that all mounts of an app share; its limit is the largest of
    their settings."""
    found = [mount.memory for mount in mounts.values()]
    memory = found[0] if found else CacheMemory(limit)
    memory.limit = max(memory.limit, limit)
    return memory


def _own_chain(
    app: Flask, mounts: Mapping[str, Mount], settings: Settings, memory: CacheMemory
) -> ChainBackend:
    """Return the backend that the settings select: a chain source of a feature, or an embedded
    chain."""
    if source := _source(app, settings):
        return source.backend()
    return _embedded(app, mounts, settings, memory)


def _source(app: Flask, settings: Settings) -> ChainSource | None:
    return chain_source(settings, chain_path(settings, Path(app.instance_path)))


def _embedded(
    app: Flask, mounts: Mapping[str, Mount], settings: Settings, memory: CacheMemory
) -> EmbeddedChain:
    """Return the app's embedded chain; mounts with the same database share it."""
    folder = Path(app.instance_path)
    path = chain_path(settings, folder)
    for name, mount in mounts.items():
        if isinstance(
            mount.backend, EmbeddedChain
        ) and mount.backend.store.location.path == str(path):
            different = [
                row.name
                for row in all_settings()
                if row.is_of_chain
                and mount.settings.value(row.name) != settings.value(row.name)
            ]
            if different:
                raise ConfigurationError(
                    f"{different[0]}: expected the value of the mount {name!r}, which has the"
                    f" same chain in {path}; set the same value, or another NODERPC_DATABASE"
                )
            return mount.backend
    return chain_from_settings(settings, folder, memory)
