"""EVM layer of one mount: its dispatcher, its subscriptions, and the feeds of their events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...events.feed import Feed, HeightSource, MempoolSource
from ...jsonrpc.context import Permissions
from ...jsonrpc.describe import with_discover
from ...jsonrpc.dispatch import Dispatcher
from ...jsonrpc.session import Peer
from ...web.html import ApiPage, FirstCall
from ...web.layers import EVERY_METHOD, Ask, Example, Layer, Mounted, Path, Websocket
from ...web.rules.admit import Admission, admit_handshake
from ...web.views import Views, empty_page
from ..api import check_fork
from ..settings import EthereumSettings
from ..state import EVM_STATE
from .admission import admission
from .dev.routes import DEV_ROUTES
from .dialect import EVM
from .examples import examples_of
from .forked import with_fork
from .forward import with_forwarded
from .routes import RESERVED, SESSION_METHODS, custom_routes, namespaces_of, routes_of
from .subscriptions.session import EvmHub, EvmSession
from .subscriptions.topics import Pending, Topic

ENDPOINT, _WEBSOCKET = "evm", "evm_websocket"
_FIRST_CALL = FirstCall("Ethereum's JSON-RPC", "eth_blockNumber", "eth_chainId")


class EvmLayer(Layer):
    """Dispatcher and subscriptions of the EVM layer over a mount's backend.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for an unknown namespace, or a route
    of the app that can't be served.
    """

    title = "Ethereum's JSON-RPC"
    excludable = (ENDPOINT,)

    def __init__(self, mounted: Mounted) -> None:
        rows, guard, context = custom_routes(mounted.rows), mounted.guard, mounted.context
        dialect = EVM.with_schemas(rows.schemas())
        enabled = context.settings.of(EthereumSettings).evm_api
        check_fork(context.settings)
        settings = context.settings.changed(evm_api=namespaces_of(enabled, rows))
        ctx = replace(
            context,
            settings=settings,
            behaviours=dialect.behaviours,
            encode=dialect.encode,
            memo={},
        )
        self.methods = {*SESSION_METHODS, *(RESERVED + rows).by_name()}
        """The names of all methods that this layer can have, under any settings."""
        served = routes_of(settings.of(EthereumSettings).evm_api, rows, dev=settings.dev)
        served = with_fork(with_forwarded(served, ctx), ctx)
        self.dispatcher = Dispatcher(
            with_discover(served, dialect, guard.has),
            dialect,
            ctx,
            mounted.start,
            hints={route.name: "NODERPC_DEV enables it" for route in DEV_ROUTES},
            max_batch=ctx.settings.of(EthereumSettings).evm_max_batch,
            guard=guard,
        )
        self._backend, self._settings = ctx.backend, settings
        self.dispatchers = {ENDPOINT: self.dispatcher}
        self.admissions = {
            ENDPOINT: admission(settings.of(EthereumSettings).evm_max_body_bytes),
            _WEBSOCKET: Admission(admit_handshake, signs=True),
        }
        self._hub = EvmHub(ctx)
        self._blocks = Feed(
            HeightSource(
                ctx.backend.reads,
                self._hub.publish_block,
                self._hub.cancel_newest,
                self._hub.begin,
                self._hub.revert,
            ),
            lambda: self._hub.has_block_subscribers,
        )
        self._waiting = Feed(
            MempoolSource(lambda: ctx.backend.mempool, self._hub.publish_pending),
            lambda: self._hub.has_pending_subscribers,
        )

    def paths(self, views: Views, excluded: Iterable[str]) -> Iterator[Path]:
        """Yield the HTTP path of the JSON-RPC endpoint."""
        # An excluded endpoint leaves GET to the app, whose health check may have this path.
        left = {"GET"} if ENDPOINT in excluded else set()
        methods = [method for method in EVERY_METHOD if method not in left]
        page = ApiPage(_FIRST_CALL, self.dispatcher, views).page
        view = views.body(ENDPOINT, self.dispatcher, empty_page, page)
        yield Path("/evm", ENDPOINT, methods, view, ("POST", ENDPOINT))

    def websockets(self) -> Iterator[Websocket]:
        """Yield the path of the websocket endpoint."""
        limit = self._settings.of(EthereumSettings).evm_max_body_bytes
        yield Websocket("/evm/ws", _WEBSOCKET, self.session, limit)

    def examples(self, ask: Ask) -> Example:
        """Return a function that makes examples of parameters from the chain's data."""
        return examples_of(ask)

    def prepare(self, *, serves: bool) -> None:
        """Start the EVM's executors in the background; without ``serves``, only the executors
        of blocks."""
        state = EVM_STATE.find(self._backend)
        if state is not None:
            state.start(calls=serves, blocks=self._settings.produce)

    def session(self, peer: Peer, permissions: Permissions) -> EvmSession:
        """Return a session for a websocket."""
        return EvmSession(
            self.dispatcher, self._hub, peer=peer, follow=self._follow, permissions=permissions
        )

    def _follow(self, topic: Topic) -> None:
        (self._waiting if isinstance(topic, Pending) else self._blocks).follow()

    def stop(self) -> None:
        """Stop the feeds."""
        self._blocks.stop()
        self._waiting.stop()
