"""One mount of the node RPC in an app: composes backend, dialect, APIs, views, websockets."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType

from .backends.base.backend import ChainBackend
from .cometbft.layer import CometLayer
from .feature import apis
from .jsonrpc.async_txs import AsyncTxs
from .jsonrpc.context import Context
from .jsonrpc.guard import STATUS, Authorize, Guard
from .jsonrpc.route import RouteTable
from .jsonrpc.start import Start
from .jsonrpc.waiters import ScanLimit, WaiterLimit
from .lru import CacheMemory
from .settings import Settings
from .web.connections import Connections
from .web.layers import Mounted, layers_of
from .web.observers import log_call, metrics_page, span_starter
from .web.pages import Index, Readiness, base_path, descriptions, service_pages
from .web.paths import Paths
from .web.rules.admit import Policy
from .web.rules.client_address import ClientLimit
from .web.rules.head import WEBSOCKET
from .web.threads import reserve_thread
from .web.try_page import TryPage
from .web.views import Views, propagates_exceptions
from .web.websocket import Handler, WebSocketRoutes
from .web.websocket_server import WebSocketServer
from .wire.dialect import Dialect


class Mount:
    """One mount: the node RPC at one prefix of an app."""

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
        """Dispatchers of other JSON-RPC, by the endpoints of their bodies."""
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
            start_span=span_starter(),
            memory=self.memory,
        )

    def _serve_paths(self, dialect: Dialect, guard: Guard, authorize: Authorize | None) -> None:
        settings = self.settings
        allowed_routes = RouteTable(r for r in self.routes if guard.has(r.name))
        index = Index(
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
        self._paths = Paths(self.views, self._layers, dialect, settings, self._url_prefix)
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
        """Yield the methods and paths of calls, and their endpoints of the HTTP rules."""
        for path in self.paths:
            if path.call is not None:
                method, endpoint = path.call
                yield (method, self._url_prefix + path.rule), endpoint

    def prepare(self, *, serves: bool) -> None:
        """Start in the background what calls or blocks need, before the first of them."""
        for layer in self._layers:
            layer.prepare(serves=serves)

    def limit(self, websockets: int, waiting: int) -> None:
        """Lower the limits to those of a server with few open files."""
        self._connections.lower(websockets)
        self._waiters.lower(waiting)

    def hang_up(self) -> None:
        """Close all websockets, refuse new ones, answer waiting calls before it stops."""
        self._waiters.close()
        self._connections.close()
        self._comet.stop()
        for layer in self._layers:
            layer.stop()
