"""Event buffers by query: each message is matched once with all distinct queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..event_aliases import comparable, has_aliases
from ..events.messages import Keys, Message
from ..events.query import Query
from .subscriptions import EventBuffer, EventBuffers


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
    """Return the equality that indexes a query, preferring any to the category."""
    # An empty text also matches an event type without attributes, which is no key.
    equalities = [
        (c.key, comparable(c.key, c.text)) for c in query.conditions if c.is_equality and c.text
    ]
    selective = [pair for pair in equalities if pair[0] != "tm.event"]
    return next(iter(selective or equalities), None)
