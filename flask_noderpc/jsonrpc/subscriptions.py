"""Event buffers, which subscribers share, and the subscriptions of a connection.

Each distinct topic, such as a query, has one buffer of encoded events, so an event is encoded
once for all subscribers. A subscription is a cursor in a buffer; events are only copied when
the connection's writer reads them.
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
"""Maximum bytes of the events in a buffer, in addition to the newest batch."""


class EventBuffer(Generic[K]):
    """The latest events of a topic, bounded in number and in bytes.

    A batch is the events of one block. The newest batch is always kept completely, so a
    subscriber that keeps up with blocks loses no events.
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
        """The newest event; ``None`` if the buffer is empty."""
        with self._lock:
            return self._entries[-1] if self._entries else None

    def extend(self, batch: Sequence[bytes]) -> None:
        """Append a batch, and evict the oldest events beyond the limits."""
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
        """Return the events after a cursor; ``None`` if some of them were evicted."""
        with self._lock:
            return None if cursor < self.first else self._entries[cursor - self.first :]

    def cancel(self, reason: str) -> None:
        """Remove all events, so that the current subscriptions end with ``reason``; later ones
        are not affected."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0
            self.first = self.end = self.end + 1
            self._cancelled = self.first, reason

    def reason_before(self, cursor: int) -> str:
        """Return the reason why the subscription at a cursor was canceled; empty if it fell
        behind."""
        cancelled_at, reason = self._cancelled
        return reason if cursor < cancelled_at else ""


class EventBuffers(Generic[K]):
    """Registry of one mount's event buffers by topic, and of their subscribers."""

    def __init__(self, max_events: int) -> None:
        self._max_events = max_events
        self._buffers: dict[K, EventBuffer[K]] = {}
        self._lock = threading.Lock()
        self._newest: tuple[EventBuffer[K], ...] = ()
        """Buffers that got events of the newest block."""
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
        """Subscribe to a topic; return its buffer, and a cursor at the buffer's end.

        ``wake`` is called after each batch; it also identifies the client.
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
        """Unsubscribe from a buffer, which is removed if it has no other subscriber."""
        with self._lock:
            buffer.subscribers.remove(wake)
            self._clients[wake] -= 1
            if not self._clients[wake]:
                del self._clients[wake]
            if not buffer.subscribers:
                del self._buffers[buffer.topic]
                self._closed(buffer)

    def _opened(self, buffer: EventBuffer[K]) -> None:
        """Handle a topic's first subscriber; called under the lock."""

    def _closed(self, buffer: EventBuffer[K]) -> None:
        """Handle that a topic has no subscriber left; called under the lock."""

    def _deliver_block(self, batches: Mapping[EventBuffer[K], Sequence[bytes]]) -> None:
        """Append each buffer's events of a new block, and wake the subscribers."""
        self._newest = tuple(batches)
        self._deliver(batches)

    def _deliver(self, batches: Mapping[EventBuffer[K], Sequence[bytes]]) -> None:
        """Append each buffer's batch, and wake the subscribers."""
        for buffer, batch in batches.items():
            buffer.extend(batch)
        self._wake(batches)

    def _wake(self, buffers: Iterable[EventBuffer[K]]) -> None:
        with self._lock:
            woken = {wake for buffer in buffers for wake in buffer.subscribers}
        for wake in woken:
            wake()

    def cancel_newest(self, reason: str) -> None:
        """Cancel the subscriptions that got events of the newest block."""
        for buffer in self._newest:
            buffer.cancel(reason)
        self._wake(self._newest)


_TOO_SLOW = "too slow"


@dataclass(slots=True, eq=False, weakref_slot=True)
class Subscription:
    """A cursor in an event buffer; ``head`` is the JSON before each event of this
    subscriber."""

    id: bytes
    buffer: EventBuffer[Any]
    cursor: int
    head: bytes
    has_begun: bool = False

    @property
    def reason(self) -> str:
        """Reason why the subscription ended; empty if the client fell behind."""
        return self.buffer.reason_before(self.cursor)

    def take(self) -> Iterator[bytes] | None:
        """Return messages with the new events, and advance the cursor; return ``None`` if some
        were evicted."""
        bodies = self.buffer.since(self.cursor)
        if bodies is None:
            return None
        self.cursor += len(bodies)
        # Join head and body lazily, when they are written: subscribers share the bodies.
        return (self.head + body + b"}}" for body in bodies)


class ClientSubscriptions(Generic[K]):
    """A connection's subscriptions, by name.

    A subscription delivers nothing before :meth:`begin`, which is called after the response to
    the subscribe call is sent, so clients read the response before the first event. ``sender``
    is the sender of signals.
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
        """Start delivery for all subscriptions that have not begun."""
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
        """End all subscriptions, as the client does not read; return a notice for each."""
        subscriptions = tuple(self._subscriptions.items())
        return [notice(each) for name, each in subscriptions if self.end(name, _TOO_SLOW)]

    def pull(self, overflowed: Callable[[Subscription], Iterable[bytes]]) -> Iterator[bytes]:
        """Yield the messages to send.

        A subscription that fell behind ends; ``overflowed`` returns its last messages.
        """
        waiting: list[Iterable[bytes]] = []
        # Copying the items is atomic, so no lock is needed.
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
    """Event buffers of one mount by query, with an index that finds the queries of an
    event."""

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
        """Return the list of buffers in the index to which a query belongs."""
        value = _index_key(query)
        return self._others if value is None else self._by_value.setdefault(value, [])

    def publish(self, messages: Iterable[Message]) -> None:
        """Append a block's messages to the buffers of matching queries, and wake the
        subscribers.

        Messages are read and encoded without the lock, so that subscribing need not wait.
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
    """Return the key and value of the equality by which a query is indexed, preferably not
    ``tm.event``; ``None`` if it has no equality."""
    # Skip empty texts, which also match an event without attributes, and so without a key.
    equalities = [
        (c.key, comparable(c.key, c.text)) for c in query.conditions if c.is_equality and c.text
    ]
    selective = [pair for pair in equalities if pair[0] != "tm.event"]
    return next(iter(selective or equalities), None)
