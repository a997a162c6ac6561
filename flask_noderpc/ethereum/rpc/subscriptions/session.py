"""Websocket of the EVM layer, and the event buffers of its subscriptions.

geth: rpc/subscription.go. Subscription IDs are random, and valid only on their connection.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from weakref import WeakSet

from .... import jsoncodec
from ....errors import Busy, HeightNotAvailable, ResultNotFound
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
from .replay import Replay
from .topics import (
    BlockTopic,
    EncodedBlock,
    Logs,
    LogsSubscriptionParams,
    Pending,
    Syncing,
    Topic,
    kind_of,
)

# Maximum number of removed blocks whose logs are published; the cache has as many blocks.
_RECENT_BLOCKS = 128

MAX_PER_CONNECTION = 100
"""Maximum subscriptions of one websocket."""


class EvmHub(EventBuffers[Topic]):
    """Event buffers of one mount's EVM layer, one for each distinct topic."""

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx.settings.event_buffer)
        self.ctx = ctx
        # The methods exist only if NODERPC_EVM_API has the namespace "eth".
        self.is_open = "eth" in ctx.settings.of(EthereumSettings).evm_api
        self._position = threading.Lock()
        """Lock of the published height, and of the buffers' ends that belong to it."""
        self._published = self._reorg = 0
        self._recent = deque[tuple[int, bytes]](maxlen=_RECENT_BLOCKS)
        """Heights and hashes of the newest published blocks."""
        self._replays = WeakSet[Replay]()

    def _now(self) -> tuple[EventBuffer[Topic], ...]:
        with self._lock:
            return tuple(self._buffers.values())

    @property
    def has_block_subscribers(self) -> bool:
        """True if any subscription needs new blocks."""
        return any(isinstance(buffer.topic, BlockTopic) for buffer in self._now())

    @property
    def has_pending_subscribers(self) -> bool:
        """True if any subscription needs pending transactions."""
        return any(isinstance(buffer.topic, Pending) for buffer in self._now())

    def check_limits(self, count: int) -> None:
        """Raise :exc:`~flask_noderpc.errors.Busy` if a connection with ``count`` subscriptions
        may not have another."""
        if count >= MAX_PER_CONNECTION:
            raise Busy(
                f"expected at most {MAX_PER_CONNECTION} subscriptions on a connection",
                "open another connection",
            )
        limit = self.ctx.settings.of(EthereumSettings).evm_max_subscriptions
        if self.subscriptions >= limit:
            raise Busy(
                f"the server has {limit} subscriptions, its maximum",
                "raise NODERPC_EVM_MAX_SUBSCRIPTIONS",
            )

    def join(self, topic: Topic, wake: Callable[[], None]) -> tuple[EventBuffer[Topic], int]:
        """Return the topic's buffer, and the cursor from which to read its events.

        For ``syncing``, first publish the current state, and return the cursor before it, so
        that the subscriber receives the state at once.
        """
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
        block = reader(self.ctx).block_at(height)
        if block is None:
            # The feed tries again, as another node may store the results slightly later.
            raise ResultNotFound(f"the block at height {height} can't be read yet")
        encoded = EncodedBlock(self.ctx, block)
        # This may fail, and the feed then publishes the block again, so do it before events
        # are delivered.
        self._publish_syncing()
        # A replay that begins meanwhile either gets the block from its buffer, or reads it.
        with self._position:
            found = (
                (buffer, tuple(buffer.topic.messages(encoded)))
                for buffer in self._now()
                if isinstance(buffer.topic, BlockTopic)
            )
            self._deliver_block({buffer: bodies for buffer, bodies in found if bodies})
            self._published = height
            self._recent.append((height, block.partial_header.hash or b""))

    def begin(self, height: int, reorg: int) -> None:
        """Note the height after which blocks are published, and the number of the last
        reorg."""
        newest = b""
        with suppress(HeightNotAvailable):
            newest = self.ctx.backend.reads.hash_at(height)
        with self._position:
            self._published, self._reorg = height, reorg
            self._recent.clear()
            if newest:
                self._recent.append((height, newest))

    def revert(self, height: int, reorg: int) -> None:
        """Publish the logs of blocks above a height as removed, if the blocks are still in the
        cache, newest first; the chain has replaced these blocks."""
        topics = {each: each.topic for each in self._now() if isinstance(each.topic, Logs)}
        batches: dict[EventBuffer[Topic], list[bytes]] = {each: [] for each in topics}
        with self._position:
            removed = list(self._removed_above(height))
            for block in removed:
                for buffer, topic in topics.items():
                    batches[buffer] += topic.removals(block)
            for buffer, batch in batches.items():
                buffer.extend(batch)
            self._published, self._reorg = min(self._published, height), reorg
            for replay in list(self._replays):
                replay.revert(height, removed)
        self._wake(batches)

    def _removed_above(self, height: int) -> Iterator[EncodedBlock]:
        """Yield the published blocks above a height, and those before them, newest first, if
        they are in the cache; forget them."""
        chain, parent = reader(self.ctx), b""
        while self._recent and self._recent[-1][0] > height:
            block = chain.cached(self._recent.pop()[1])
            if block is not None:
                parent = block.partial_header.parent_hash
                yield EncodedBlock(self.ctx, block)
        # Blocks from before the feed began may have been read by a replay.
        earlier = None if self._recent else chain.cached(parent)
        while earlier is not None and earlier.partial_header.number > height:
            yield EncodedBlock(self.ctx, earlier)
            earlier = chain.cached(earlier.partial_header.parent_hash)

    def add_replay(self, replay: Replay) -> None:
        """Add a subscription that reads stored blocks up to the published one."""
        with self._position:
            self._locate(replay)
            self._replays.add(replay)

    def _locate(self, replay: Replay) -> None:
        replay.until, replay.cursor = self._published, replay.buffer.end

    def take_removed(self, replay: Replay) -> list[bytes]:
        """Return the removed logs that a subscription has to send, and forget them."""
        with self._position:
            removed, replay.removed = replay.removed, []
        return removed

    def advance(self, replay: Replay) -> None:
        """Let a subscription that has read all blocks continue with its buffer, or with blocks
        that were published meanwhile."""
        with self._position:
            if replay.needs_blocks:
                self._locate(replay)
            replay.is_live = replay.height > replay.until >= replay.begin.height

    def finish_read(self, replay: Replay, height: int) -> int | None:
        """Move a subscription behind the blocks that it has read, up to a height.

        Return the height up to which these blocks are valid; ``None`` if the chain has replaced
        some of them, and :meth:`revert` was not called yet.
        """
        while True:
            reorg = self._reorg
            _, lowest = self.ctx.backend.reads.reorgs_since(reorg)
            if lowest is not None:
                return None
            with self._position:
                if reorg == self._reorg:
                    replay.height = max(replay.height, min(height, replay.until) + 1)
                    return replay.until

    def publish_pending(self, raws: Sequence[bytes]) -> None:
        """Publish the Ethereum transactions in node transactions that entered the mempool."""
        txs = [tx for raw in raws for tx in reader(self.ctx).decode_pending(raw)]
        if txs:
            self._deliver(
                {
                    buffer: [buffer.topic.message(self.ctx, tx) for tx in txs]
                    for buffer in self._now()
                    if isinstance(buffer.topic, Pending)
                }
            )

    def _publish_syncing(self) -> None:
        """Publish the sync state to subscribers that last received another one."""
        buffers = [buffer for buffer in self._now() if isinstance(buffer.topic, Syncing)]
        if buffers:
            status = self.ctx.encode(_status(self.ctx))
            self._deliver({buffer: [status] for buffer in buffers if buffer.newest != status})


