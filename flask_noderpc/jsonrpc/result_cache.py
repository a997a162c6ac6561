"""Cache of encoded results by route, parameters and version of the chain.

Nothing is ever invalidated: a chain that has changed has other keys.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from typing import NamedTuple

from ..backends.base.reads import ChainVersion, Marks
from ..lru import CacheMemory, LRUCache
from .params import Params
from .route import Cache

# The key, the entry and its objects, beside the bytes of the answer and the parameters.
_OVERHEAD_BYTES = 1_000
_MAX_ENTRIES = 1_000_000


class CachedResult(NamedTuple):
    """An encoded result, and its attributes for caches."""

    result: bytes | memoryview
    cacheable: bool = False
    etag: str = ""
    """ETag of the result; empty where there is none."""
    version: ChainVersion | None = None
    """Version of the chain that it was computed from, if it depends on the chain alone."""
    reply: bytes = b""
    """Complete body for a GET, of a cached result: copying a large one takes long."""
    params_bytes: int = 0
    """Approximate bytes of the parameters of a cached result."""
    marks: Marks = ()
    """Headers that say what is not proven or not complete; a result with any is not cached."""

    def holds(self, version: ChainVersion | None) -> bool:
        """Return true if the result is valid for a version of the chain."""
        if self.version is None or version is None:
            return False
        if self.cacheable:
            return self.version.history == version.history
        return self.version == version


_Answers = LRUCache[Hashable, CachedResult]


def _weight(entry: CachedResult) -> int:
    return len(entry.result) + entry.params_bytes + _OVERHEAD_BYTES


class ResultCache:
    """Cached results of one mount, final or of the head, bounded in bytes."""

    def __init__(self, max_bytes: int, memory: CacheMemory | None = None) -> None:
        memory = memory or CacheMemory(max_bytes)
        # A quarter for the head: results of one block's time seldom take more.
        head_bytes = max_bytes // 4
        self._final: _Answers = LRUCache(_MAX_ENTRIES, max_bytes - head_bytes, _weight, memory)
        self._head: _Answers = LRUCache(_MAX_ENTRIES, head_bytes, _weight, memory)
        self._version: ChainVersion | None = None

    def find(
        self, name: str, cache: Cache, params: Params, version: ChainVersion
    ) -> CachedResult | None:
        """Return the cached result of a route at a version of the chain, or ``None``."""
        if cache.may_allow(params):
            final = self._final.get((name, params, version.history))
            if final is not None:
                return final
        return self._head.get((name, params, version)) if self._version == version else None

    def put(
        self,
        name: str,
        params: Params,
        version: ChainVersion,
        encoded: CachedResult,
        around: tuple[bytes, bytes],
    ) -> CachedResult:
        """Cache a result: until evicted if it is final, else until the next block.

        ``around`` is the JSON before and after it in the answer to a GET.
        """
        etag = blake2b(encoded.result, digest_size=16).hexdigest()
        before, behind = around
        reply = b"".join((before, encoded.result, behind))
        result = memoryview(reply)[len(before) : len(reply) - len(behind)]
        entry = CachedResult(result, encoded.cacheable, etag, version, reply, len(repr(params)))
        if encoded.cacheable:
            return self._final.put((name, params, version.history), entry)
        if self._version != version:
            # Results of an older head are not requested again.
            self._version = version
            self._head.clear()
        return self._head.put((name, params, version), entry)
