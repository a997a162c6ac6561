"""Session of one websocket: what the node's and the EVM layer's have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from .context import Permissions
from .dispatch import Dispatcher
from .subscriptions import ClientSubscriptions, EventBuffers, Subscription

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound=Hashable)


class WebSocketSession(ABC, Generic[K, T]):
    """Answers one connection's messages, and gathers its notifications.

    Subscriptions have names ``K``, and events of topics ``T``. ``follow`` starts the reading of
    a topic's events, ``send`` sends replies, ``wake`` signals that there is something to
    :meth:`pull`.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        hub: EventBuffers[T],
        *,
        follow: Callable[[T], None],
        send: Callable[..., None],
        wake: Callable[[], None],
        permissions: Permissions,
    ) -> None:
        self._dispatcher = dispatcher
        self._buffers = hub
        self._follow = follow
        self._send = send
        self._wake = wake
        self._permissions = permissions
        self._subscriptions = ClientSubscriptions[K](hub, wake, dispatcher.backend)

    @abstractmethod
    def receive(self, body: bytes) -> None:
        """Answer a message."""

    @abstractmethod
    def overflowed(self, subscription: Subscription) -> Iterable[bytes]:
        """Return the notices for a subscription that fell behind its event buffer."""

    def _open(self, name: K, topic: T, request_id: bytes, head: bytes) -> None:
        """Add a subscription to a topic, whose events are sent after ``head``."""
        buffer, cursor = self._buffers.join(topic, self._wake)
        try:
            self._follow(topic)
        except Exception:
            self._buffers.leave(buffer, self._wake)
            raise
        self._subscriptions.add(name, Subscription(request_id, buffer, cursor, head))

    def settle(self, seconds: float) -> bool:
        """Answer the calls that wait for the store, within so many seconds; return true if any
        still wait."""
        return False

    def pull(self) -> Iterator[bytes]:
        """Return the events to send; a subscription that fell behind ends."""
        return self._subscriptions.pull(self.overflowed)

    def cancel(self) -> Iterable[bytes]:
        """End the subscriptions of a client that does not read; return the notices."""
        return ()

    def close(self) -> None:
        """End all subscriptions."""
        self._subscriptions.close("disconnected")
