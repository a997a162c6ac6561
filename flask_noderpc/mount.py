"""One mount of the node RPC in an app: composes backend, dialect, dispatcher and views."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from flask import Response, current_app, request

from .backends.base.backend import ChainBackend
from .cometbft.routes import UNSAFE_ROUTES
from .errors import ConfigurationError, NotSupported
from .events.feed import Feed, HeightSource
from .events.messages import messages_at
from .jsonrpc.async_txs import AsyncTxs
from .jsonrpc.context import Context
from .jsonrpc.describe import DISCOVER, with_discover
from .jsonrpc.dispatch import Dispatcher
from .jsonrpc.guard import Authorize, Guard
from .jsonrpc.route import Route, RouteTable
from .jsonrpc.session import WEBSOCKET_METHODS, Limits, Session, WebSocketSession
from .jsonrpc.start import Start
from .jsonrpc.subscriptions import QueryHub
from .jsonrpc.waiters import ScanLimit, WaiterLimit, reserve_thread
from .lru import CacheMemory
from .optional_dependencies import evm_layer, metrics_page
from .settings import Settings
from .web.call_log import log_call
from .web.connection import Connection, Timing
from .web.connections import Connections
from .web.pages import Index, service_pages
from .web.rules.admit import Policy
from .web.rules.head import EVM, RPC
from .web.views import View, Views
from .web.websocket import WebSocketRoutes
from .wire.dialect import Dialect

_EVERY_METHOD = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_EVM, _INDEX = "evm", "index"

_OTHER_METHODS = {DISCOVER, *WEBSOCKET_METHODS, *UNSAFE_ROUTES.by_name()}
# Of the EVM layer, whose methods are not known where it is not served.
_EVM_NAMES = "eth", "web3", "net", "txpool", "debug", "evm", "anvil", "hardhat", "personal"
_NAMESPACES = tuple(f"{name}_" for name in _EVM_NAMES)


class Mount:
    """One place of an app where the node RPC is served."""

    timing = Timing()
    """The deadlines of its websockets."""

    def __init__(
        self,
        backend: ChainBackend,
        routes: RouteTable,
        settings: Settings,
        dialect: Dialect,
        authorize: Authorize | None = None,
        memory: CacheMemory | None = None,
        evm_routes: Iterable[Route[Any]] = (),
    ) -> None:
        dialect = dialect.with_schemas(routes.schemas())
        self.memory = memory or CacheMemory(settings.cache_bytes)
        if settings.rpc_unsafe:
            routes += UNSAFE_ROUTES
        self.prefix = ""
        """The url_prefix that it is registered under."""
        self.backend = backend
        self.start = Start(backend)
        self.routes = RouteTable(
            route for route in routes if route.name not in dialect.omits_routes
        )
        self.settings = settings
        self._dialect = dialect
        self._guard = Guard(settings.allow_methods, settings.deny_methods)
        allowed_routes = RouteTable(r for r in self.routes if self._guard.has(r.name))
        self._waiters = WaiterLimit(
            settings.max_waiting_calls,
            "NODERPC_MAX_WAITING_CALLS",
            backend,
            settings.server_threads,
            settings.max_waiting_calls_per_client,
        )
        context = Context(
            backend=backend,
            settings=settings,
            behaviours=dialect.behaviours,
            node_version=dialect.node_version,
            encode=dialect.encode,
            waiters=self._waiters,
            scans=ScanLimit(settings.search_timeout),
            async_txs=AsyncTxs(backend),
            propagates=_propagates,
            log_call=log_call if settings.log_calls else None,
            memory=self.memory,
        )
        self._evm = None
        if settings.json_rpc_enable:
            self._evm = evm_layer(context, self.start, self._guard, evm_routes)
        elif evm_routes:
            raise ConfigurationError("evm_routes are served with NODERPC_JSON_RPC_ENABLE alone")
        self._dispatcher = Dispatcher(
            with_discover(self.routes, dialect, self._guard.has),
            dialect,
            context,
            # A backend that can't start is an error object of each call.
            self.start,
            hints={route.name: "NODERPC_RPC_UNSAFE brings it" for route in UNSAFE_ROUTES},
            guard=self._guard,
        )
        self._hub = QueryHub(dialect.encode_event, settings.event_buffer)
        self._feed = Feed(
            HeightSource(backend, self._publish), wanted=lambda: len(self._hub) > 0
        )
        index = Index(allowed_routes, backend, self.start, dialect, settings.exclude_routes)
        self.views = Views(
            Policy.of(settings, dialect),
            self._dispatcher,
            self._evm.dispatcher if self._evm else None,
            index.page,
            authorize,
        )
        self._limits = Limits(
            settings.max_subscription_clients,
            settings.max_subscriptions_per_client,
        )
        self.shell = WebSocketRoutes(
            self.views.refuse_handshake, self._reserve, dialect.http.wrong_websocket_version
        )
        self._connections = Connections(
            backend,
            limit=settings.max_websockets,
            per_client=settings.max_connections_per_client,
        )
        self._pages = service_pages(
            self.start,
            backend,
            index.described,
            dialect,
            metrics_page(backend, self.memory) if settings.metrics else None,
        )
        self._check_names(routes)

    def _check_names(self, routes: RouteTable) -> None:
        self._guard.check_names(
            {*routes.by_name(), *_OTHER_METHODS, *(self._evm.methods if self._evm else ())},
            () if self._evm else _NAMESPACES,
        )
        own = (_INDEX, _EVM) if self._evm else (_INDEX,)
        names = {*routes.by_name(), *self._websocket_names(), *self._pages, *own}
        for name in self.settings.exclude_routes:
            if name not in names:
                raise ConfigurationError(f"NODERPC_EXCLUDE_ROUTES: no route {name!r}")

    def rules(self, has_prefix: bool) -> Iterable[tuple[str, str, list[str], View]]:
        """Rules to register: rule, endpoint, methods, view."""
        every = _EVERY_METHOD if self._dialect.http.any_method else ["GET"]
        posts = [method for method in every if method != "GET"] or ["POST"]
        for prefix, endpoint_suffix in self.prefixes():
            # With a prefix, its bare form answers too: a client's base URL has no slash.
            bare = has_prefix or prefix
            for suffix, rule in (("", f"{prefix}/"), ("_bare", prefix))[: 2 if bare else 1]:
                yield rule, f"rpc{endpoint_suffix}{suffix}", posts, self.views.rpc
                if _INDEX not in self.settings.exclude_routes:
                    yield rule, f"index{endpoint_suffix}{suffix}", ["GET"], self.views.index
            for name in (*self.routes.by_name(), *self._websocket_names()):
                if name not in self.settings.exclude_routes:
                    yield (
                        f"{prefix}/{name}",
                        f"{name}{endpoint_suffix}",
                        every,
                        self.views.route(name),
                    )
        yield from self._rules_beside()

    def _rules_beside(self) -> Iterable[tuple[str, str, list[str], View]]:
        for name, (rule, page) in self._pages.items():
            if name not in self.settings.exclude_routes:
                yield rule, name, ["GET"], _without_variables(page)
        if self._evm is not None:
            left = {"GET"} if _EVM in self.settings.exclude_routes else set()
            methods = [method for method in _EVERY_METHOD if method not in left]
            yield "/evm", _EVM, methods, self.views.evm

    def calls(self) -> Iterator[tuple[tuple[str, str], str]]:
        """Yield the methods and paths of calls, and their endpoints of the HTTP rules."""
        for prefix, _ in self.prefixes():
            place = f"{self.prefix}{prefix}"
            yield ("POST", f"{place}/"), RPC
            if place:
                yield ("POST", place), RPC
            for route in self.routes:
                if route.name not in self.settings.exclude_routes:
                    yield ("GET", f"{place}/{route.name}"), route.name
        if self._evm is not None:
            yield ("POST", f"{self.prefix}/evm"), EVM

    def dispatcher_of(self, endpoint: str) -> Dispatcher:
        """Return the dispatcher of an endpoint's calls."""
        return self._evm.dispatcher if self._evm and endpoint == EVM else self._dispatcher

    def prefixes(self) -> Iterable[tuple[str, str]]:
        """Prefixes under which the dialect serves all paths, with suffixes of endpoints."""
        return ((prefix, prefix.replace("/", "_")) for prefix in self._dialect.http.mounts)

    def _websocket_names(self) -> tuple[str, ...]:
        """Paths that a real node has only for websockets."""
        return tuple(WEBSOCKET_METHODS) if self._dialect.http.websocket_routes else ()

    def add_headers_to_unmatched(self, response: Response) -> Response:
        """Add this mount's headers to the 404 of a path below its prefix."""
        if request.url_rule is None and request.path.startswith(f"{self.prefix}/"):
            self.views.add_headers_to(response)
        return response

    @contextmanager
    def _reserve(self) -> Iterator[None]:
        """Reserve a thread and a slot among the open websockets."""
        client = self.views.permissions().client
        with reserve_thread(self.settings.server_threads), self._connections.slot(client):
            yield

    def prepare(self, *, serves: bool) -> None:
        """Start the EVM executors in the background before the first call or block."""
        if self._evm is None:
            return
        with suppress(NotSupported):
            self.backend.evm_state.start(calls=serves, blocks=self.settings.produce)

    def limit(self, websockets: int, waiting: int) -> None:
        """Lower the limits to those of a server with few open files."""
        self._connections.lower(websockets)
        self._waiters.lower(waiting)

    def websockets(self) -> Iterable[tuple[str, str, Callable[[socket.socket, bytes], None]]]:
        """Websocket rules to register: rule, endpoint, handler."""
        for prefix, endpoint_suffix in self.prefixes():
            yield f"{prefix}/websocket", f"websocket{endpoint_suffix}", self.serve_websocket
        if self._evm is not None:
            yield "/evm/ws", "evm_websocket", self._serve_evm_websocket

    def serve_websocket(self, sock: socket.socket, early: bytes) -> None:
        """Serve a websocket to its end."""
        connection = Connection(sock, self.timing, self.settings.max_body_bytes, early)
        session = Session(
            self._dispatcher,
            self._hub,
            self._limits,
            follow=self._follow,
            send=connection.send,
            wake=connection.wake,
            permissions=self.views.permissions(),
        )
        self._run_session(connection, session)

    def _serve_evm_websocket(self, sock: socket.socket, early: bytes) -> None:
        assert self._evm is not None
        connection = Connection(sock, self.timing, self.settings.evm_max_body_bytes, early)
        session = self._evm.session(
            send=connection.send,
            wake=connection.wake,
            drop=connection.drop,
            permissions=self.views.signer(),
        )
        self._run_session(connection, session)

    def _run_session(self, connection: Connection, session: WebSocketSession[Any, Any]) -> None:
        app = current_app._get_current_object()  # type: ignore[attr-defined]

        def receive(message: bytes) -> None:
            # The connection may last for hours; what a call leaves behind must not.
            with app.app_context():
                session.receive(message)

        def settle(seconds: float) -> bool:
            with app.app_context():
                return session.settle(seconds)

        try:
            with self._connections.one(connection):
                connection.run(receive, session.pull, session.cancel, settle)
        finally:
            session.close()

    def _publish(self, height: int) -> None:
        self._hub.publish(
            self._dialect.behaviours.filter_events(messages_at(self.backend, height))
        )

    def _follow(self) -> None:
        # A subscription may be the first that this process is asked for.
        self.start()
        self._feed.follow()

    def hang_up(self) -> None:
        """Close all websockets, refuse new ones, answer waiting calls before it stops."""
        self._waiters.close()
        self._connections.close()
        self._feed.stop()
        if self._evm is not None:
            self._evm.stop()


def _propagates() -> bool:
    # As Flask itself decides.
    wanted = current_app.config["PROPAGATE_EXCEPTIONS"]
    return bool(current_app.testing or current_app.debug if wanted is None else wanted)


def _without_variables(page: Callable[[], Response]) -> View:
    # Those of a url_prefix are the host's.
    return lambda **_: page()
