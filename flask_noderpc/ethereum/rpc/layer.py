"""EVM layer of one mount: its dispatcher, subscriptions, and the feeds behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ...events.feed import Feed, HeightSource, MempoolSource
from ...jsonrpc.context import Context, Permissions
from ...jsonrpc.describe import with_discover
from ...jsonrpc.dispatch import Dispatcher
from ...jsonrpc.guard import OPEN, Guard
from ...jsonrpc.route import Route
from ...jsonrpc.session import Peer
from .dev.routes import DEV_ROUTES
from .dialect import EVM
from .forward import with_forwarded
from .routes import RESERVED, SESSION_METHODS, custom_routes, namespaces_of, routes_of
from .subscriptions.session import EvmHub, EvmSession
from .subscriptions.topics import Pending, Topic


class EvmLayer:
    """Dispatcher and subscriptions of the EVM layer over a mount's backend.

    ``routes`` are the host's rows. Raise :exc:`~flask_noderpc.errors.ConfigurationError` for an
    unknown namespace, or a row that can't be served.
    """

    def __init__(
        self,
        context: Context,
        start: Callable[[], None],
        guard: Guard = OPEN,
        routes: Iterable[Route[Any]] = (),
    ) -> None:
        rows = custom_routes(routes)
        dialect = EVM.with_schemas(rows.schemas())
        settings = context.settings
        settings = replace(settings, evm_api=namespaces_of(settings.evm_api, rows))
        ctx = replace(
            context,
            settings=settings,
            behaviours=dialect.behaviours,
            encode=dialect.encode,
            memo={},
        )
        self.methods = {*SESSION_METHODS, *(RESERVED + rows).by_name()}
        """The names of all methods that this layer can have, under any settings."""
        served = routes_of(settings.evm_api, rows, dev=settings.dev)
        served = with_forwarded(served, ctx)
        self.dispatcher = Dispatcher(
            with_discover(served, dialect, guard.has),
            dialect,
            ctx,
            start,
            hints={route.name: "NODERPC_DEV brings it" for route in DEV_ROUTES},
            max_batch=ctx.settings.evm_max_batch,
            guard=guard,
        )
        self._hub = EvmHub(ctx)
        self._blocks = Feed(
            HeightSource(ctx.backend, self._hub.publish_block, self._hub.cancel_newest),
            lambda: self._hub.has_block_subscribers,
        )
        self._waiting = Feed(
            MempoolSource(ctx.backend, self._hub.publish_pending),
            lambda: self._hub.has_pending_subscribers,
        )

    def session(self, peer: Peer, permissions: Permissions) -> EvmSession:
        """Return the session of a websocket."""
        return EvmSession(
            self.dispatcher, self._hub, peer=peer, follow=self._follow, permissions=permissions
        )

    def _follow(self, topic: Topic) -> None:
        (self._waiting if isinstance(topic, Pending) else self._blocks).follow()

    def stop(self) -> None:
        """Stop the feeds."""
        self._blocks.stop()
        self._waiting.stop()
