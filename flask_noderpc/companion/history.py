"""Blocks below those that are stored: each is proven by the hash in the block above it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from ..backends.base.store import ChainStore, OlderBlock
from ..domain.block import NO_BLOCK, Header
from ..domain.genesis import ConsensusParams
from ..errors import (
    InvalidBlock,
    NotFound,
    UpstreamMismatch,
    UpstreamRefused,
    UpstreamUnavailable,
)
from .chunks import Chunk, downwards, fetch_all, fetch_one
from .light import check_set
from .pool import Upstreams
from .reader import NoResults, ReadBlock, Reader

log = logging.getLogger("flask_noderpc.companion")

# CometBFT: state/store.go, valSetCheckpointInterval is 100,000; ours are closer together, as
# priorities can only be computed upwards, and those of a range have to be known at once.
_CHECKPOINT = 128

Progress = Callable[[int], None]
"""Called with each number of blocks that were stored."""


def fetch_older(
    reader: Reader,
    low: int,
    high: int,
    *,
    unchecked: frozenset[str] = frozenset(),
    may_lack_results: bool = False,
) -> list[OlderBlock]:
    """Return the blocks of a range, highest first, with the state that proves them."""
    heights = range(high, low - 1, -1)
    found = reader.blocks(heights, may_lack_results=may_lack_results)
    items = _with_params(reader, [_older(reader, each, unchecked) for each in found])
    # Priorities are computed upwards, from the lowest height of each set.
    for position, item in enumerate(items):
        header = item.block.header
        neighbours = [each.block.header for each in items[max(0, position - 1) : position + 2]]
        if position == len(items) - 1:
            neighbours += _below(reader, header)
        is_checkpoint = header.height % _CHECKPOINT == 0
        if is_checkpoint or any(_has_other_set(header, each) for each in neighbours):
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


def _older(reader: Reader, found: ReadBlock, unchecked: frozenset[str]) -> OlderBlock:
    return OlderBlock(
        found.block,
        found.results,
        unchecked=unchecked,
        source=reader.name,
    )


def _with_params(reader: Reader, items: list[OlderBlock]) -> list[OlderBlock]:
    """Return the blocks, highest first, with the parameters where they may have changed.

    They are asked for at one height and computed upwards, as what changed them is known from
    results: the Cosmos SDK has an update in each block.
    """
    known: ConsensusParams | None = None
    found = []
    for item in reversed(items):
        results = item.results
        if results is None:
            found.append(replace(item, params=reader.params(item.block.header.height)))
            known = None
        elif (update := results.consensus_param_updates) is not None:
            params = known or reader.params(item.block.header.height)
            found.append(replace(item, params=params))
            known = params.updated(update)
        else:
            found.append(item)
    return found[::-1]


def with_validators(reader: Reader, item: OlderBlock) -> OlderBlock:
    """Return a block of this upstream with the set that signed it; raise ``UpstreamMismatch``
    for a set that is not that of its header."""
    header = item.block.header
    found = reader.validators(header.height)
    try:
        if "validators_hash" not in item.unchecked:
            check_set(found, header.validators_hash, header.height)
    except ValueError as error:
        raise UpstreamMismatch(reader.name, str(error)) from None
    return replace(item, validators=found)


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
        lowest, refusal = self._fill(top, low, progress)
        while refusal is not None:
            low = self._lowest_there(low, lowest, refusal)
            if low == lowest:
                break
            lowest, refusal = self._fill(lowest - 1, low, progress)
        return lowest

    def _fill(
        self, top: int, low: int, progress: Progress
    ) -> tuple[int, UpstreamRefused | None]:
        """Store a range as far as the upstreams have it; return the lowest height, and the
        refusal of the next one."""
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
            return lowest, error
        return lowest, None

    def _lowest_there(self, low: int, high: int, refusal: UpstreamRefused) -> int:
        """Return the lowest height that can be filled, or ``high`` if none below it can.

        By bisection: what ``status`` says of it is wrong on some nodes.
        """
        if isinstance(refusal, NoResults) and not self._may_lack_results:
            log.warning("%s; blocks below %d are stored without them", refusal, high)
            self._may_lack_results = True
            return low
        there = min(self._upstreams.ask_all(lambda reader: lowest_block(reader, low, high)))
        if there == low:
            # They have it, and answer otherwise when they are asked for more.
            raise refusal
        if there < high:
            log.warning("the nodes have pruned the blocks below %d", there)
        return there

    def _fetch(self, reader: Reader, low: int, high: int) -> list[OlderBlock]:
        return fetch_older(
            reader,
            low,
            high,
            unchecked=self._unchecked,
            may_lack_results=self._may_lack_results,
        )

    def _store_chunk(self, chunk: Chunk[list[OlderBlock]], low: int) -> None:
        """Store a chunk; refuse the upstreams whose chunk does not fit, and ask others."""
        deadline = self._upstreams.deadline()
        while True:
            try:
                self._store.backfill(*self._completed(chunk, low))
            except (InvalidBlock, UpstreamMismatch) as error:
                self._upstreams.refuse(chunk.reader.name, error.text)
            except UpstreamUnavailable as error:
                self._upstreams.wait(error, deadline)
            else:
                return
            chunk = fetch_one(self._upstreams, self._fetch, chunk.range)

    def _completed(self, chunk: Chunk[list[OlderBlock]], low: int) -> list[OlderBlock]:
        """Return the blocks with the sets that depend on what is stored and wanted.

        Only the node that a block is from is asked: its header is not proven yet.
        """
        items = list(chunk.content)
        if not items[0].validators and self._differs_from_above(items[0]):
            items[0] = with_validators(chunk.reader, items[0])
        if items[-1].block.header.height == low and not items[-1].validators:
            items[-1] = with_validators(chunk.reader, items[-1])
        return items

    def _differs_from_above(self, item: OlderBlock) -> bool:
        header = item.block.header
        try:
            above = self._store.block_meta(header.height + 1).header
        except NotFound:
            # Below a trusted block alone, whose sets are known.
            return False
        return _has_other_set(header, above)


def lowest_block(reader: Reader, low: int, high: int) -> int:
    """Return the lowest height from ``low`` on that an upstream has, at most ``high``."""
    while low < high:
        middle = (low + high) // 2
        try:
            reader.block(middle)
        except (UpstreamRefused, UpstreamMismatch):
            # Some answer with the blocks that they have.
            low = middle + 1
        else:
            high = middle
    return high
