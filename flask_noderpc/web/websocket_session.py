"""The end of a websocket that answers its messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol


class WebSocketSession(Protocol):
    """A session of a websocket: it takes messages, and has notifications to send."""

    def receive(self, body: bytes) -> None:
        """Answer a message."""

    def settle(self, seconds: float) -> bool:
        """Answer the messages that wait for the store, within so long; whether any are left."""

    def pull(self) -> Iterator[bytes]:
        """Yield what waits to be sent."""

    def cancel(self) -> Iterable[bytes]:
        """End the subscriptions of a client that reads nothing; the notices of that."""

    def close(self) -> None:
        """The connection has ended."""
