"""Event buffers of subscribed topics; publishes blocks and pending transactions to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import Busy, ResultNotFound
from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams
from ...jsonrpc.subscriptions import EventBuffer, EventBuffers
from ..queries.node import syncing
from ..reader import reader
from .topics import BlockTopic, EncodedBlock, Pending, Syncing, Topic

MAX_PER_CONNECTION = 100
"""Maximum subscriptions of one websocket."""


class EvmHub(EventBuffers[Topic]):
    """The distinct topics of one mount's EVM layer."""

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx.settings.event_buffer)
        self._ctx = ctx
        # eth_subscribe is of a namespace that a mount may leave out.
        self.is_open = "eth" in ctx.settings.evm_api

    def _now(self) -> tuple[EventBuffer[Topic], ...]:
        with self._lock:
            return tuple(self._buffers.values())

    @property
    def wants_blocks(self) -> bool:
        """True if there are subscribers to blocks."""
        return any(isinstance(ring.topic, BlockTopic) for ring in self._now())

    @property
    def wants_pending(self) -> bool:
        """True if there are subscribers to pending transactions."""
        return any(isinstance(ring.topic, Pending) for ring in self._now())

    def check_room(self, held: int) -> None:
        """Raise :exc:`~flask_noderpc.errors.Busy` for one more of a client that has some."""
        if held >= MAX_PER_CONNECTION:
            raise Busy(
                f"this connection has {MAX_PER_CONNECTION} subscriptions",
                "open another connection",
            )
        most = self._ctx.settings.evm_max_subscriptions
        if self.subscriptions >= most:
            raise Busy(
                f"this server has {most} subscriptions",
                "NODERPC_EVM_MAX_SUBSCRIPTIONS raises this",
            )

    def join(self, topic: Topic, wake: Callable[[], None]) -> tuple[EventBuffer[Topic], int]:
        """The topic's ring, and a cursor; that of ``syncing`` is before what holds now."""
        ring, cursor = super().join(topic, wake)
        if isinstance(topic, Syncing):
            try:
                self._tell_syncing()
            except Exception:
                self.leave(ring, wake)
                raise
            cursor = ring.end - 1
        return ring, cursor

    def tell_block(self, height: int) -> None:
        """Tell of the block at a height, which was converted at most once."""
        block = reader(self._ctx).at(height)
        if block is None:
            # The feed comes back: a foreign node may have the results a little later.
            raise ResultNotFound(f"the block at height {height} can't be read yet")
        talk = EncodedBlock(self._ctx, block)
        found = (
            (ring, tuple(ring.topic.of(talk)))
            for ring in self._now()
            if isinstance(ring.topic, BlockTopic)
        )
        # What may fail comes first: the feed would tell this block again.
        self._tell_syncing()
        self._deliver({ring: bodies for ring, bodies in found if bodies})

    def tell_pending(self, raws: Sequence[bytes]) -> None:
        """Tell of node transactions that have come to wait."""
        txs = [tx for raw in raws for tx in reader(self._ctx).decoded(raw)]
        if txs:
            self._deliver(
                {
                    ring: [ring.topic.of(self._ctx, tx) for tx in txs]
                    for ring in self._now()
                    if isinstance(ring.topic, Pending)
                }
            )

    def _tell_syncing(self) -> None:
        """Send the sync state to those subscribers who last got another."""
        rings = [ring for ring in self._now() if isinstance(ring.topic, Syncing)]
        if rings:
            status = self._ctx.encode(_status(self._ctx))
            self._deliver({ring: [status] for ring in rings if ring.newest != status})


def _status(ctx: Context) -> bool | dict[str, object]:
    progress = syncing(ctx, NoParams())
    return {"syncing": True, "status": progress} if progress else False
