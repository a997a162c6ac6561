"""Searching, without an index: one block after another, within the limits allowed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

from ...domain.abci import BlockResults
from ...domain.search import FoundHeights, FoundTxs, Page, Search, SearchLimits, TxRecord
from ...errors import SearchTooCostly, TxNotFound
from ...protocol.comet.hashes import tx_hash, tx_proof
from ...protocol.ethereum.aliases import searchable
from .reads import ChainReads

T = TypeVar("T")


class SearchedChain(ChainReads):
    """A chain that finds blocks and transactions by the attributes of their events.

    The default looks at one block after another, which any backend can; one with an index
    of its own does better.
    """

    def search_txs(
        self, search: Search, page: Page, limits: SearchLimits, prove: bool = False
    ) -> FoundTxs:
        """The transactions found, with proofs where asked for; raise
        :exc:`~flask_noderpc.errors.SearchTooCostly`."""
        return scan_txs(self, search, page, limits, prove)

    def search_blocks(self, search: Search, page: Page, limits: SearchLimits) -> FoundHeights:
        """The heights of the blocks found; raise ``SearchTooCostly``."""
        return scan_blocks(self, search, page, limits)


def scan_txs(
    blocks: ChainReads, search: Search, page: Page, limits: SearchLimits, prove: bool
) -> FoundTxs:
    """The transactions found in a page."""
    found = [
        (height, index)
        for height, results in _results(blocks, search, limits)
        for index, result in enumerate(results.tx_results)
        if search.matches(searchable(result.events)) and not _is_repeat(blocks, height, index)
    ]
    places = _cut(found, page)
    remaining_bytes = limits.size
    records = []
    for height, index in places:
        records.append(_record(blocks, height, index, prove))
        remaining_bytes -= len(records[-1].tx)
        if remaining_bytes < 0:
            raise SearchTooCostly.by_size(limits.size)
    return FoundTxs(len(found), tuple(records))


def scan_blocks(
    blocks: ChainReads, search: Search, page: Page, limits: SearchLimits
) -> FoundHeights:
    """The heights of blocks found in a page."""
    found = [
        height
        for height, results in _results(blocks, search, limits)
        if search.matches(results.begin_block_events + results.end_block_events)
    ]
    return FoundHeights(len(found), tuple(_cut(found, page)))


def _results(
    blocks: ChainReads, search: Search, limits: SearchLimits
) -> Iterator[tuple[int, BlockResults]]:
    deadline = time.monotonic() + limits.seconds
    rows = limits.rows
    low, high = max(search.low, blocks.base_height()), min(search.high, blocks.latest_height())
    for height in range(max(low, 1), high + 1):
        results = blocks.results(height)
        rows -= 1 + len(results.tx_results)
        if rows < 0:
            raise SearchTooCostly.by_rows(limits.rows)
        if time.monotonic() > deadline:
            raise SearchTooCostly.by_time(limits.seconds)
        yield height, results


def _cut(found: list[T], page: Page) -> Sequence[T]:
    ordered = found[::-1] if page.newest_first else found
    return ordered[page.offset : page.offset + page.limit]


def _is_repeat(blocks: ChainReads, height: int, index: int) -> bool:
    """Return true for a failure after the same transaction had succeeded, which hides it."""
    if blocks.results(height).tx_results[index].code == 0:
        return False
    try:
        best = blocks.tx(tx_hash(blocks.block(height)[1].txs[index]))
    except TxNotFound:
        return False
    return best.result.code == 0 and (best.height, best.index) < (height, index)


def _record(blocks: ChainReads, height: int, index: int, prove: bool) -> TxRecord:
    of_block = blocks.block(height)[1].txs
    proof = tx_proof(of_block, index) if prove else None
    result = blocks.results(height).tx_results[index]
    return TxRecord(height, index, of_block[index], result, proof)
