"""Subscription to logs that begins with the logs of stored blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ....errors import NodeRPCError
from ....jsonrpc.context import Context
from ....jsonrpc.subscriptions import Subscription
from ..queries.logs import logs_by_height
from .topics import Beginning, EncodedBlock, Logs

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
    """Function that makes the connection call :meth:`take` again."""
    height: int = field(init=False)
    """Height of the next block to read."""
    until: int = field(init=False)
    """Height up to which blocks are read; the buffer has the logs after it from the cursor
    on."""
    removed: list[bytes] = field(init=False, default_factory=list)
    """Logs of replaced blocks that were sent, and whose removal has to be sent."""
    is_live: bool = False
    failure: str = ""

    def __post_init__(self) -> None:
        self.height = self.begin.height
        self.hub.add_replay(self)

    @property
    def reason(self) -> str:
        """Reason why the subscription ended; empty if the client fell behind."""
        return self.failure or super(Replay, self).reason

    @property
    def needs_blocks(self) -> bool:
        """True if the buffer does not have all logs after the blocks that were read."""
        # The feed may be behind the chain that the client has seen, and the buffer may have
        # dropped logs, which are in the store.
        return self.until < self.begin.height or self.buffer.since(self.cursor) is None

    def revert(self, height: int, blocks: Sequence[EncodedBlock]) -> None:
        """Handle that the chain has replaced the blocks above a height, newest first: the logs
        that were sent are removed, and reading continues at that height."""
        if self.is_live:
            # The buffer has the removed logs.
            return
        for block in blocks:
            if block.number < self.height:
                self.removed += self.topic.removals(block)
        self.height = min(self.height, height + 1)
        self.until, self.cursor = height, self.buffer.end

    def take(self) -> Iterator[bytes] | None:
        """Return messages with the next logs; ``None`` if they can't be read."""
        if self.removed:
            self.wake()
            return self._messages(self.hub.take_removed(self))
        if not self.is_live and self.height > self.until:
            self.hub.advance(self)
        if self.is_live:
            return super(Replay, self).take()
        last = self.until if self.topic.last is None else min(self.until, self.topic.last)
        if self.height > last:
            return iter(())
        try:
            return self._messages(self._read(min(last, self.height + _BLOCKS - 1)))
        except NodeRPCError as error:
            self.failure = f"the logs of block {self.height} can't be read: {error}"
            return None

    def _messages(self, bodies: Sequence[bytes]) -> Iterator[bytes]:
        return (self.head + body + b"}}" for body in bodies)

    def _read(self, last: int) -> list[bytes]:
        """Return the logs of the next blocks, and move behind them; none if blocks are being
        replaced."""
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
        until = self.hub.finish_read(self, read)
        if until is None:
            # The connection is woken when the feed has noticed.
            return []
        self.wake()
        return [body for height, bodies in found if height <= until for body in bodies]

    def _is_new(self, height: int, index: int) -> bool:
        after = self.begin.after
        return after is None or (height, index) > after
