"""What was made lately and may be asked for again, as far as there is room."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# What an OrderedDict takes for an entry: its place in a table that grows by doubling, and its
# node in the order. Measured: 85 to 120 bytes, and malloc rounds up.
ENTRY_BYTES = 160
DEFAULT_BYTES = 64 << 20
# To tell of each entry would take longer than to keep it.
_STEPS = 256


class CacheMemory:
    """The memory of a process for caches: at most so many bytes of all of them together, or
    one entry that is larger.

    Where there is no room for a new entry, the cache that has the most gives up its oldest.
    """

    def __init__(self, limit: int = DEFAULT_BYTES) -> None:
        self.limit = limit
        self.used = 0
        self.lock = threading.Lock()
        self.watch: Callable[[CacheMemory], None] | None = None
        """Called when ``used`` has changed by a part of the limit."""
        self._watched = 0
        self._caches: list[LRUCache[Any, Any]] = []

    def join(self, cache: LRUCache[Any, Any]) -> None:
        """Count a cache's entries from now on."""
        with self.lock:
            self._caches.append(cache)

    def make_room(self, newest: LRUCache[Any, Any]) -> None:
        """Have the largest caches drop entries until all fit, but for the newest of one; the
        lock is held."""
        while self.used > self.limit:
            others = (cache for cache in self._caches if cache is not newest)
            droppable = [newest] if newest.count > 1 else []
            largest = max((*others, *droppable), key=lambda cache: cache.bytes, default=None)
            if largest is None or not largest.count:
                return
            largest.drop_oldest()

    def show(self) -> None:
        """Tell who watches, if there is something to tell."""
        if self.watch is not None and abs(self.used - self._watched) * _STEPS >= self.limit:
            self._watched = self.used
            self.watch(self)


class LRUCache(Generic[K, V]):
    """At most so many values, and so many bytes of them; the last one is kept in any case.

    What nobody has asked for the longest goes first. ``weigh`` counts the bytes of a value's
    objects and of its key's; what the cache itself takes for an entry is added.
    """

    def __init__(
        self,
        most: int,
        max_bytes: int,
        weigh: Callable[[V], int],
        memory: CacheMemory | None = None,
    ) -> None:
        self._most, self._most_bytes, self._weigh = most, max_bytes, weigh
        self._values: OrderedDict[K, V] = OrderedDict()
        self.bytes = 0
        self._memory = memory or CacheMemory(max_bytes)
        self._lock = self._memory.lock
        self._memory.join(self)

    def get(self, key: K) -> V | None:
        """The value, if it is still there."""
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
            return found

    def put(self, key: K, value: V) -> V:
        """The value, which is there from now on."""
        with self._lock:
            former = self._values.pop(key, None)
            if former is not None:
                self._count(former, -1)
            self._values[key] = value
            self._count(value, 1)
            while self.count > 1 and self._is_full():
                self.drop_oldest()
            self._memory.make_room(self)
            self._memory.show()
        return value

    def clear(self) -> None:
        """Drop all."""
        with self._lock:
            self._values.clear()
            self._memory.used -= self.bytes
            self.bytes = 0

    @property
    def count(self) -> int:
        """How many values there are."""
        return len(self._values)

    def drop_oldest(self) -> None:
        """Drop what nobody has asked for the longest; the memory's lock is held."""
        _, dropped = self._values.popitem(last=False)
        self._count(dropped, -1)

    def _count(self, value: V, sign: int) -> None:
        size = sign * (self._weigh(value) + ENTRY_BYTES)
        self.bytes += size
        self._memory.used += size

    def _is_full(self) -> bool:
        return len(self._values) > self._most or self.bytes > self._most_bytes
