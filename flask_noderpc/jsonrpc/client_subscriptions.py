"""Subscriptions of one connection: cursors on event buffers that connections share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

from ..signals import emit, subscription_closed, subscription_opened
from .subscriptions import EventBuffer, EventBuffers

K = TypeVar("K", bound=Hashable)

_TOO_SLOW = "too slow"


@dataclass(slots=True)
class Subscription:
    """A cursor on an event buffer, and the JSON before each event for this subscriber."""

    id: bytes
    buffer: EventBuffer[Any]
    cursor: int
    head: bytes
    has_begun: bool = False

    def take(self) -> Iterator[bytes] | None:
        """Return the new events as messages; ``None`` if some were evicted."""
        bodies = self.buffer.since(self.cursor)
        if bodies is None:
            return None
        self.cursor += len(bodies)
        # Joined one by one as they are written: all subscribers share the bodies.
        return (self.head + body + b"}}" for body in bodies)


class ClientSubscriptions(Generic[K]):
    """A connection's subscriptions by their names.

    They deliver nothing before :meth:`begin`, which is called when the reply to the
    subscribe call is sent: clients read it before the first event. ``sender`` is that of
    the signals.
    """

    def __init__(
        self, buffers: EventBuffers[Any], wake: Callable[[], None], sender: object = None
    ) -> None:
        self._buffers = buffers
        self._sender = sender
        self._wake = wake
        self._lock = threading.Lock()
        self._subscriptions: dict[K, Subscription] = {}

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, name: K) -> bool:
        return name in self._subscriptions

    def add(self, name: K, subscription: Subscription) -> None:
        """Add a subscription that has not begun."""
        with self._lock:
            self._subscriptions[name] = subscription
        emit(subscription_opened, self._sender)

    def begin(self) -> None:
        """Let all subscriptions deliver their events."""
        fresh = [each for each in tuple(self._subscriptions.values()) if not each.has_begun]
        for each in fresh:
            each.has_begun = True
        if fresh:
            self._wake()

    def end(self, name: K, reason: str) -> bool:
        """End a subscription; return true if there was one."""
        with self._lock:
            ended = self._subscriptions.pop(name, None)
        if ended is not None:
            self._buffers.leave(ended.buffer, self._wake)
            emit(subscription_closed, self._sender, reason=reason)
        return ended is not None

    def close(self, reason: str) -> None:
        """End all subscriptions."""
        for name in list(self._subscriptions):
            self.end(name, reason)

    def cancel(self, notice: Callable[[Subscription], bytes]) -> list[bytes]:
        """End all subscriptions of a client that does not read; return a notice for each."""
        subscriptions = tuple(self._subscriptions.items())
        return [notice(each) for name, each in subscriptions if self.end(name, _TOO_SLOW)]

    def pull(self, overflowed: Callable[[Subscription], Iterable[bytes]]) -> Iterator[bytes]:
        """Return the messages to send. A subscription that fell behind is ended, and gets those
        that ``overflowed`` returns."""
        waiting: list[Iterable[bytes]] = []
        # The copy is made in one step, so it needs no lock.
        for name, subscription in tuple(self._subscriptions.items()):
            if not subscription.has_begun:
                continue
            events: Iterable[bytes] | None = subscription.take()
            if events is None:
                self.end(name, _TOO_SLOW)
                events = overflowed(subscription)
            waiting.append(events)
        return chain.from_iterable(waiting)
