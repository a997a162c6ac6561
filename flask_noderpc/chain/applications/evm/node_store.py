"""Nodes of the state's trees and code, read once and kept for a while."""

from __future__ import annotations

from collections.abc import Callable

from ....lru import CacheMemory, LRUCache

# Nodes of trees have some hundred bytes, and code up to 24 thousand.
_MAX_NODES, _MAX_NODE_BYTES = 50_000, 32 << 20
# What Python takes for the two objects, and the hash of 32 bytes.
_OBJECT_BYTES = 130


class CachedNodeStore:
    """Records by their hashes, under which they never change."""

    def __init__(
        self, read: Callable[[bytes], bytes | None], memory: CacheMemory | None = None
    ) -> None:
        self._read = read
        self._cache = LRUCache[bytes, bytes](_MAX_NODES, _MAX_NODE_BYTES, _weight, memory)

    def record(self, digest: bytes) -> bytes | None:
        """A node or a code by its hash."""
        found = self._cache.get(digest) or self._read(digest)
        return None if found is None else self._cache.put(digest, found)


def _weight(record: bytes) -> int:
    return len(record) + _OBJECT_BYTES
