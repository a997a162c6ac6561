"""Backfill of blocks below the stored ones; the hash in each block proves the block below
it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..backends.base.new_blocks import OlderBlock
from ..backends.sql.store import ChainStore
from ..domain.block import NO_BLOCK, Header
from ..domain.genesis import ConsensusParams
from ..errors import (
    InvalidBlock,
    NotFound,
    UpstreamError,
    UpstreamMismatch,
    UpstreamRefused,
    UpstreamUnavailable,
)
from .chunks import FINAL, Chunk, Range, are_down, descending_ranges, fetch_all, fetch_one
from .gaps import BLOCK, RESULTS, Gaps, reason_of
from .http import Unusable
from .light import check_set
from .pool import Upstreams
from .reader import NoResults, ReadBlock, Reader

log = logging.getLogger("flask_noderpc.companion")

# Store validators at least at every 128th height: proposer priorities can only be computed
# upwards from stored ones. CometBFT's valSetCheckpointInterval (state/store.go) is 100,000.
_CHECKPOINT = 128
# Number of chunks that are stored together by an import in bulk.
_BULK = 5
# Maximum number of gaps that are retried before the backfill continues.
_MAX_RETRIES = 20

Progress = Callable[[int], None]
"""A function that is called with the number of blocks just stored."""


def fetch_older(
    reader: Reader,
    low: int,
    high: int,
    *,
    unchecked: frozenset[str] = frozenset(),
) -> list[OlderBlock]:
    """Return the blocks of a range, highest first, with results, validators and parameters."""
    heights = range(high, low - 1, -1)
    return with_state(reader, reader.blocks(heights), unchecked)


def with_state(
    reader: Reader, found: Sequence[ReadBlock], unchecked: frozenset[str]
) -> list[OlderBlock]:
    """Return blocks of a range, highest first, with validators and parameters at each height
    where they change."""
    items = _with_params(reader, [_older(reader, each, unchecked) for each in found])
    # A set is needed where it differs from the one above or below: at the lowest height of
    # each set, from which priorities are computed upwards.
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
    """Return a list with the next lower header, or an empty list if no such header is
    available."""
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
        precomputed=found.precomputed,
    )


def _with_params(reader: Reader, items: list[OlderBlock]) -> list[OlderBlock]:
    """Return the blocks, highest first, with consensus parameters where these may have
    changed.

    Parameters are read at one height and computed upwards from the updates in the results, as
    the Cosmos SDK returns an update in each block.
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
    """Return a block of this upstream with its validator set; raise ``UpstreamMismatch`` if
    the set does not have the hash in the block's header."""
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


@dataclass(slots=True)
class _FetchedRange:
    """Result of fetching a range of heights."""

    chunks: list[Chunk[list[OlderBlock]]]
    """Blocks, highest first."""
    gaps: list[tuple[int, str, str]] = field(default_factory=list)
    """Height, missing part (block or results) and reason of all data that no node returned."""
    error: UpstreamError | None = None
    """Error at which fetching stopped; the heights from there down are missing."""


