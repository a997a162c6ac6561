"""Fetch chunks of blocks in parallel from upstreams, and yield them in order of height."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..errors import Busy, UpstreamError, UpstreamRefused
from .http import Unusable
from .pool import Upstreams
from .reader import Reader

T = TypeVar("T")

CHUNK = 20
"""Number of heights in a chunk."""

Range = tuple[int, int]
"""Lowest and highest height, both included."""

Fetch = Callable[[Reader, int, int], T]
"""A function that fetches a range of heights from an upstream."""

FINAL = (Unusable, UpstreamRefused)
"""Errors that are raised at once, even while other nodes can't be reached."""


@dataclass(frozen=True, slots=True)
class Chunk(Generic[T]):
    """Content of a range of heights, read from one upstream."""

    reader: Reader
    range: Range
    content: T


def ascending_ranges(low: int, high: int) -> Iterator[Range]:
    """Yield the ranges of chunks from ``low`` to ``high``."""
    for first in range(low, high + 1, CHUNK):
        yield first, min(first + CHUNK - 1, high)


def descending_ranges(low: int, high: int) -> Iterator[Range]:
    """Yield the ranges of chunks from ``high`` down to ``low``."""
    for last in range(high, low - 1, -CHUNK):
        yield max(last - CHUNK + 1, low), last


def fetch_one(
    upstreams: Upstreams,
    fetch: Fetch[T],
    wanted: Range,
    final: tuple[type[UpstreamError], ...] = (),
) -> Chunk[T]:
    """Fetch a chunk from the first upstream that has it, asking one upstream at a time, as a
    chunk takes long."""
    return upstreams.attempt(_chunk_of(fetch, wanted), alone=True, final=final)


def fetch_next(upstreams: Upstreams, fetch: Fetch[T], height: int) -> Chunk[T]:
    """Fetch the next block, which some nodes may not have yet; if one is silent, ask the next
    as well."""
    return upstreams.attempt(_chunk_of(fetch, (height, height)), final=FINAL)


def are_down(upstreams: Upstreams, error: UpstreamError) -> bool:
    """Return true if an error is due to unreachable nodes: no node responds to ``status``,
    either."""
    if isinstance(error, FINAL):
        return False
    try:
        upstreams.attempt(Reader.status, final=(UpstreamError,))
    except (UpstreamError, Busy):
        return True
    return False


def _chunk_of(fetch: Fetch[T], wanted: Range) -> Callable[[Reader], Chunk[T]]:
    return lambda reader: Chunk(reader, wanted, fetch(reader, *wanted))


def fetch_all(
    fetch: Callable[[Range], T], ranges: Iterable[Range], jobs: int
) -> Generator[T, None, None]:
    """Yield the fetched ranges in order, fetching up to ``jobs`` ranges in parallel."""
    rest = iter(ranges)
    waiting: deque[Future[T]] = deque()
    threads = ThreadPoolExecutor(jobs, "noderpc-fetch")
    try:
        while True:
            while len(waiting) < jobs and (wanted := next(rest, None)):
                run = copy_context().run
                waiting.append(threads.submit(run, fetch, wanted))
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        threads.shutdown(wait=True, cancel_futures=True)
