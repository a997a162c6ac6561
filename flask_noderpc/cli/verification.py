"""Verification of a store's blocks in parts, by one process or by several."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from random import randrange
from typing import TYPE_CHECKING

from ..errors import InvalidBlock, StoreError

if TYPE_CHECKING:
    from ..backends.base.verify import Scope
    from ..backends.sql.store import ChainStore

# Blocks of a part, which a process verifies at once; an interrupted part begins again.
_PART = 500


@dataclass(frozen=True, slots=True)
class Plan:
    """Blocks to verify, and the number of processes that do it."""

    first: int = 0
    last: int | None = None
    """Highest height; ``None`` for the latest block."""
    all_signatures: bool = False
    """True to verify signatures beyond two thirds of the voting power."""
    sample: int | None = None
    """Number of blocks to verify, spread over all of them; ``None`` for every block."""
    jobs: int = 1


class Parts:
    """Parts of a range of heights, each of which is verified on its own.

    Each part also verifies the block before it, so that its first block must follow that one.
    """

    def __init__(self, heights: range, plan: Plan) -> None:
        self._heights, self._plan = heights, plan
        self._parts = list(self._divided())
        self._pending = {part: part.start for part in self._parts}
        """Next height of each part."""
        self.blocks = sum(map(len, self._parts))
        """Number of blocks to verify."""

    def _divided(self) -> Iterator[range]:
        heights, sample = self._heights, self._plan.sample
        if sample is None:
            if self._plan.jobs == 1:
                yield from [heights] if heights else []
                return
            starts = range(heights.start, heights.stop, _PART)
            yield from (range(at, min(at + _PART, heights.stop)) for at in starts)
            return
        count = min(sample, len(heights))
        for number in range(count):
            # One block at random of each of so many parts of equal length.
            low, high = (len(heights) * each // count for each in (number, number + 1))
            height = heights[randrange(low, high)]
            yield range(height, height + 1)

    @property
    def next(self) -> int:
        """Height from which to continue after an interruption."""
        return min(self._pending.values(), default=self._heights.stop)

    def verify(self, store: ChainStore, progress: Callable[[int], None]) -> int:
        """Verify all parts; return the number of blocks. Raise
        :exc:`~flask_noderpc.errors.StoreError`."""
        if self._plan.jobs == 1:
            return sum(self._here(store, part, progress) for part in self._parts)
        return self._elsewhere(store.location.path, progress)

    def _here(self, store: ChainStore, part: range, progress: Callable[[int], None]) -> int:
        def show(height: int) -> None:
            self._pending[part] = height + 1
            progress(1)

        return _verified(store, part, self._scope(part), show)

    def _scope(self, part: range) -> Scope:
        """Return the blocks of a part, and the one before it if it is in the range, too."""
        # Imported here, as other commands need no libraries of signatures.
        from ..backends.base.verify import Scope

        first = max(part.start - 1, self._heights.start)
        return Scope(first, part.stop - 1, self._plan.all_signatures)

    def _elsewhere(self, path: str, progress: Callable[[int], None]) -> int:
        count = 0
        with ProcessPoolExecutor(
            self._plan.jobs, get_context("spawn"), _leave_interrupts
        ) as processes:
            started = {
                processes.submit(_verify_part, path, part, self._scope(part)): part
                for part in self._parts
            }
            try:
                for done in as_completed(started):
                    found, error = done.result()
                    if error:
                        raise InvalidBlock(error)
                    del self._pending[started[done]]
                    count += found
                    progress(found)
            except BaseException:
                processes.shutdown(wait=False, cancel_futures=True)
                raise
        return count


def _verified(
    store: ChainStore, part: range, scope: Scope, progress: Callable[[int], None]
) -> int:
    """Verify the blocks of a scope; return the number of those that belong to a part."""
    count = 0

    def show(height: int) -> None:
        nonlocal count
        # Another process may prune blocks meanwhile, so count the blocks that are verified.
        if height in part:
            count += 1
            progress(height)

    store.verify_blocks(show, scope)
    return count


def _leave_interrupts() -> None:
    """Ignore interrupts in a process that verifies parts; the one that started it handles
    them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@cache
def _opened(path: str) -> ChainStore:
    from ..backends import open_store

    return open_store(path, read_only=True)


def _verify_part(path: str, part: range, scope: Scope) -> tuple[int, str]:
    """Return the number of verified blocks, and the error."""
    try:
        return _verified(_opened(path), part, scope, lambda height: None), ""
    except StoreError as error:
        return 0, str(error)
