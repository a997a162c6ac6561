"""The Flask extension, which mounts the node RPC on an app.

Importing it imports little: registering a mount imports the rest, in :mod:`.mounting`.
Registering opens nothing: the first request of a process opens the store, acquires the lease
and starts the producer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack, cast

from flask import Blueprint, Flask, current_app

from .errors import ConfigurationError, unfit_argument
from .feature import apis
from .settings import CoreSettings, non_default_values

if TYPE_CHECKING:
    from flask.blueprints import BlueprintSetupState

    from .backends.base.backend import ChainBackend
    from .jsonrpc.guard import Authorize
    from .jsonrpc.route import Route, RouteTable
    from .mount import Mount
    from .wire.dialect import Dialect


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
            raise unfit_argument(
                "authorize", authorize, "expected a function of a request and a method's name"
            )
        if not isinstance(name, str):
            raise unfit_argument("name", name, "expected a string")
        self._authorize = authorize
        self._name = name
        self._url_prefix = _checked_prefix(url_prefix)
        self._backend = backend
        self._routes = None if routes == () else _with_node_routes(routes)
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
            raise unfit_argument("app", app, "expected a Flask app")
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
        from .mounting import add_mount

        add_mount(
            state,
            mounts(cast(Flask, state.app)),
            # "/node/" means "/node", and "/" means no prefix: rules begin with a slash.
            url_prefix=(_checked_prefix(state.url_prefix) or "").rstrip("/"),
            backend=self._backend,
            given=self._settings,
            routes=self._routes,
            rows=self._rows,
            authorize=self._authorize,
        )


def _with_node_routes(routes: Iterable[Route[Any]]) -> RouteTable:
    from .cometbft.routes import COMETBFT_ROUTES

    return COMETBFT_ROUTES.with_custom(routes)


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
        raise unfit_argument("rows", rows, needed)
    found = {**rows, **{name: keywords.pop(name) for name in known & keywords.keys()}}
    if not found:
        return {}
    from .jsonrpc.route import RouteTable

    return {name: RouteTable(()).with_custom(each, name) for name, each in found.items()}


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


def _checked_prefix(prefix: object) -> str | None:
    if prefix is None:
        return None
    if not isinstance(prefix, str) or (prefix and not prefix.startswith("/")):
        raise unfit_argument("url_prefix", prefix, "expected a path such as '/node'")
    return prefix


noderpc_bp = NodeRPC().blueprint()
"""The complete integration: ``app.register_blueprint(noderpc_bp)``."""
