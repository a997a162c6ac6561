"""The Flask extension, which mounts the node RPC on an app.

Registering a mount opens nothing: the first request of a process opens the store, acquires the
lease and starts the producer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Unpack, cast

from flask import Blueprint, Flask, current_app, request_started
from flask.blueprints import BlueprintSetupState

from .backends.base.backend import ChainBackend
from .chain.embedded import EmbeddedChain
from .chain.from_settings import chain_from_settings, chain_path
from .chain.source import ChainSource, chain_source
from .cometbft.routes import COMETBFT_ROUTES, feature_routes
from .errors import ConfigurationError, short_repr
from .feature import apis
from .jsonrpc.guard import Authorize
from .jsonrpc.route import Route, RouteTable
from .lru import CacheMemory
from .mount import Mount
from .settings import CoreSettings, Settings, all_settings, non_default_values, read_settings
from .web.rule_conflicts import check_request, refuse_overlap, refuse_taken_names
from .web.views import View
from .wire.dialect import Dialect
from .wire.dialects import dialect_named


class NodeRPC:
    """Serves a node's RPC from a Flask app.

    ``backend`` handles the calls; by default, it is an embedded chain in the app's instance
    folder. ``routes`` are your own routes, in addition to the node's. ``authorize`` is called
    with Flask's request and the name of the method for every call, and returns ``True`` or
    :class:`~flask_noderpc.Denied`. ``dialect`` is the name of a dialect or your own dialect.
    Further keywords are settings of this mount only, such as ``max_batch``.

    ``settings`` are the settings of features, as instances of the classes that declare them:
    ``EthereumSettings(json_rpc_enable=True)``. ``rows`` are further routes for APIs of
    features, such as ``{"evm_routes": [...]}`` for Ethereum's JSON-RPC. Both may also be
    passed as keywords, which type checkers don't check.
    """

    def __init__(  # noqa: PLR0913  # keywords, each with a default
        self,
        app: Flask | None = None,
        *,
        backend: ChainBackend | None = None,
        name: str = "noderpc",
        url_prefix: str | None = None,
        routes: Iterable[Route[Any]] = (),
        authorize: Authorize | None = None,
        dialect: str | Dialect | None = None,
        settings: Iterable[object] = (),
        rows: Mapping[str, Iterable[Route[Any]]] = MappingProxyType({}),
        **keywords: Unpack[CoreSettings],
    ) -> None:
        if authorize is not None and not callable(authorize):
            raise _unfit(
                "authorize", authorize, "expected a function of a request and a method's name"
            )
        if not isinstance(name, str):
            raise _unfit("name", name, "expected a string")
        self._authorize = authorize
        self._name = name
        self._url_prefix = _checked_prefix(url_prefix)
        self._backend = backend
        self._routes = COMETBFT_ROUTES.with_custom(routes)
        given: dict[str, Any] = {**non_default_values(settings), **keywords}
        self._rows = _row_tables(rows, given)
        self._settings = given if dialect is None else {**given, "dialect": dialect}
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Mount the node RPC on an app; raise
        :exc:`~flask_noderpc.errors.ConfigurationError`."""
        # Accept a blueprint, too, on which the mount's blueprint is then nested.
        if not isinstance(app, Flask | Blueprint):
            raise _unfit("app", app, "expected a Flask app")
        app.register_blueprint(self.blueprint())

    def blueprint(self) -> Blueprint:
        """Return a blueprint that mounts the node RPC where it is registered; a ``url_prefix``
        at the registration replaces its own."""
        blueprint = Blueprint(
            self._name,
            __name__,
            template_folder="web/templates",
            url_prefix=self._url_prefix,
        )
        blueprint.record(self._mount)
        return blueprint

    def _mount(self, state: BlueprintSetupState) -> None:
        app = cast(Flask, state.app)
        options = {k: v for k, v in state.options.items() if k not in _BLUEPRINT_OPTIONS}
        backend = options.pop("backend", self._backend)
        given = {**self._settings, **options}
        settings, dialect = _read(app, given, has_backend=backend is not None)
        memory = _cache_memory(app, settings.cache_bytes)
        backend = _own_chain(app, settings, memory) if backend is None else _checked(backend)
        if isinstance(backend, EmbeddedChain) and dialect.behaviours.proves_each_block:
            backend.prove_blocks()
        # "/node/" means "/node", and "/" means no prefix: the rules below begin with a slash.
        url_prefix = (_checked_prefix(state.url_prefix) or "").rstrip("/")
        mount = Mount(
            backend,
            self._routes.with_custom(feature_routes(settings)),
            settings,
            dialect,
            url_prefix=url_prefix,
            authorize=self._authorize,
            memory=memory,
            rows=self._rows,
        )
        name = f"{state.name_prefix}.{state.name}".lstrip(".")
        mounts(app)[name] = mount
        state.url_prefix = url_prefix or None
        _add_rules(state, mount)
        # Add hooks only if they are needed, because each one slows down every request.
        views = mount.views
        if views.policy.refuses_hosts:
            app.before_request_funcs.setdefault(name, []).append(views.refuse_host)
        if views.policy.adds_headers:
            app.after_request_funcs.setdefault(name, []).append(views.add_headers_to)
            # Add the headers to 404 responses as well, as CometBFT does.
            app.after_request_funcs.setdefault(None, []).append(
                views.adder_to_unmatched(url_prefix)
            )
        refuse_overlap(app)
        request_started.connect(check_request, app)


