"""Subscription to logs that begins with the logs of stored blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ....errors import NodeRPCError
from ....jsonrpc.context import Context
from ....jsonrpc.subscriptions import Subscription
from ..queries.logs import logs_by_height
from .topics import Beginning, Logs

if TYPE_CHECKING:
    from .session import EvmHub

# Maximum number of blocks that are searched, and of logs that are read, before messages are
# sent. A block is never divided.
_BLOCKS, _LOGS = 1_000, 1_000


@dataclass(slots=True, eq=False, kw_only=True)
class Replay(Subscription):
    """Subscription whose logs come from the store, up to the block that the feed has published;
    later logs come from the event buffer, like those of any subscription.

    Each log is sent once: the published height and the end of the buffer are read together.
    """

    ctx: Context
    hub: EvmHub
    topic: Logs
    begin: Beginning
    wake: Callable[[], None]
    """Function by which the connection asks for messages again."""
    height: int = field(init=False)
    """Height of the next block to read."""
    until: int = field(init=False)
    """Height up to which blocks are read; the buffer has the logs after it from the cursor
    on."""
    is_reverted: bool = False
    """True if the chain has replaced blocks since."""
    is_live: bool = False
    failure: str = ""

    def __post_init__(self) -> None:
        self.height = self.begin.height
        self.hub.add_replay(self)

    @property
    def reason(self) -> str:
        """Reason why the subscription ended; empty if the client fell behind."""
        return self.failure or super(Replay, self).reason

    def revert(self, height: int) -> None:
        """Handle that the chain has replaced the blocks above a height: the buffer has the
        removed logs."""
        self.until, self.is_reverted = min(self.until, height), True

    def take(self) -> Iterator[bytes] | None:
        """Return messages with the next logs; ``None`` if they can't be read."""
        if not self.is_live and self.height > self.until:
            self._go_live()
        if self.is_live:
            return super(Replay, self).take()
        if self.height > min(self.until, self.topic.last or self.until):
            return iter(())
        try:
            bodies = self._read()
        except NodeRPCError as error:
            self.failure = f"the logs of block {self.height} can't be read: {error}"
            return None
        return (self.head + body + b"}}" for body in bodies)

    def _go_live(self) -> None:
        """Continue with the buffer, unless more blocks have to be read before."""
        is_early = self.until < self.begin.height
        is_evicted = not self.is_reverted and self.buffer.since(self.cursor) is None
        if is_early or is_evicted:
            # The feed was behind the chain that the client has seen, or the buffer has dropped
            # logs, which are in the store.
            self.hub.locate(self)
        self.is_live = self.height > self.until >= self.begin.height

    def _read(self) -> list[bytes]:
        """Return the logs of the next blocks, and move behind them; none if blocks are being
        replaced."""
        last = min(self.until, self.height + _BLOCKS - 1)
        if self.topic.last is not None:
            last = min(last, self.topic.last)
        found: list[tuple[int, list[bytes]]] = []
        read, count = last, 0
        for height, logs in logs_by_height(
            self.ctx, self.topic.log_filter, range(self.height, last + 1)
        ):
            kept = [self.ctx.encode(log) for log in logs if self._is_new(height, log.index)]
            found.append((height, kept))
            count += len(kept)
            if count >= _LOGS:
                read = height
                break
        until = self.hub.stable_until(self)
        if until is None:
            # The connection is woken when the feed has noticed.
            return []
        self.height = min(read, until) + 1
        self.wake()
        return [body for height, bodies in found if height <= until for body in bodies]

    def _is_new(self, height: int, index: int) -> bool:
        after = self.begin.after
        return after is None or (height, index) > after
