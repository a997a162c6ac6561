"""Who wants what: distinct topics, a ring of encoded events for each, and cursors on it.

A message is encoded once, whoever wants it. Each distinct topic, such as a query, has one
ring, which all its subscribers share; a subscription is a position in that ring with a
constant head and tail of its own. Nothing is copied to a subscriber before its writer asks.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from ..events.messages import Keys, Message
from ..events.query import Query
from ..protocol.ethereum.aliases import comparable, has_addresses

K = TypeVar("K", bound=Hashable)


class EventBuffer(Generic[K]):
    """The last events of a topic, bounded in number and in bytes.

    The newest batch, which is one block's, is always whole: whoever keeps up with blocks
    is never cut off, however many events a block has.
    """

    def __init__(self, topic: K, max_events: int, max_bytes: int) -> None:
        self.topic = topic
        self.subscribers: list[Callable[[], None]] = []
        """How each subscriber is woken."""
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._entries: list[bytes] = []
        self._bytes = 0
        self._lock = threading.Lock()
        self.first = 0
        self.end = 0

    @property
    def newest(self) -> bytes | None:
        """The last event of all."""
        with self._lock:
            return self._entries[-1] if self._entries else None

    def extend(self, batch: Sequence[bytes]) -> None:
        """Add a block's events, dropping what is too old."""
        with self._lock:
            self._entries.extend(batch)
            self._bytes += sum(map(len, batch))
            self.end += len(batch)
            gone = 0
            older = len(self._entries) - len(batch)
            while gone < older and (
                older - gone > self._max_events or self._bytes > self._max_bytes
            ):
                self._bytes -= len(self._entries[gone])
                gone += 1
            del self._entries[:gone]
            self.first += gone

    def since(self, cursor: int) -> list[bytes] | None:
        """What came after the cursor; ``None`` when some of it is gone."""
        with self._lock:
            return None if cursor < self.first else self._entries[cursor - self.first :]


class EventBuffers(Generic[K]):
    """The distinct topics of one mount, and who is woken by which."""

    def __init__(self, max_events: int, max_bytes: int) -> None:
        self._bounds = (max_events, max_bytes)
        self._rings: dict[K, EventBuffer[K]] = {}
        self._lock = threading.Lock()
        self._clients: Counter[Callable[[], None]] = Counter()

    def __len__(self) -> int:
        return len(self._rings)

    @property
    def clients(self) -> int:
        """How many clients have a subscription."""
        return len(self._clients)

    @property
    def subscriptions(self) -> int:
        """How many subscriptions all clients have."""
        return self._clients.total()

    def join(self, topic: K, wake: Callable[[], None]) -> tuple[EventBuffer[K], int]:
        """The topic's ring, and its end as a cursor.

        ``wake`` is called at each batch; it also tells one client from another.
        """
        with self._lock:
            ring = self._rings.get(topic)
            if ring is None:
                ring = self._rings[topic] = EventBuffer(topic, *self._bounds)
                self._opened(ring)
            ring.subscribers.append(wake)
            self._clients[wake] += 1
            return ring, ring.end

    def leave(self, ring: EventBuffer[K], wake: Callable[[], None]) -> None:
        """Stop being woken; the ring goes with its last subscriber."""
        with self._lock:
            ring.subscribers.remove(wake)
            self._clients[wake] -= 1
            if not self._clients[wake]:
                del self._clients[wake]
            if not ring.subscribers:
                del self._rings[ring.topic]
                self._closed(ring)

    def _opened(self, ring: EventBuffer[K]) -> None:
        """A topic is wanted for the first time; called under the lock."""

    def _closed(self, ring: EventBuffer[K]) -> None:
        """Nobody wants a topic any more; called under the lock."""

    def _deliver(self, batches: Mapping[EventBuffer[K], Sequence[bytes]]) -> None:
        """Give each ring its batch, and wake whoever gets some of it."""
        with self._lock:
            woken = {wake for ring in batches for wake in ring.subscribers}
        for ring, batch in batches.items():
            ring.extend(batch)
        for wake in woken:
            wake()


class QueryHub(EventBuffers[Query]):
    """The distinct queries of one mount, and which of them want a message."""

    def __init__(
        self, encode: Callable[[Message], bytes], max_events: int, max_bytes: int
    ) -> None:
        super().__init__(max_events, max_bytes)
        self._encode = encode
        self._by_value: dict[tuple[str, str], list[EventBuffer[Query]]] = {}
        self._others: list[EventBuffer[Query]] = []

    def _opened(self, ring: EventBuffer[Query]) -> None:
        self._buffers_for(ring.topic).append(ring)

    def _closed(self, ring: EventBuffer[Query]) -> None:
        self._buffers_for(ring.topic).remove(ring)
        value = _selective(ring.topic)
        if value is not None and not self._by_value[value]:
            del self._by_value[value]

    def _buffers_for(self, query: Query) -> list[EventBuffer[Query]]:
        """Where a ring is looked up: by its most telling equality, if it has one."""
        value = _selective(query)
        return self._others if value is None else self._by_value.setdefault(value, [])

    def publish(self, messages: Iterable[Message]) -> None:
        """Deliver a block's messages to the matching buffers, and wake their subscribers.

        Messages are read and encoded without the lock: subscribing never waits for either.
        """
        block = list(messages)
        with self._lock:
            matching = [tuple(self._matching(message.keys)) for message in block]
        batches: dict[EventBuffer[Query], list[bytes]] = {}
        for message, buffers in zip(block, matching, strict=True):
            body = self._encode(message) if buffers else b""
            for buffer in buffers:
                batches.setdefault(buffer, []).append(body)
        self._deliver(batches)

    def _matching(self, keys: Keys) -> Iterable[EventBuffer[Query]]:
        for key, values in keys.items():
            for value in _comparables(key, values):
                for ring in self._by_value.get((key, value), ()):
                    if ring.topic.matches(keys):
                        yield ring
        for ring in self._others:
            if ring.topic.matches(keys):
                yield ring


def _comparables(key: str, values: Iterable[str]) -> set[str]:
    if has_addresses(key):
        return {comparable(key, value) for value in values}
    return set(values)


def _selective(query: Query) -> tuple[str, str] | None:
    """The equality by which a query is looked up: any but the category, if it can be."""
    # An empty text is also what a mere type of events stands for, which is no key.
    found = [
        (c.key, comparable(c.key, c.text)) for c in query.conditions if c.is_equality and c.text
    ]
    instrumented = [pair for pair in found if pair[0] != "tm.event"]
    return next(iter(instrumented or found), None)
