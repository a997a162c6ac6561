"""Encoded results that are asked for again, kept under the chain they were told of.

Nothing is ever invalidated: a chain that has changed has other keys.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import blake2b

from ..backends.base.version import ChainVersion
from ..lru import CacheMemory, LRUCache
from .params import Params
from .route import Cache

# The key, the entry and its objects, beside the bytes of the answer and the parameters.
_OVERHEAD_BYTES = 1_000
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class CachedResult:
    """A result as it is sent, and whether others may keep it."""

    result: bytes | memoryview
    cacheable: bool = False
    etag: str = ""
    """Another one for each other result; empty where none is told."""
    version: ChainVersion | None = None
    """What it was told of, where it follows from the chain alone."""
    reply: bytes = b""
    """The whole answer to a GET, of one that is kept; large ones would be copied long."""
    asked: int = 0
    """About how many bytes the parameters of one that is kept take."""

    def holds(self, version: ChainVersion | None) -> bool:
        """Whether the same would be told of this chain."""
        if self.version is None or version is None:
            return False
        if self.cacheable:
            return self.version.history == version.history
        return self.version == version


_Answers = LRUCache[Hashable, CachedResult]


def _weight(entry: CachedResult) -> int:
    return len(entry.result) + entry.asked + _OVERHEAD_BYTES


class ResultCache:
    """The results of one mount, settled or of the head, bounded in bytes."""

    def __init__(self, max_bytes: int, memory: CacheMemory | None = None) -> None:
        memory = memory or CacheMemory(max_bytes)
        # A quarter for the head: one block's time is too short to ask for more.
        head_bytes = max_bytes // 4
        self._final: _Answers = LRUCache(_MOST, max_bytes - head_bytes, _weight, memory)
        self._head: _Answers = LRUCache(_MOST, head_bytes, _weight, memory)
        self._version: ChainVersion | None = None

    def find(
        self, name: str, cache: Cache, params: Params, version: ChainVersion
    ) -> CachedResult | None:
        """The result of a route at a version of the chain, if it is still there."""
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
        """The result, kept: for good if it is settled, and else while the chain stays.

        ``around`` is what stands before and behind it in the answer to a GET.
        """
        etag = blake2b(encoded.result, digest_size=16).hexdigest()
        before, behind = around
        reply = b"".join((before, encoded.result, behind))
        result = memoryview(reply)[len(before) : len(reply) - len(behind)]
        entry = CachedResult(result, encoded.cacheable, etag, version, reply, len(repr(params)))
        if encoded.cacheable:
            return self._final.put((name, params, version.history), entry)
        if self._version != version:
            # What was told of another head is not asked for again: it would only take room.
            self._version = version
            self._head.clear()
        return self._head.put((name, params, version), entry)