def _row_tables(
    rows: Mapping[str, Iterable[Route[Any]]], keywords: dict[str, Any]
) -> dict[str, RouteTable]:
    """Return the routes for APIs of features by the names of their keywords; remove these from
    ``keywords``."""
    if not rows and not keywords:
        return {}
    known = {api.rows for api in apis() if api.rows}
    if not isinstance(rows, Mapping) or not rows.keys() <= known:
        needed = f"expected a dict with lists of Route, by {' or '.join(sorted(known))}"
        raise _unfit("rows", rows, needed)
    found = {**rows, **{name: keywords.pop(name) for name in known & keywords.keys()}}
    return {name: RouteTable(()).with_custom(each, name) for name, each in found.items()}


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


# Arguments of Flask's register_blueprint().
_BLUEPRINT_OPTIONS = {
    "url_prefix",
    "subdomain",
    "url_defaults",
    "name",
    "name_prefix",
    "cli_group",
}


def mounts(app: Flask) -> dict[str, Mount]:
    """Return the mounts of an app, by the names of their blueprints."""
    found: dict[str, Mount] = app.extensions.setdefault("noderpc", {})
    return found


def hang_up(app: Flask) -> None:
    """Close the websockets of all mounts, and end waiting calls, before a server stops.

    This can't be undone: further websocket connections are refused with status 503.
    """
    for mount in mounts(app).values():
        mount.hang_up()


def get_backend(name: str = "noderpc") -> ChainBackend:
    """Start and return the backend of a mount of the current app, for the app's own views."""
    mount = mount_named(name)
    mount.start()
    return mount.backend


def may_write(name: str = "noderpc") -> bool:
    """Return true if the origin of the current request may change state, by the settings of a
    mount of the current app; for the app's own views that change state."""
    return mount_named(name).views.permissions().may_write


def mount_named(name: str) -> Mount:
    """Return a mount of the current app; raise
    :exc:`~flask_noderpc.errors.ConfigurationError`."""
    mount = mounts(current_app).get(name)
    if mount is None:
        known = ", ".join(map(repr, mounts(current_app))) or "none"
        raise ConfigurationError(f"name: expected a mount of this app ({known}), got {name!r}")
    return mount


def _unfit(argument: str, value: object, needed: str) -> ConfigurationError:
    return ConfigurationError(f"{argument}: {needed}, got {short_repr(value)}")


def _checked(backend: object) -> ChainBackend:
    if not isinstance(backend, ChainBackend):
        needed = "expected a ChainBackend, such as ChainBackend(reads) of your ChainReads"
        raise _unfit("backend", backend, needed)
    return backend


def _checked_prefix(prefix: object) -> str | None:
    if prefix is None:
        return None
    if not isinstance(prefix, str) or (prefix and not prefix.startswith("/")):
        raise _unfit("url_prefix", prefix, "expected a path such as '/node'")
    return prefix


def _cache_memory(app: Flask, limit: int) -> CacheMemory:
    """Return the cache memory that all mounts of an app share; its limit is the largest of
    their settings."""
    found = [mount.memory for mount in mounts(app).values()]
    memory = found[0] if found else CacheMemory(limit)
    memory.limit = max(memory.limit, limit)
    return memory


def _own_chain(app: Flask, settings: Settings, memory: CacheMemory) -> ChainBackend:
    """Return the backend that the settings select: a chain source of a feature, or an embedded
    chain."""
    if source := _source(app, settings):
        return source.backend()
    return _embedded(app, settings, memory)


def _source(app: Flask, settings: Settings) -> ChainSource | None:
    return chain_source(settings, chain_path(settings, Path(app.instance_path)))


def _embedded(app: Flask, settings: Settings, memory: CacheMemory) -> EmbeddedChain:
    """Return the app's embedded chain; mounts with the same database share it."""
    folder = Path(app.instance_path)
    path = chain_path(settings, folder)
    for name, mount in mounts(app).items():
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


noderpc_bp = NodeRPC().blueprint()
"""The complete integration: ``app.register_blueprint(noderpc_bp)``."""