def _status(ctx: Context) -> bool | dict[str, object]:
    progress = syncing(ctx, NoParams())
    return {"syncing": True, "status": progress} if progress else False


_TOO_SLOW = "client is too slow to read its events; read faster or raise NODERPC_EVENT_BUFFER"


@dataclass(frozen=True, slots=True)
class _ById(Params):
    """Parameters of ``eth_unsubscribe``."""

    id: str = param(Id(), doc="ID of the subscription.")


class EvmSession(WebSocketSession[str, Topic]):
    """Websocket session of the EVM layer; a subscription is identified by its ID."""

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
            self._send(bytes(reply.body))
        self._subscriptions.begin()

    def _subscribe(self, request_id: bytes, params: bytes) -> bytes:
        self._dispatcher.ready()
        subscription_params = self._dispatcher.loader(kind_of(params)).from_json(params)
        topic = subscription_params.topic()
        self._hub.check_limits(len(self._subscriptions))
        # geth: 16 random bytes in hex, without leading zeros.
        name = hex(secrets.randbits(128))
        shown = jsoncodec.encode(name)
        head = b'{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":'
        make: Callable[..., Subscription] = Subscription
        if isinstance(subscription_params, LogsSubscriptionParams) and isinstance(topic, Logs):
            begin = subscription_params.replay(self._hub.ctx)
            if begin is not None:
                make = partial(
                    Replay,
                    ctx=self._hub.ctx,
                    hub=self._hub,
                    topic=topic,
                    begin=begin,
                    wake=self._wake,
                )
        self._open(name, topic, shown, head + shown + b',"result":', make)
        return shown

    def _unsubscribe(self, request_id: bytes, params: bytes) -> bytes:
        name = self._dispatcher.loader(_ById).from_json(params).id
        if not self._subscriptions.end(name, "unsubscribed"):
            raise EvmError("subscription not found")
        return b"true"

    def overflowed(self, subscription: Subscription) -> Iterable[bytes]:
        """Close the connection of a client that is too slow, or whose events were withdrawn.

        The protocol has no message which says that events are missing.
        """
        self._drop(subscription.reason or _TOO_SLOW)
        return ()
