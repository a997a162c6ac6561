"""One mount of the node RPC in an app.

A mount combines backend, dialect, APIs, views and websockets. It lists their paths once, for
Flask's rules and for calls that are served without Flask.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from types import MappingProxyType

from .backends.base.backend import ChainBackend
from .cometbft.layer import CometLayer
from .errors import InvalidSetting
from .feature import apis
from .jsonrpc.context import Context, Start
from .jsonrpc.guard import STATUS, Authorize, Guard
from .jsonrpc.route import RouteTable
from .jsonrpc.session import WEBSOCKET_METHODS
from .jsonrpc.waiters import AsyncTxs, ScanLimit, WaiterLimit
from .lru import CacheMemory
from .settings import Settings
from .web.connections import Connections, WebSocketServer
from .web.layers import EVERY_METHOD, Layer, Mounted, Path, layers_of
from .web.pages import (
    IndexPage,
    PageRule,
    base_path,
    descriptions,
    metrics_page,
    service_pages,
)
from .web.readiness import Readiness
from .web.rules.admit import Policy
from .web.rules.head import RPC, WEBSOCKET, ClientLimit
from .web.threads import reserve_thread
from .web.try_page import TryPage
from .web.views import Views, log_call, propagates_exceptions
from .web.websocket import Handler, WebSocketRoutes
from .wire.dialect import Dialect

_INDEX = "index"


class _Paths:
    """Paths of one mount under its ``url_prefix``, without paths that NODERPC_EXCLUDE_ROUTES
    names."""

    def __init__(
        self,
        views: Views,
        layers: Sequence[Layer],
        dialect: Dialect,
        settings: Settings,
        url_prefix: str,
    ) -> None:
        self._views = views
        self._layers = layers
        self._http = dialect.http
        self._excluded = settings.exclude_routes
        self._url_prefix = url_prefix
        self._methods = EVERY_METHOD if self._http.any_method else ["GET"]

    def all(
        self, routes: RouteTable, pages: Mapping[str, Iterable[PageRule]]
    ) -> Iterator[Path]:
        """Yield the paths of the routes, of the pages and of the layers."""
        for prefix, suffix in self._prefixes():
            yield from self._roots(prefix, suffix)
            for name in routes.by_name():
                yield from self._route(prefix, suffix, name, ("GET", name))
            for name in self._websocket_names():
                yield from self._route(prefix, suffix, name)
        for name, rules in pages.items():
            if name not in self._excluded:
                for rule, endpoint, page, method in rules:
                    yield Path(rule, endpoint, ["GET"], self._views.page(page, method))
        for layer in self._layers:
            yield from layer.paths(self._views, self._excluded)

    def _prefixes(self) -> Iterator[tuple[str, str]]:
        """Yield the prefixes under which the dialect serves all paths, such as ``/v1``, each
        with a suffix for Flask endpoints."""
        return ((prefix, prefix.replace("/", "_")) for prefix in self._http.mounts)

    def _roots(self, prefix: str, suffix: str) -> Iterator[Path]:
        posts = [method for method in self._methods if method != "GET"] or ["POST"]
        # With a prefix, also serve the path without the final slash, as base URLs of clients
        # have no final slash.
        has_bare = self._url_prefix or prefix
        roots = [(f"{prefix}/", suffix), (prefix, f"{suffix}_bare")][: 2 if has_bare else 1]
        for rule, end in roots:
            yield Path(rule, f"{RPC}{end}", posts, self._views.rpc, ("POST", RPC))
            if _INDEX not in self._excluded:
                yield Path(rule, f"{_INDEX}{end}", ["GET"], self._views.index)

    def _route(
        self, prefix: str, suffix: str, name: str, call: tuple[str, str] | None = None
    ) -> Iterator[Path]:
        if name not in self._excluded:
            view = self._views.route(name)
            yield Path(f"{prefix}/{name}", f"{name}{suffix}", self._methods, view, call)

    def _websocket_names(self) -> Iterable[str]:
        """Return the paths of methods that only work on a websocket, if the dialect's nodes
        have them."""
        return WEBSOCKET_METHODS if self._http.websocket_routes else ()

    def websockets(self) -> Iterator[tuple[str, str]]:
        """Yield the URL rules of the node's websockets, each with its endpoint."""
        for prefix, suffix in self._prefixes():
            yield f"{prefix}/websocket", f"{WEBSOCKET}{suffix}"

    def check_excluded(self, routes: Iterable[str], pages: Iterable[str]) -> None:
        """Raise :exc:`~flask_noderpc.errors.ConfigurationError` for an unknown name."""
        of_layers = (name for layer in self._layers for name in layer.excludable)
        names = {*routes, *self._websocket_names(), *pages, _INDEX, *of_layers}
        for name in self._excluded:
            if name not in names:
                like = get_close_matches(name, names, 1)
                hint = f"did you mean {like[0]!r}?" if like else "see docs/routes for the list"
                raise InvalidSetting(
                    f"NODERPC_EXCLUDE_ROUTES: expected names of routes, got {name!r}; {hint}"
                )


