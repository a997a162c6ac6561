"""Blocks on their way into the tables. What can be is computed before the writer is held; then
they are written together: a statement for many takes less time than one for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

from ...concurrency import next_turn
from ...domain.abci import BlockResults
from ...domain.block import Block, BlockMeta, Commit
from ...protocol.comet import hashes
from ...protocol.comet.hashes import BlockHashes
from ..base.new_blocks import BlockWithoutResults, CommittedBlock, OlderBlock
from . import block_writes, evidence, hits, index
from .block_writes import BlockRow, PackedSlice, Provenance
from .connection import Connection
from .hits import BlockTxs
from .index_steps import weight
from .packed.blocks import place

B = TypeVar("B", CommittedBlock, BlockWithoutResults, OlderBlock)


class Prepared(NamedTuple, Generic[B]):
    """A block with its hashes, and the rows of its transactions."""

    item: B
    hashes: BlockHashes
    slices: Sequence[PackedSlice]


def prepare(items: Iterable[B]) -> list[Prepared[B]]:
    """Compute the hashes and rows of blocks."""
    found = []
    for item in items:
        if _is_large(item.block):
            # No request is answered in the up to 20 ms that such a block takes.
            next_turn()
        found.append(Prepared(item, hashes.block_hashes(item.block), _slices(item)))
    return found


def _is_large(block: Block) -> bool:
    return bool(block.txs) or len(block.last_commit.signatures) > 1


def _slices(
    item: CommittedBlock | BlockWithoutResults | OlderBlock,
) -> Sequence[PackedSlice]:
    results = item.results
    if results is not None and len(results.tx_results) != len(item.block.txs):
        # It is refused later.
        return ()
    return tuple(block_writes.slices(item.block, results))


# A block takes as long as so many attributes, even if it has no transactions.
_OF_A_BLOCK = 50


class NewBlock(NamedTuple):
    """A block that is to be written."""

    meta: BlockMeta
    block: Block
    tx_hashes: Sequence[bytes]
    slices: Sequence[PackedSlice]
    results: BlockResults | None
    provenance: Provenance
    is_indexed: bool = True

    @property
    def height(self) -> int:
        """Its height."""
        return self.meta.header.height


class Batch:
    """Blocks and commits until they are written; ``most`` is the weight of a full one."""

    def __init__(self, at: Connection, most: int) -> None:
        self.at = at
        self._most, self._weight = most, 0
        self._blocks: list[NewBlock] = []
        self._commits: dict[int, Commit] = {}

    @property
    def is_full(self) -> bool:
        """True if it is to be written, for the memory and the time that it takes."""
        return self._weight >= self._most

    @property
    def shown(self) -> str:
        """Its heights, for errors."""
        heights = [each.height for each in self._blocks]
        low, high = min(heights), max(heights)
        return f"block {low}" if low == high else f"blocks {low} to {high}"

    def add(self, found: NewBlock) -> None:
        """Add a block."""
        block_writes.check_place(found.height, found.meta.tx_count)
        self._blocks.append(found)
        self._weight += _OF_A_BLOCK
        if found.results is not None:
            self._weight += weight(found.results.tx_results)

    def add_commit(self, commit: Commit) -> None:
        """Add a commit, which replaces that of its height."""
        self._commits[commit.height] = commit

    def has_commit(self, height: int) -> bool:
        """Return true if it has the commit of a height."""
        return height in self._commits

    def write(self) -> None:
        """Write what was added; then it is empty."""
        blocks, commits = self._blocks, list(self._commits.values())
        heights = [each.height for each in blocks] + [each.height for each in commits]
        if heights:
            self.at.engine.make_room(self.at, min(heights), max(heights))
        if blocks:
            self._write(blocks)
        if commits:
            block_writes.write_commits(self.at, commits)
        self._blocks, self._commits, self._weight = [], {}, 0

    def _write(self, found: Sequence[NewBlock]) -> None:
        at = self.at
        block_events, tx_events = _index(at, found)
        block_writes.write_blocks(
            at,
            [
                BlockRow(
                    each.meta, each.results, block_events.get(each.height), each.provenance
                )
                for each in found
            ],
        )
        block_writes.write_slices(at, chain.from_iterable(each.slices for each in found))
        with_results = [(each, each.results) for each in found if each.results is not None]
        block_writes.write_txs(
            at,
            [
                row
                for each, results in with_results
                for row in block_writes.tx_rows(
                    each.height, each.tx_hashes, results.tx_results, tx_events
                )
            ],
        )
        hits.write(
            at,
            [
                BlockTxs(each.height, each.block.txs, results.tx_results)
                for each, results in with_results
            ],
        )
        for each in found:
            evidence.write(at, each.height, each.block.evidence)


def _index(
    at: Connection, found: Sequence[NewBlock]
) -> tuple[dict[int, str], dict[int, str | None]]:
    """Index blocks; return the texts of the columns ``events``, by height and by place."""
    indexed = {
        each.height: each.results
        for each in found
        if each.is_indexed and each.results is not None
    }
    texts = index.write_blocks(
        at, [(height, results.block_events) for height, results in indexed.items()]
    )
    known = [(each.tx_hashes, each.results) for each in found if each.results is not None]
    txs = [each for each in index.to_index(at, known) if each[0] in indexed]
    places = [place(height, position) for height, position, _ in txs]
    tx_texts = index.write_results(at, txs)
    return (
        dict(zip(indexed, texts, strict=True)),
        dict(zip(places, tx_texts, strict=True)),
    )
