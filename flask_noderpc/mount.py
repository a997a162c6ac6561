"""One mount of the node RPC in an app: composes backend, dialect, APIs, views, websockets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from .backends.base.backend import ChainBackend
from .cometbft.layer import CometLayer
from .cosmos.rest.view import RestView
from .errors import InvalidSetting
from .ethereum.state import EVM_STATE
from .jsonrpc.async_txs import AsyncTxs
from .jsonrpc.context import Context
from .jsonrpc.dispatch import Dispatcher
from .jsonrpc.guard import STATUS, Authorize, Guard
from .jsonrpc.route import Route, RouteTable
from .jsonrpc.start import Start
from .jsonrpc.waiters import ScanLimit, WaiterLimit
from .lru import CacheMemory
from .optional_dependencies import (
    EVM_NAMESPACES,
    check_evm_api,
    evm_layer,
    metrics_page,
    span_starter,
)
from .settings import Settings
from .web.call_log import log_call
from .web.connections import Connections
from .web.pages import Index, Readiness, base_path, descriptions, service_pages
from .web.paths import Paths
from .web.rules.admit import Policy
from .web.rules.client_address import ClientLimit
from .web.rules.head import EVM, EVM_WEBSOCKET, WEBSOCKET
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
        evm_routes: Iterable[Route[Any]] = (),
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
        self._evm = None
        if settings.json_rpc_enable:
            self._evm = evm_layer(context, self.start, guard, evm_routes)
        elif evm_routes:
            raise InvalidSetting("evm_routes are served with NODERPC_JSON_RPC_ENABLE alone")
        else:
            check_evm_api(settings.evm_api)
        guard.check_names(
            self._comet.methods | (self._evm.methods if self._evm else set()),
            () if self._evm else EVM_NAMESPACES,
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
                settings.max_waiting_calls_per_client,
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
            Policy.of(settings, dialect),
            self._comet.dispatcher,
            self._evm.dispatcher if self._evm else None,
            index.page,
            authorize,
        )
        described = descriptions(index.described, dialect)
        forms = TryPage(
            self.start,
            self.backend,
            lambda: described(base_path()),
            self._comet.dispatcher,
            self._evm.dispatcher if self._evm else None,
            self.views.permissions,
        )
        metrics = metrics_page(self.backend, self.memory) if settings.metrics else None
        readiness = Readiness(
            self.start, self.backend, lambda: self.views.refuse(STATUS) is None
        )
        pages = service_pages(readiness, described, forms, metrics)
        rest = RestView(self.views, self._comet.dispatcher) if settings.rest else None
        self._paths = Paths(self.views, rest, dialect, settings, self._url_prefix)
        self._paths.check_excluded(self._comet.names, pages)
        self.paths = tuple(self._paths.all(self.routes, pages))

    def _serve_websockets(self, dialect: Dialect) -> None:
        settings = self.settings
        self._connections = Connections(
            self.backend,
            limit=settings.max_websockets,
            per_client=ClientLimit(settings.max_connections_per_client),
        )
        server = WebSocketServer(self.views, self._connections, settings.server_threads)
        self.websocket_routes = WebSocketRoutes(
            self.views.refuse_handshake, server.reserve, dialect.http.wrong_websocket_version
        )
        handlers = {
            WEBSOCKET: server.handler(WEBSOCKET, self._comet.session, settings.max_body_bytes)
        }
        if self._evm is not None:
            handlers[EVM_WEBSOCKET] = server.handler(
                EVM_WEBSOCKET, self._evm.session, settings.evm_max_body_bytes
            )
        self.websockets: tuple[tuple[str, str, Handler], ...] = tuple(
            (rule, endpoint, handlers[kind])
            for rule, endpoint, kind in self._paths.websockets()
        )
        """Rules of websockets to register: rule, endpoint, handler."""

    def calls(self) -> Iterator[tuple[tuple[str, str], str]]:
        """Yield the methods and paths of calls, and their endpoints of the HTTP rules."""
        for path in self.paths:
            if path.call is not None:
                method, endpoint = path.call
                yield (method, self._url_prefix + path.rule), endpoint

    def dispatcher_of(self, endpoint: str) -> Dispatcher:
        """Return the dispatcher of an endpoint's calls."""
        layer = self._evm if self._evm and endpoint == EVM else self._comet
        return layer.dispatcher

    def prepare(self, *, serves: bool) -> None:
        """Start the EVM executors in the background before the first call or block."""
        if self._evm is None:
            return
        state = EVM_STATE.find(self.backend)
        if state is not None:
            state.start(calls=serves, blocks=self.settings.produce)

    def limit(self, websockets: int, waiting: int) -> None:
        """Lower the limits to those of a server with few open files."""
        self._connections.lower(websockets)
        self._waiters.lower(waiting)

    def hang_up(self) -> None:
        """Close all websockets, refuse new ones, answer waiting calls before it stops."""
        self._waiters.close()
        self._connections.close()
        self._comet.stop()
        if self._evm is not None:
            self._evm.stop()