class Mount:
    """The node RPC at one prefix of an app."""

    def __init__(  # noqa: PLR0913  # keywords, each with a default
        self,
        backend: ChainBackend,
        routes: RouteTable,
        settings: Settings,
        dialect: Dialect,
        *,
        url_prefix: str = "",
        authorize: Authorize | None = None,
        memory: CacheMemory | None = None,
        rows: Mapping[str, RouteTable] = MappingProxyType({}),
    ) -> None:
        dialect = dialect.with_schemas(routes.schemas())
        self.backend = backend
        self.settings = settings
        self.memory = memory or CacheMemory(settings.cache_bytes)
        self.start = Start(backend)
        self._url_prefix = url_prefix
        guard = Guard(settings.allow_methods, settings.deny_methods)
        context = self._context(dialect)
        self._waiters = context.waiters
        self._comet = CometLayer(context, routes, dialect, self.start, guard)
        self.routes = self._comet.routes
        self.node = self._comet.dispatcher
        """Dispatcher of the node's RPC."""
        mounted = Mounted(context, self.start, guard, self.node)
        self._layers = tuple(layers_of(mounted, rows))
        self.dispatchers = {
            endpoint: found
            for layer in self._layers
            for endpoint, found in layer.dispatchers.items()
        }
        """Dispatchers of other JSON-RPC APIs, by the endpoints that receive their bodies."""
        guard.check_names(
            self._comet.methods.union(*(layer.methods for layer in self._layers)),
            tuple(
                prefix
                for api in apis()
                if not settings.value(api.setting)
                for prefix in api.prefixes
            ),
        )
        self._serve_paths(dialect, guard, authorize)
        self._serve_websockets(dialect)

    def _context(self, dialect: Dialect) -> Context:
        settings = self.settings
        return Context(
            backend=self.backend,
            settings=settings,
            behaviours=dialect.behaviours,
            node_version=dialect.node_version,
            encode=dialect.encode,
            waiters=WaiterLimit(
                settings.max_waiting_calls,
                "NODERPC_MAX_WAITING_CALLS",
                self.backend,
                partial(reserve_thread, settings.server_threads),
            ),
            scans=ScanLimit(settings.search_timeout),
            async_txs=AsyncTxs(self.backend),
            propagates=propagates_exceptions,
            log_call=log_call if settings.log_calls else None,
            memory=self.memory,
        )

    def _serve_paths(self, dialect: Dialect, guard: Guard, authorize: Authorize | None) -> None:
        settings = self.settings
        allowed_routes = RouteTable(r for r in self.routes if guard.has(r.name))
        index = IndexPage(
            allowed_routes, self.backend, self.start, dialect, settings.exclude_routes
        )
        self.views = Views(
            Policy.of(
                settings, dialect, ChainMap(*(dict(each.admissions) for each in self._layers))
            ),
            self.node,
            index.page,
            authorize,
        )
        described = descriptions(index.described, dialect)
        forms = TryPage(
            self.start,
            self.backend,
            lambda: described(base_path()),
            self.node,
            self._layers,
            self.views.permissions,
        )
        metrics = metrics_page(self.backend, self.memory) if settings.metrics else None
        readiness = Readiness(
            self.start, self.backend, lambda: self.views.refuse(STATUS) is None
        )
        pages = service_pages(readiness, described, forms, metrics)
        self._paths = _Paths(self.views, self._layers, dialect, settings, self._url_prefix)
        self._paths.check_excluded(self._comet.names, pages)
        self.paths = tuple(self._paths.all(self.routes, pages))

    def _serve_websockets(self, dialect: Dialect) -> None:
        settings = self.settings
        self._connections = Connections(
            self.backend,
            limit=settings.max_open_connections,
            per_client=ClientLimit(settings.max_connections_per_client),
        )
        server = WebSocketServer(self.views, self._connections, settings.server_threads)
        self.websocket_routes = WebSocketRoutes(
            self.views.refuse_handshake, server.reserve, dialect.http.wrong_websocket_version
        )
        node = server.handler(WEBSOCKET, self._comet.session, settings.max_body_bytes)
        self.websockets: tuple[tuple[str, str, Handler], ...] = (
            *((rule, endpoint, node) for rule, endpoint in self._paths.websockets()),
            *(
                (rule, endpoint, server.handler(endpoint, open_session, max_bytes))
                for layer in self._layers
                for rule, endpoint, open_session, max_bytes in layer.websockets()
            ),
        )
        """Rules of websockets to register: rule, endpoint, handler."""

    def calls(self) -> Iterator[tuple[tuple[str, str], str]]:
        """Yield the HTTP method and path of each call that can be served without Flask, and
        its endpoint."""
        for path in self.paths:
            if path.call is not None:
                method, endpoint = path.call
                yield (method, self._url_prefix + path.rule), endpoint

    def prepare(self, *, serves: bool) -> None:
        """Start in the background what the first call or block would otherwise wait for, such
        as processes."""
        for layer in self._layers:
            layer.prepare(serves=serves)

    def limit(self, websockets: int, waiting: int) -> None:
        """Lower the limits of open websockets and waiting calls, on a server with few file
        descriptors."""
        self._connections.lower(websockets)
        self._waiters.lower(waiting)

    def hang_up(self) -> None:
        """Close all websockets, refuse new ones, and end waiting calls, before the server
        stops."""
        self._waiters.close()
        self._connections.close()
        self._comet.stop()
        for layer in self._layers:
            layer.stop()
