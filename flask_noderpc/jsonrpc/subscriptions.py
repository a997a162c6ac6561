"""Event buffers by topic, shared by all subscribers, and the subscriptions of a connection.

A message is encoded once for all subscribers. Each distinct topic, such as a query, has one
buffer of encoded events; a subscription is a cursor in that buffer. Nothing is copied for a
subscriber before its writer reads it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

from ..event_aliases import comparable, has_aliases
from ..events.messages import Keys, Message
from ..events.query import Query
from ..signals import emit, subscription_closed, subscription_opened

K = TypeVar("K", bound=Hashable)

MAX_BUFFER_BYTES = 8_000_000
"""Maximum bytes of a topic's events, in addition to the newest batch."""


class EventBuffer(Generic[K]):
    """The last events of a topic, bounded in number and in bytes.

    The newest batch, the events of one block, is always complete: a subscriber that keeps up
    with blocks loses no events, regardless of their number.
    """

    def __init__(self, topic: K, max_events: int, max_bytes: int) -> None:
        self.topic = topic
        self.subscribers: list[Callable[[], None]] = []
        """Callbacks that wake the subscribers."""
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._entries: list[bytes] = []
        self._bytes = 0
        self._lock = threading.Lock()
        self.first = 0
        self.end = 0
        self._cancelled = (0, "")

    @property
    def newest(self) -> bytes | None:
        """The newest event; ``None`` without events."""
        with self._lock:
            return self._entries[-1] if self._entries else None

    def extend(self, batch: Sequence[bytes]) -> None:
        """Append a block's events, and evict the oldest."""
        with self._lock:
            self._entries.extend(batch)
            self._bytes += sum(map(len, batch))
            self.end += len(batch)
            evicted = 0
            older = len(self._entries) - len(batch)
            while evicted < older and (
                older - evicted > self._max_events or self._bytes > self._max_bytes
            ):
                self._bytes -= len(self._entries[evicted])
                evicted += 1
            del self._entries[:evicted]
            self.first += evicted

    def since(self, cursor: int) -> list[bytes] | None:
        """Return the events after the cursor; ``None`` if some were evicted."""
        with self._lock:
            return None if cursor < self.first else self._entries[cursor - self.first :]

    def cancel(self, reason: str) -> None:
        """Remove all events and end the subscriptions of all current subscribers; new
        subscriptions are not affected."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0
            self.first = self.end = self.end + 1
            self._cancelled = self.first, reason

    def reason_before(self, cursor: int) -> str:
        """Return the reason why a subscription was canceled; empty if it fell behind."""
        cancelled_at, reason = self._cancelled
        return reason if cursor < cancelled_at else ""


class EventBuffers(Generic[K]):
    """Event buffers of one mount by topic, and their subscribers."""

    def __init__(self, max_events: int) -> None:
        self._max_events = max_events
        self._buffers: dict[K, EventBuffer[K]] = {}
        self._lock = threading.Lock()
        self._newest: tuple[EventBuffer[K], ...] = ()
        """Buffers with events of the newest block."""
        self._clients: Counter[Callable[[], None]] = Counter()

    def __len__(self) -> int:
        return len(self._buffers)

    @property
    def clients(self) -> int:
        """Number of clients with a subscription."""
        return len(self._clients)

    @property
    def subscriptions(self) -> int:
        """Number of subscriptions of all clients."""
        return self._clients.total()

    def join(self, topic: K, wake: Callable[[], None]) -> tuple[EventBuffer[K], int]:
        """Subscribe to a topic; return its buffer, and the buffer's end as a cursor.

        ``wake`` is called at each batch; it also identifies the client.
        """
        with self._lock:
            buffer = self._buffers.get(topic)
            if buffer is None:
                buffer = self._buffers[topic] = EventBuffer(
                    topic, self._max_events, MAX_BUFFER_BYTES
                )
                self._opened(buffer)
            buffer.subscribers.append(wake)
            self._clients[wake] += 1
            return buffer, buffer.end

    def leave(self, buffer: EventBuffer[K], wake: Callable[[], None]) -> None:
        """Unsubscribe; the buffer is removed with its last subscriber."""
        with self._lock:
            buffer.subscribers.remove(wake)
            self._clients[wake] -= 1
            if not self._clients[wake]:
                del self._clients[wake]
            if not buffer.subscribers:
                del self._buffers[buffer.topic]
                self._closed(buffer)

    def _opened(self, buffer: EventBuffer[K]) -> None:
        """Handle, under the lock, that a topic gets its first subscriber."""

    def _closed(self, buffer: EventBuffer[K]) -> None:
        """Handle, under the lock, that a topic has lost its last subscriber."""

    def _deliver_block(self, batches: Mapping[EventBuffer[K], Sequence[bytes]]) -> None:
        """Append to each buffer its batch of a block's events, and wake its subscribers."""
        self._newest = tuple(batches)
        self._deliver(batches)

    def _deliver(self, batches: Mapping[EventBuffer[K], Sequence[bytes]]) -> None:
        """Append to each buffer its batch, and wake its subscribers."""
        for buffer, batch in batches.items():
            buffer.extend(batch)
        self._wake(batches)

    def _wake(self, buffers: Iterable[EventBuffer[K]]) -> None:
        with self._lock:
            woken = {wake for buffer in buffers for wake in buffer.subscribers}
        for wake in woken:
            wake()

    def cancel_newest(self, reason: str) -> None:
        """Cancel the subscriptions that had events of the newest block."""
        for buffer in self._newest:
            buffer.cancel(reason)
        self._wake(self._newest)


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
        # Joined when they are written: all subscribers share the bodies.
        return (self.head + body + b"}}" for body in bodies)


