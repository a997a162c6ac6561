"""The CometBFT API of one mount: its dispatcher, its subscription hub, and the feed of
events."""

from __future__ import annotations

from collections.abc import Callable

from ..events.feed import Feed, HeightSource
from ..events.messages import messages_at
from ..jsonrpc.context import Context, Permissions
from ..jsonrpc.describe import DISCOVER, with_discover
from ..jsonrpc.dispatch import Dispatcher
from ..jsonrpc.guard import OPEN, Guard
from ..jsonrpc.route import RouteTable
from ..jsonrpc.session import WEBSOCKET_METHODS, Limits, Peer, Session
from ..jsonrpc.subscriptions import QueryHub
from ..wire.dialect import Dialect
from .routes import UNSAFE_ROUTES, dev_routes


def _hints(has_evm: bool) -> dict[str, str]:
    """Return a hint for each method that a setting enables; errors show it if the method is
    not served."""
    dev = "NODERPC_DEV enables it, without NODERPC_JSON_RPC_ENABLE"
    if has_evm:
        dev = "the EVM layer has evm_mine, evm_snapshot and others (NODERPC_DEV)"
    return {
        **{route.name: "NODERPC_RPC_UNSAFE enables it" for route in UNSAFE_ROUTES},
        **{route.name: dev for route in dev_routes()},
    }


class CometLayer:
    """Dispatcher and subscriptions of the CometBFT API over a mount's backend.

    ``routes`` are the node's routes and the routes that the host application adds.
    """

    def __init__(
        self,
        context: Context,
        routes: RouteTable,
        dialect: Dialect,
        start: Callable[[], None],
        guard: Guard = OPEN,
    ) -> None:
        settings = context.settings
        if settings.rpc_unsafe:
            routes += UNSAFE_ROUTES
        is_driven_elsewhere = any(api.drives_chain for api in settings.apis())
        if settings.dev and not is_driven_elsewhere:
            routes += dev_routes()
        self.names = {*routes.by_name()}
        """Names of all routes, including the routes that the dialect omits."""
        optional = (*UNSAFE_ROUTES.by_name(), *dev_routes().by_name())
        self.methods = {*self.names, DISCOVER, *WEBSOCKET_METHODS, *optional}
        """Names of all methods that this layer can have with any settings."""
        self.routes = RouteTable(r for r in routes if r.name not in dialect.omits_routes)
        self.dispatcher = Dispatcher(
            with_discover(self.routes, dialect, guard.has),
            dialect,
            context,
            # The dispatcher starts the backend, so that each call gets an error object if that
            # fails.
            start,
            hints=_hints(is_driven_elsewhere),
            guard=guard,
        )
        self._backend = context.backend
        self._behaviours = dialect.behaviours
        self._start = start
        self._hub = QueryHub(dialect.encode_event, settings.event_buffer)
        self._feed = Feed(
            HeightSource(self._backend.reads, self._publish, self._hub.cancel_newest),
            is_followed=lambda: len(self._hub) > 0,
        )
        self._limits = Limits(
            settings.max_subscription_clients, settings.max_subscriptions_per_client
        )

    def session(self, peer: Peer, permissions: Permissions) -> Session:
        """Return a new session for a WebSocket connection."""
        return Session(
            self.dispatcher,
            self._hub,
            self._limits,
            peer=peer,
            follow=self._follow,
            permissions=permissions,
        )

    def _publish(self, height: int) -> None:
        self._hub.publish(
            self._behaviours.filter_events(messages_at(self._backend.reads, height))
        )

    def _follow(self) -> None:
        # A subscription may be the first request of this process, so start the backend.
        self._start()
        self._feed.follow()

    def stop(self) -> None:
        """Stop the thread that publishes events to subscribers."""
        self._feed.stop()
