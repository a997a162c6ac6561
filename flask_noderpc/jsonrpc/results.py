"""Encoded results: their cache, and computations that equal calls share.

Cached results are not invalidated: the cache key has the version of the chain.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from hashlib import blake2b
from typing import NamedTuple

from ..backends.base.reads import ChainVersion, Marks
from ..lru import CacheMemory, LRUCache
from .params import Params
from .route import Cache

# Approximate bytes of a cache entry and its objects, in addition to the response and the
# parameters.
_OVERHEAD_BYTES = 1_000
_MAX_ENTRIES = 1_000_000


class CachedResult(NamedTuple):
    """An encoded result, and what caches need to know about it."""

    result: bytes | memoryview
    cacheable: bool = False
    etag: str = ""
    """ETag of the result; empty if it has none."""
    version: ChainVersion | None = None
    """Version of the chain that the result was computed with; ``None`` if the result also
    depends on other data."""
    reply: bytes = b""
    """Complete body of the response to a GET, which avoids copying a large cached result."""
    params_bytes: int = 0
    """Approximate bytes of the parameters in the cache key."""
    marks: Marks = ()
    """Headers that say which data is incomplete or not proven; such a result is not cached."""

    def holds(self, version: ChainVersion | None) -> bool:
        """Return true if the result is valid for a version of the chain."""
        if self.version is None or version is None:
            return False
        if self.cacheable:
            return self.version.history == version.history
        return self.version == version


# Seconds for which a call waits for an equal one, as that one may wait in the queue of its own
# client. Not fewer: on a busy machine a large result takes seconds, and needs its memory again
# for each call that computes it at the same time.
_PATIENCE_S = 10.0


class _Run:
    """A running computation, and the calls that wait for its result."""

    __slots__ = ("has_ended", "result", "waiting")

    def __init__(self) -> None:
        self.result: CachedResult | None = None
        self.has_ended = False
        self.waiting: list[threading.Event] = []

    def end(self) -> None:
        self.has_ended = True
        for event in self.waiting:
            event.set()

    def wait(self, seconds: float) -> None:
        event = threading.Event()
        self.waiting.append(event)
        # The run may have ended before the event was in the list.
        if not self.has_ended:
            event.wait(seconds)


class Running:
    """Computations of results that calls wait for: equal calls share one.

    When a block arrives, many clients send the same call, and a search or an ``eth_call`` lets
    the other calls begin before its own result is cached.
    """

    def __init__(self) -> None:
        self._runs: dict[Hashable, _Run] = {}

    def shared(self, key: Hashable, compute: Callable[[], CachedResult]) -> CachedResult:
        """Return the result of the computation with this key that is running, else of
        ``compute``. A result with marks is not shared, nor one that takes longer than ten
        seconds, nor an error, which may be due to the limits of one client."""
        deadline = 0.0
        while (run := self._runs.get(key)) is not None:
            now = time.monotonic()
            deadline = deadline or now + _PATIENCE_S
            run.wait(deadline - now)
            found = run.result
            if found is not None and not found.marks:
                return found
            if found is not None or not run.has_ended or time.monotonic() >= deadline:
                return compute()
            # The run ended with an error: one of the calls that waited for it is the next run.
        run = self._runs[key] = _Run()
        try:
            run.result = compute()
            return run.result
        finally:
            # Two threads may have begun at once: each wakes the calls that wait for it.
            self._runs.pop(key, None)
            run.end()


_Answers = LRUCache[Hashable, CachedResult]


def _weight(entry: CachedResult) -> int:
    return len(entry.result) + entry.params_bytes + _OVERHEAD_BYTES


class ResultCache:
    """Cache of one mount's results, final or of the latest block, bounded in bytes."""

    def __init__(self, max_bytes: int, memory: CacheMemory | None = None) -> None:
        memory = memory or CacheMemory(max_bytes)
        # Results of the latest block get a quarter of the memory, as they seldom need more.
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
        frame: tuple[bytes, bytes],
    ) -> CachedResult:
        """Cache a result and return it: a final one until it is evicted, others until the next
        block.

        ``frame`` is the JSON before and after the result in the response to a GET.
        """
        etag = blake2b(encoded.result, digest_size=16).hexdigest()
        before, behind = frame
        reply = b"".join((before, encoded.result, behind))
        result = memoryview(reply)[len(before) : len(reply) - len(behind)]
        entry = CachedResult(result, encoded.cacheable, etag, version, reply, len(repr(params)))
        if encoded.cacheable:
            return self._final.put((name, params, version.history), entry)
        if self._version != version:
            # Drop the results of the previous block, which are not used again.
            self._version = version
            self._head.clear()
        return self._head.put((name, params, version), entry)