class ClientSubscriptions(Generic[K]):
    """A connection's subscriptions by their names.

    They deliver nothing before :meth:`begin`, which is called when the response to the
    subscribe call is sent: clients read it before the first event. ``sender`` is the sender of
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
        """Start delivery for all subscriptions."""
        fresh = [each for each in tuple(self._subscriptions.values()) if not each.has_begun]
        for each in fresh:
            each.has_begun = True
        if fresh:
            self._wake()

    def end(self, name: K, reason: str) -> bool:
        """End a subscription; return true if it existed."""
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
        """Yield the messages to send.

        A subscription that fell behind is ended; its messages are the result of ``overflowed``.
        """
        waiting: list[Iterable[bytes]] = []
        # The copy is made in one step, so no lock is needed.
        for name, subscription in tuple(self._subscriptions.items()):
            if not subscription.has_begun:
                continue
            events: Iterable[bytes] | None = subscription.take()
            if events is None:
                self.end(name, _TOO_SLOW)
                events = overflowed(subscription)
            waiting.append(events)
        return chain.from_iterable(waiting)


class QueryHub(EventBuffers[Query]):
    """Event buffers of one mount by query, with an index to match messages."""

    def __init__(self, encode: Callable[[Message], bytes], max_events: int) -> None:
        super().__init__(max_events)
        self._encode = encode
        self._by_value: dict[tuple[str, str], list[EventBuffer[Query]]] = {}
        self._others: list[EventBuffer[Query]] = []

    def _opened(self, buffer: EventBuffer[Query]) -> None:
        self._buffers_for(buffer.topic).append(buffer)

    def _closed(self, buffer: EventBuffer[Query]) -> None:
        self._buffers_for(buffer.topic).remove(buffer)
        value = _index_key(buffer.topic)
        if value is not None and not self._by_value[value]:
            del self._by_value[value]

    def _buffers_for(self, query: Query) -> list[EventBuffer[Query]]:
        """Return the list that indexes a query: by its most selective equality, if any."""
        value = _index_key(query)
        return self._others if value is None else self._by_value.setdefault(value, [])

    def publish(self, messages: Iterable[Message]) -> None:
        """Append a block's messages to the matching buffers, and wake their subscribers.

        Messages are read and encoded without the lock, so subscribing does not have to wait for
        that.
        """
        block = list(messages)
        with self._lock:
            matching = [tuple(self._matching(message.keys)) for message in block]
        batches: dict[EventBuffer[Query], list[bytes]] = {}
        for message, buffers in zip(block, matching, strict=True):
            body = self._encode(message) if buffers else b""
            for buffer in buffers:
                batches.setdefault(buffer, []).append(body)
        self._deliver_block(batches)

    def _matching(self, keys: Keys) -> Iterable[EventBuffer[Query]]:
        for key, values in keys.items():
            for value in _comparable_values(key, values):
                for buffer in self._by_value.get((key, value), ()):
                    if buffer.topic.matches(keys):
                        yield buffer
        for buffer in self._others:
            if buffer.topic.matches(keys):
                yield buffer


def _comparable_values(key: str, values: Iterable[str]) -> set[str]:
    if has_aliases(key):
        return {comparable(key, value) for value in values}
    return set(values)


def _index_key(query: Query) -> tuple[str, str] | None:
    """Return the equality that indexes a query, preferring any other to the event type."""
    # An empty text also matches an event type without attributes, which is not a key.
    equalities = [
        (c.key, comparable(c.key, c.text)) for c in query.conditions if c.is_equality and c.text
    ]
    selective = [pair for pair in equalities if pair[0] != "tm.event"]
    return next(iter(selective or equalities), None)