class History:
    """Backfills a store from its lowest block, or from its trusted one.

    A block whose results no node returns is stored without them, and its height is recorded in
    ``gaps``. ``unchecked`` names fields that the chain computes in its own way. The
    backfill stops after the current chunk if ``ended`` is set.
    """

    def __init__(
        self,
        store: ChainStore,
        upstreams: Upstreams,
        jobs: int = 4,
        unchecked: frozenset[str] = frozenset(),
        ended: threading.Event | None = None,
        *,
        in_bulk: bool = False,
    ) -> None:
        self._store, self._upstreams, self._jobs = store, upstreams, jobs
        self._group = _BULK if in_bulk else 1
        self._unchecked = unchecked
        self._ended = ended or threading.Event()
        self._are_results_gone = False

    @cached_property
    def gaps(self) -> Gaps:
        """Record of the store's gaps; the store must have a chain."""
        return Gaps(self._store)

    def has_ended(self) -> bool:
        """Return true if the backfill must stop."""
        return self._ended.is_set()

    def fill(self, top: int, low: int, progress: Progress) -> int:
        """Store the blocks from ``top`` down to ``low``; return the lowest stored height.

        The lowest stored height is above ``low`` if no upstream has the blocks below it.
        """
        lowest, refusal = self._fill(top, low, progress)
        while refusal is not None:
            low = self._lowest_there(low, lowest, refusal)
            if low == lowest:
                break
            lowest, refusal = self._fill(lowest - 1, low, progress)
        return lowest

    def retry(self, *, at_once: bool = False) -> None:
        """Ask again for missing results whose retry is due, or with ``at_once`` for any.

        At most 20 heights are retried. The head is not: no stored header proves its results
        yet.
        """
        head = self._store.reads.latest_height()
        due = [each for each in self.gaps.due(at_once=at_once) if each < head]
        for height in due[:_MAX_RETRIES]:
            if self._ended.is_set():
                return
            try:
                chunk = fetch_one(
                    self._upstreams, self._fetch, (height, height), final=(UpstreamError,)
                )
                self._store_chunk(chunk, 0)
            except (UpstreamUnavailable, UpstreamRefused) as error:
                self.gaps.note(height, RESULTS, reason_of(error))
            else:
                self.gaps.remove(height)

    def _fill(
        self, top: int, low: int, progress: Progress
    ) -> tuple[int, UpstreamRefused | None]:
        """Store a range as far as the upstreams have it; return the lowest stored height, and
        the refusal of the height below it (``None`` if all were stored)."""
        lowest = top + 1
        parts = fetch_all(self._fetch_range, descending_ranges(low, top), self._jobs)
        try:
            with closing(parts):
                for group in self._groups(parts):
                    for low_height, high in self._stored(group, low):
                        lowest = low_height
                        progress(high - lowest + 1)
        except UpstreamRefused as error:
            return lowest, error
        return lowest, None

    def _groups(
        self, parts: Iterable[_FetchedRange]
    ) -> Iterator[list[Chunk[list[OlderBlock]]]]:
        """Yield the chunks of fetched ranges in groups to be stored together; raise the error
        at which fetching stopped after the last group."""
        group: list[Chunk[list[OlderBlock]]] = []
        error: UpstreamError | None = None
        try:
            for part in parts:
                # Record the gaps before the blocks, so that none is lost if the process is
                # killed.
                for gap in part.gaps:
                    self.gaps.note(*gap)
                group += part.chunks
                error = part.error
                if error is not None or self._ended.is_set():
                    break
                if len(group) >= self._group:
                    yield group
                    group = []
        except UpstreamError as raised:
            error = raised
        if group:
            yield group
        if error is not None:
            raise error

    def _lowest_there(self, low: int, high: int, refusal: UpstreamRefused) -> int:
        """Return the lowest height that the nodes have; ``high`` if they have nothing below
        it.

        The height is found by bisection, as some nodes report a wrong one in ``status``.
        """
        there = min(self._upstreams.ask_all(lambda reader: lowest_block(reader, low, high)))
        if there == low:
            # The nodes return the block now, but refused it before: record a gap instead of
            # looping.
            reason = f"block of height {high - 1}: {reason_of(refusal)}"
            self.gaps.note(high - 1, BLOCK, reason)
            raise UpstreamRefused(refusal.name, refusal.code, reason)
        if there < high:
            log.warning("the nodes have pruned the blocks below %d", there)
        return there

    def _fetch_range(self, wanted: Range) -> _FetchedRange:
        """Fetch a range at once; if that fails at all nodes, fetch each height separately."""
        gaps: list[tuple[int, str, str]] = []
        fetch = self._fetch
        if self._are_results_gone and (error := self._results_error(wanted[1])):
            fetch = self._fetch_blocks
            gaps = _gaps(wanted, error)
        try:
            chunk = fetch_one(self._upstreams, fetch, wanted, (Unusable, NoResults))
        except (UpstreamUnavailable, UpstreamRefused) as error:
            if are_down(self._upstreams, error):
                raise
            return self._one_by_one(wanted)
        return _FetchedRange([chunk], gaps)

    def _results_error(self, height: int) -> UpstreamError | None:
        """Return the error if still no node has the results of a height, or ``None`` if one
        has them."""
        try:
            fetch_one(self._upstreams, self._fetch, (height, height), FINAL)
        except (UpstreamUnavailable, UpstreamRefused) as error:
            return error
        self._are_results_gone = False
        return None

    def _one_by_one(self, wanted: Range) -> _FetchedRange:
        """Fetch each height of a range separately; where results fail, fetch the block
        alone."""
        found = _FetchedRange([])
        low, high = wanted
        errors: list[UpstreamError] = []
        for height in range(high, low - 1, -1):
            if self._ended.is_set():
                return found
            alone = height, height
            try:
                found.chunks.append(fetch_one(self._upstreams, self._fetch_alone, alone, FINAL))
                errors.clear()
                continue
            except (UpstreamUnavailable, UpstreamRefused) as error:
                errors.append(error)
            if are_down(self._upstreams, errors[-1]):
                found.error = errors[-1]
                return found
            try:
                # Wait for unreachable nodes, which may have the block.
                chunk = fetch_one(self._upstreams, self._fetch_block_alone, alone, (Unusable,))
                found.chunks.append(chunk)
            except (UpstreamUnavailable, UpstreamRefused) as error:
                found.error = error
                if not (isinstance(error, UpstreamRefused) or are_down(self._upstreams, error)):
                    found.gaps.append((height, BLOCK, reason_of(error)))
                return found
            found.gaps.append((height, RESULTS, reason_of(errors[-1])))
        if len(errors) > 1:
            self._leave_out_results(found, errors, low)
        return found

    def _leave_out_results(
        self, found: _FetchedRange, errors: Sequence[UpstreamError], low: int
    ) -> None:
        """Stop asking for results of lower heights, after ``errors`` at the last heights of a
        range.

        ``low`` is the lowest of these heights. If the nodes discard results, the heights are
        not recorded as gaps, as a retry would not help.
        """
        if all(isinstance(error, NoResults) for error in errors):
            gaps = found.gaps[-len(errors) :]
            try:
                # Wait for unreachable nodes, which may have the results.
                fetch_one(self._upstreams, self._fetch, (low, low), (Unusable,))
                return
            except NoResults as error:
                log.warning(
                    "%s; block %d and all below are stored without results", error, gaps[0][0]
                )
                del found.gaps[-len(errors) :]
            except UpstreamUnavailable as error:
                if not isinstance(error, Unusable):
                    del found.chunks[-len(errors) :], found.gaps[-len(errors) :]
                    found.error = error
                    return
        self._are_results_gone = True

    def _fetch(self, reader: Reader, low: int, high: int) -> list[OlderBlock]:
        return fetch_older(reader, low, high, unchecked=self._unchecked)

    def _fetch_alone(self, reader: Reader, low: int, high: int) -> list[OlderBlock]:
        """Return a block with its validators, as it may become the store's lowest block."""
        return _with_sets(reader, self._fetch(reader, low, high))

    def _fetch_blocks(self, reader: Reader, low: int, high: int) -> list[OlderBlock]:
        """Return blocks without their results."""
        found = [ReadBlock(*each, None) for each in reader.blocks_without_results(low, high)]
        return with_state(reader, found, self._unchecked)

    def _fetch_block_alone(self, reader: Reader, low: int, high: int) -> list[OlderBlock]:
        """Return a block with its validators, but without its results."""
        return _with_sets(reader, self._fetch_blocks(reader, low, high))

    def _stored(self, chunks: Sequence[Chunk[list[OlderBlock]]], low: int) -> Iterator[Range]:
        """Store chunks together, or one by one if one of them is refused; yield the ranges that
        are stored."""
        are_stored = len(chunks) > 1 and self._are_stored_together(chunks, low)
        for chunk in chunks:
            if not are_stored:
                self._store_chunk(chunk, low)
            yield chunk.range

    def _are_stored_together(self, chunks: Sequence[Chunk[list[OlderBlock]]], low: int) -> bool:
        items: list[OlderBlock] = []
        try:
            for chunk in chunks:
                above = items[-1].block.header if items else None
                items += self._with_missing_sets(chunk, low, above)
            self._store.backfill(*items, in_bulk=True)
        except (InvalidBlock, UpstreamError) as error:
            log.debug("blocks are stored chunk by chunk: %s", error)
            return False
        return True

    def _store_chunk(self, chunk: Chunk[list[OlderBlock]], low: int) -> None:
        """Store a chunk; if it contradicts the stored chain, refuse its upstream and ask
        another."""
        deadline = self._upstreams.deadline()
        while True:
            try:
                self._store.backfill(*self._with_missing_sets(chunk, low))
            except (InvalidBlock, UpstreamMismatch) as error:
                self._upstreams.refuse(chunk.reader.name, error.text)
            except UpstreamUnavailable as error:
                self._upstreams.wait(error, deadline)
            else:
                return
            chunk = fetch_one(self._upstreams, self._fetch, chunk.range)

    def _with_missing_sets(
        self, chunk: Chunk[list[OlderBlock]], low: int, above: Header | None = None
    ) -> list[OlderBlock]:
        """Return the chunk's blocks, with two missing validator sets added: the highest
        block's, if the set ``above`` it, by default the stored one, differs, and the set of
        block ``low``.

        Ask only the node that sent the chunk: its headers are not verified yet, so another
        node's correct set might not match them.
        """
        items = list(chunk.content)
        if not items[0].validators and self._differs_from_above(items[0], above):
            items[0] = with_validators(chunk.reader, items[0])
        if items[-1].block.header.height == low and not items[-1].validators:
            items[-1] = with_validators(chunk.reader, items[-1])
        return items

    def _differs_from_above(self, item: OlderBlock, above: Header | None) -> bool:
        header = item.block.header
        try:
            above = above or self._store.reads.block_meta(header.height + 1).header
        except NotFound:
            # The header above is only missing for the trusted block, whose sets are stored.
            return False
        return _has_other_set(header, above)


def _with_sets(reader: Reader, items: Sequence[OlderBlock]) -> list[OlderBlock]:
    return [item if item.validators else with_validators(reader, item) for item in items]


def _gaps(wanted: Range, error: UpstreamError) -> list[tuple[int, str, str]]:
    """Return a gap for each height of a range without results, or an empty list if the nodes
    discard results, as a retry would not help."""
    if isinstance(error, NoResults):
        return []
    low, high = wanted
    return [(height, RESULTS, reason_of(error)) for height in range(high, low - 1, -1)]


def lowest_block(reader: Reader, low: int, high: int) -> int:
    """Return the lowest block that an upstream has from ``low`` to ``high``; ``high`` if
    none."""
    while low < high:
        middle = (low + high) // 2
        try:
            reader.block(middle)
        except (UpstreamRefused, UpstreamMismatch):
            # Some nodes return another block instead of an error if they have pruned this one.
            low = middle + 1
        else:
            high = middle
    return high
