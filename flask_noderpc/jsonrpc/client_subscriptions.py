"""What one connection has subscribed to: its places in rings that it shares with others."""

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
    """A place in a ring, and what stands around each event for this subscriber."""

    id: bytes
    ring: EventBuffer[Any]
    cursor: int
    head: bytes
    has_begun: bool = False

    def take(self) -> Iterator[bytes] | None:
        """What waits, each in its message; ``None`` when some of it is gone."""
        bodies = self.ring.since(self.cursor)
        if bodies is None:
            return None
        self.cursor += len(bodies)
        # Made one by one as they are written: all subscribers share the bodies.
        return (self.head + body + b"}}" for body in bodies)


class ClientSubscriptions(Generic[K]):
    """A connection's subscriptions by their names.

    They give nothing before :meth:`begin`, which is called when the reply that tells of
    them is sent: so it is read before the first event. ``sender`` is that of the signals.
    """

    def __init__(
        self, rings: EventBuffers[Any], wake: Callable[[], None], sender: object = None
    ) -> None:
        self._rings = rings
        self._sender = sender
        self._wake = wake
        self._lock = threading.Lock()
        self._held: dict[K, Subscription] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, name: K) -> bool:
        return name in self._held

    def add(self, name: K, subscription: Subscription) -> None:
        """Keep one that has not begun."""
        with self._lock:
            self._held[name] = subscription
        emit(subscription_opened, self._sender)

    def begin(self) -> None:
        """Let all give what waits."""
        fresh = [each for each in tuple(self._held.values()) if not each.has_begun]
        for each in fresh:
            each.has_begun = True
        if fresh:
            self._wake()

    def end(self, name: K, reason: str) -> bool:
        """Give one up; whether there was one."""
        with self._lock:
            ended = self._held.pop(name, None)
        if ended is not None:
            self._rings.leave(ended.ring, self._wake)
            emit(subscription_closed, self._sender, reason=reason)
        return ended is not None

    def close(self, reason: str) -> None:
        """Give all up."""
        for name in list(self._held):
            self.end(name, reason)

    def cancel(self, notice: Callable[[Subscription], bytes]) -> list[bytes]:
        """Give all up for a peer that reads nothing; the notice of each."""
        held = tuple(self._held.items())
        return [notice(each) for name, each in held if self.end(name, _TOO_SLOW)]

    def pull(self, fallen: Callable[[Subscription], Iterable[bytes]]) -> Iterator[bytes]:
        """What waits; one that fell behind is given up, and ``fallen`` says what is told."""
        waiting: list[Iterable[bytes]] = []
        # The copy is made in one step, so it needs no lock.
        for name, subscription in tuple(self._held.items()):
            if not subscription.has_begun:
                continue
            found = subscription.take()
            if found is None:
                self.end(name, _TOO_SLOW)
                found = iter(fallen(subscription))
            waiting.append(found)
        return chain.from_iterable(waiting)
