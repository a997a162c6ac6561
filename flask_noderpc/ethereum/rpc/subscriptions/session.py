"""Websocket of the EVM layer, and the event buffers of its subscriptions.

geth: rpc/subscription.go. IDs can't be guessed, and are valid only on their own connection.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .... import jsoncodec
from ....errors import Busy, ResultNotFound
from ....jsonrpc.context import Context, Permissions
from ....jsonrpc.dispatch import Dispatcher, SessionMethods
from ....jsonrpc.params import NoParams, Params, param
from ....jsonrpc.session import Peer, WebSocketSession
from ....jsonrpc.subscriptions import EventBuffer, EventBuffers, Subscription
from ...settings import EthereumSettings
from ..codec.params import Id
from ..errors import EvmError
from ..queries.node import syncing
from ..reader import reader
from .topics import BlockTopic, EncodedBlock, Pending, Syncing, Topic, kind_of

MAX_PER_CONNECTION = 100
"""Maximum subscriptions of one websocket."""


class EvmHub(EventBuffers[Topic]):
    """Event buffers of one mount's EVM layer, one for each distinct topic."""

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx.settings.event_buffer)
        self._ctx = ctx
        # A mount can disable the namespace of eth_subscribe.
        self.is_open = "eth" in ctx.settings.of(EthereumSettings).evm_api

    def _now(self) -> tuple[EventBuffer[Topic], ...]:
        with self._lock:
            return tuple(self._buffers.values())

    @property
    def has_block_subscribers(self) -> bool:
        """Return true if blocks have subscribers."""
        return any(isinstance(buffer.topic, BlockTopic) for buffer in self._now())

    @property
    def has_pending_subscribers(self) -> bool:
        """Return true if pending transactions have subscribers."""
        return any(isinstance(buffer.topic, Pending) for buffer in self._now())

    def check_limits(self, count: int) -> None:
        """Raise :exc:`~flask_noderpc.errors.Busy` if a connection with ``count`` subscriptions
        may not have another."""
        if count >= MAX_PER_CONNECTION:
            raise Busy(
                f"this connection has {MAX_PER_CONNECTION} subscriptions",
                "open another connection",
            )
        limit = self._ctx.settings.of(EthereumSettings).evm_max_subscriptions
        if self.subscriptions >= limit:
            raise Busy(
                f"this server has {limit} subscriptions",
                "NODERPC_EVM_MAX_SUBSCRIPTIONS raises this",
            )

    def join(self, topic: Topic, wake: Callable[[], None]) -> tuple[EventBuffer[Topic], int]:
        """Return the topic's buffer and a cursor; for ``syncing``, the cursor before its
        current state."""
        buffer, cursor = super().join(topic, wake)
        if isinstance(topic, Syncing):
            try:
                self._publish_syncing()
            except Exception:
                self.leave(buffer, wake)
                raise
            cursor = buffer.end - 1
        return buffer, cursor

    def publish_block(self, height: int) -> None:
        """Publish the block at a height, which is encoded once for all subscribers."""
        block = reader(self._ctx).block_at(height)
        if block is None:
            # The feed tries again: a foreign node may have the results a little later.
            raise ResultNotFound(f"the block at height {height} can't be read yet")
        encoded = EncodedBlock(self._ctx, block)
        found = (
            (buffer, tuple(buffer.topic.messages(encoded)))
            for buffer in self._now()
            if isinstance(buffer.topic, BlockTopic)
        )
        # First, as it may fail: the feed would then publish this block again.
        self._publish_syncing()
        self._deliver_block({buffer: bodies for buffer, bodies in found if bodies})

    def publish_pending(self, raws: Sequence[bytes]) -> None:
        """Publish node transactions that have entered the mempool."""
        txs = [tx for raw in raws for tx in reader(self._ctx).decode_pending(raw)]
        if txs:
            self._deliver(
                {
                    buffer: [buffer.topic.message(self._ctx, tx) for tx in txs]
                    for buffer in self._now()
                    if isinstance(buffer.topic, Pending)
                }
            )

    def _publish_syncing(self) -> None:
        """Publish the sync state to subscribers whose last one differs."""
        buffers = [buffer for buffer in self._now() if isinstance(buffer.topic, Syncing)]
        if buffers:
            status = self._ctx.encode(_status(self._ctx))
            self._deliver({buffer: [status] for buffer in buffers if buffer.newest != status})


def _status(ctx: Context) -> bool | dict[str, object]:
    progress = syncing(ctx, NoParams())
    return {"syncing": True, "status": progress} if progress else False


_TOO_SLOW = "too slow: NODERPC_EVENT_BUFFER raises the number of events"


@dataclass(frozen=True, slots=True)
class _ById(Params):
    """Parameters of ``eth_unsubscribe``."""

    id: str = param(Id(), doc="Id of the subscription.")


class EvmSession(WebSocketSession[str, Topic]):
    """Session of the EVM layer's websocket, whose subscriptions are named by their IDs."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        hub: EvmHub,
        *,
        peer: Peer,
        follow: Callable[[Topic], None],
        permissions: Permissions,
    ) -> None:
        super().__init__(dispatcher, hub, peer=peer, follow=follow, permissions=permissions)
        self._hub = hub
        self._drop = peer.drop
        self._methods: SessionMethods = {}
        if hub.is_open:
            self._methods = {
                "eth_subscribe": self._subscribe,
                "eth_unsubscribe": self._unsubscribe,
            }

    def receive(self, body: bytes) -> None:
        """Respond to a message, a call or a batch."""
        reply = self._dispatcher.post(body, self._permissions, self._methods)
        if reply.body:
            self._send(reply.body)
        self._subscriptions.begin()

    def _subscribe(self, request_id: bytes, params: bytes) -> bytes:
        self._dispatcher.ready()
        subscription_params = self._dispatcher.loader(kind_of(params)).from_json(params)
        topic = subscription_params.topic()
        self._hub.check_limits(len(self._subscriptions))
        # geth: 16 bytes, without leading zeros.
        name = hex(secrets.randbits(128))
        shown = jsoncodec.encode(name)
        head = b'{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":'
        self._open(name, topic, shown, head + shown + b',"result":')
        return shown

    def _unsubscribe(self, request_id: bytes, params: bytes) -> bytes:
        name = self._dispatcher.loader(_ById).from_json(params).id
        if not self._subscriptions.end(name, "unsubscribed"):
            raise EvmError("subscription not found")
        return b"true"

    def overflowed(self, subscription: Subscription) -> Iterable[bytes]:
        """Close the connection of a slow reader, or of a subscriber whose events turned out to
        be wrong.

        geth has no message that says that events are missing.
        """
        self._drop(subscription.buffer.reason_before(subscription.cursor) or _TOO_SLOW)
        return ()
