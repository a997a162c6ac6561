"""Blocks below those that are stored: each is proven by the hash in the block above it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from ..backends.base.store import ChainStore, OlderBlock
from ..domain.block import NO_BLOCK, Header
from ..errors import InvalidBlock, NotFound, UpstreamRefused
from .chunks import Chunk, downwards, fetch_all, fetch_one
from .pool import Upstreams
from .reader import NoResults, ReadBlock, Reader

log = logging.getLogger("flask_noderpc.companion")

# CometBFT: state/store.go, valSetCheckpointInterval is 100,000; ours are closer together, as
# priorities can only be computed upwards, and those of a range have to be known at once.
_CHECKPOINT = 128

Progress = Callable[[int], None]
"""Called with each number of blocks that were stored."""


def fetch_older(
    reader: Reader, low: int, high: int, *, may_lack_results: bool = False
) -> list[OlderBlock]:
    """Return the blocks of a range, highest first, with the state that proves them."""
    heights = range(high, low - 1, -1)
    found = reader.blocks(heights, may_lack_results=may_lack_results)
    items = [_older(reader, each) for each in found]
    # Priorities are computed upwards, from the lowest height of each set.
    for position, item in enumerate(items):
        header = item.block.header
        neighbours = [each.block.header for each in items[max(0, position - 1) : position + 2]]
        if position == len(items) - 1:
            neighbours += _below(reader, header)
        if any(_has_other_set(header, each) for each in neighbours) and not item.validators:
            items[position] = with_validators(reader, item)
    return items


def _below(reader: Reader, header: Header) -> list[Header]:
    """Return the header below, if there is one and the upstream has it."""
    if header.last_block_id == NO_BLOCK:
        return []
    try:
        return [reader.header(header.height - 1)]
    except UpstreamRefused:
        return []


def _older(reader: Reader, found: ReadBlock) -> OlderBlock:
    results, height = found.results, found.height
    is_checkpoint = height % _CHECKPOINT == 0
    return OlderBlock(
        found.block,
        results,
        validators=reader.validators(height) if is_checkpoint else None,
        # What changed them is known from results alone.
        params=(
            reader.params(height)
            if results is None or results.consensus_param_updates is not None
            else None
        ),
        source=reader.name,
    )


def with_validators(reader: Reader, item: OlderBlock) -> OlderBlock:
    """Return the block with the set that signed it."""
    return replace(item, validators=reader.validators(item.block.header.height))


def _has_other_set(header: Header, above: Header) -> bool:
    return header.validators_hash != above.validators_hash


class History:
    """Fills a store downwards from its lowest block, or from its trusted one.

    ``unchecked`` are fields that the chain computes in its own way; ``ended`` ends it after a
    chunk.
    """

    def __init__(
        self,
        store: ChainStore,
        upstreams: Upstreams,
        jobs: int = 4,
        unchecked: frozenset[str] = frozenset(),
        ended: threading.Event | None = None,
    ) -> None:
        self._store, self._upstreams, self._jobs = store, upstreams, jobs
        self._unchecked = unchecked
        self._ended = ended or threading.Event()
        self._may_lack_results = False

    def fill(self, top: int, low: int, progress: Progress) -> int:
        """Store the blocks from ``top`` down to ``low``; return the lowest that was stored.

        That is above ``low`` where no upstream has the blocks below it any more.
        """
        lowest = top + 1
        chunks = fetch_all(self._upstreams, self._fetch, downwards(low, top), self._jobs)
        try:
            with closing(chunks):
                for chunk in chunks:
                    self._store_chunk(chunk, low)
                    lowest = chunk.range[0]
                    progress(chunk.range[1] - lowest + 1)
                    if self._ended.is_set():
                        break
        except UpstreamRefused as error:
            return self._fill_rest(lowest, low, error, progress)
        return lowest

    def _fetch(self, reader: Reader, low: int, high: int) -> list[OlderBlock]:
        return fetch_older(reader, low, high, may_lack_results=self._may_lack_results)

    def _fill_rest(
        self, lowest: int, low: int, error: UpstreamRefused, progress: Progress
    ) -> int:
        """Store what some upstream still has: blocks without results, and those above the
        height below which all have pruned."""
        if isinstance(error, NoResults):
            log.warning("%s; blocks below %d are stored without them", error, lowest)
            self._may_lack_results = True
            return self.fill(lowest - 1, low, progress)
        there = min(
            status.sync_info.earliest_block_height
            for status in self._upstreams.ask_all(lambda reader: reader.status())
        )
        if there <= low:
            raise error
        if there >= lowest:
            return lowest
        log.warning("the nodes have pruned the blocks below %d", there)
        return self.fill(lowest - 1, there, progress)

    def _store_chunk(self, chunk: Chunk[list[OlderBlock]], low: int) -> None:
        """Store a chunk; refuse the upstreams whose chunk does not fit, and ask others."""
        while True:
            try:
                self._store.backfill(*self._completed(chunk, low))
            except InvalidBlock as error:
                self._upstreams.refuse(chunk.reader.name, error.text)
                chunk = fetch_one(self._upstreams, self._fetch, chunk.range)
            else:
                return

    def _completed(self, chunk: Chunk[list[OlderBlock]], low: int) -> list[OlderBlock]:
        """Return the blocks with the sets that depend on what is stored and wanted."""
        items = [replace(item, unchecked=self._unchecked) for item in chunk.content]
        first, last = items[0], items[-1]
        if not first.validators and self._differs_from_above(first):
            items[0] = self._upstreams.attempt(lambda reader: with_validators(reader, first))
        if last.block.header.height == low and not items[-1].validators:
            items[-1] = self._upstreams.attempt(lambda reader: with_validators(reader, last))
        return items

    def _differs_from_above(self, item: OlderBlock) -> bool:
        header = item.block.header
        try:
            above = self._store.block_meta(header.height + 1).header
        except NotFound:
            # Below a trusted block alone, whose sets are known.
            return False
        return _has_other_set(header, above)
