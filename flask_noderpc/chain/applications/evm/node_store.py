"""LRU cache over the stored state trie nodes and contract code."""

from __future__ import annotations

from collections.abc import Callable

from ....lru import CacheMemory, LRUCache

# Trie nodes have some hundred bytes, and code up to 24 thousand.
_MAX_NODES, _MAX_NODE_BYTES = 50_000, 32 << 20
# Python's overhead of two bytes objects, and the hash of 32 bytes.
_OBJECT_BYTES = 130


class CachedNodeStore:
    """Read-through cache of immutable records by their hashes."""

    def __init__(
        self, read: Callable[[bytes], bytes | None], memory: CacheMemory | None = None
    ) -> None:
        self._read = read
        self._cache = LRUCache[bytes, bytes](_MAX_NODES, _MAX_NODE_BYTES, _weight, memory)

    def record(self, digest: bytes) -> bytes | None:
        """Return a trie node or contract code by its hash, or ``None``."""
        record = self._cache.get(digest) or self._read(digest)
        return None if record is None else self._cache.put(digest, record)


def _weight(record: bytes) -> int:
    return len(record) + _OBJECT_BYTES
