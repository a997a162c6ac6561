"""LRU caches bounded by entries and bytes, with a shared memory limit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# Overhead of an OrderedDict per entry, for its slot in the hash table and its node in the
# linked list: measured 85 to 120 bytes, which malloc rounds up.
ENTRY_BYTES = 160
DEFAULT_BYTES = 64 << 20
# Call ``watch`` only after changes by 1/256 of the limit, because it takes longer than caching
# an entry.
_STEPS = 256


class CacheMemory:
    """Memory limit that the caches of a process share; a single entry may be larger than the
    limit.

    When a new entry exceeds the limit, the largest cache evicts its oldest entries.
    """

    def __init__(self, limit: int = DEFAULT_BYTES) -> None:
        self.limit = limit
        self.used = 0
        self.lock = threading.Lock()
        self.watch: Callable[[CacheMemory], None] | None = None
        """Function that is called when ``used`` has changed by 1/256 of the limit."""
        self._watched = 0
        self._caches: list[LRUCache[Any, Any]] = []

    def join(self, cache: LRUCache[Any, Any]) -> None:
        """Add a cache to the caches that share the limit."""
        with self.lock:
            self._caches.append(cache)

    def divide(self, processes: int) -> None:
        """Reduce the limit to the share of one of several processes."""
        self.limit //= processes
        if self.watch is not None:
            self.watch(self)

    def evict(self, newest: LRUCache[Any, Any]) -> None:
        """Evict entries of the largest caches until the limit is met, but not the newest entry
        of ``newest``; call with the lock held."""
        while self.used > self.limit:
            others = (cache for cache in self._caches if cache is not newest)
            evictable = [newest] if newest.count > 1 else []
            largest = max((*others, *evictable), key=lambda cache: cache.bytes, default=None)
            if largest is None or not largest.count:
                return
            largest.evict_oldest()

    def notify(self) -> None:
        """Call ``watch`` if ``used`` has changed enough since its last call."""
        if self.watch is not None and abs(self.used - self._watched) * _STEPS >= self.limit:
            self._watched = self.used
            self.watch(self)


class LRUCache(Generic[K, V]):
    """LRU cache bounded by entries and bytes; the newest entry always stays.

    ``weigh`` is a function that returns the bytes of a value and its key; the overhead of an
    entry is added.
    """

    def __init__(
        self,
        max_entries: int,
        max_bytes: int,
        weigh: Callable[[V], int],
        memory: CacheMemory | None = None,
    ) -> None:
        self._max_entries, self._max_bytes, self._weigh = max_entries, max_bytes, weigh
        self._values: OrderedDict[K, V] = OrderedDict()
        self.bytes = 0
        self._memory = memory or CacheMemory(max_bytes)
        self._lock = self._memory.lock
        self._memory.join(self)

    def get(self, key: K) -> V | None:
        """Return the cached value, or ``None``."""
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
            return found

    def put(self, key: K, value: V) -> V:
        """Cache a value and return it."""
        with self._lock:
            former = self._values.pop(key, None)
            if former is not None:
                self._count(former, -1)
            self._values[key] = value
            self._count(value, 1)
            while self.count > 1 and self._is_full():
                self.evict_oldest()
            self._memory.evict(self)
            self._memory.notify()
        return value

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._values.clear()
            self._memory.used -= self.bytes
            self.bytes = 0

    @property
    def count(self) -> int:
        """Number of entries."""
        return len(self._values)

    def evict_oldest(self) -> None:
        """Evict the least recently used entry; call with the memory's lock held."""
        _, evicted = self._values.popitem(last=False)
        self._count(evicted, -1)

    def _count(self, value: V, sign: int) -> None:
        size = sign * (self._weigh(value) + ENTRY_BYTES)
        self.bytes += size
        self._memory.used += size

    def _is_full(self) -> bool:
        return len(self._values) > self._max_entries or self.bytes > self._max_bytes
