"""Blocks with what is computed of them before the writer is held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from ...concurrency import next_turn
from ...domain.block import Block
from ...protocol.comet import hashes
from ...protocol.comet.hashes import BlockHashes
from ..base.new_blocks import BlockWithoutResults, CommittedBlock, OlderBlock
from . import block_writes

B = TypeVar("B", CommittedBlock, BlockWithoutResults, OlderBlock)


class Prepared(NamedTuple, Generic[B]):
    """A block with its hashes, and the rows of its transactions."""

    item: B
    hashes: BlockHashes
    slices: Sequence[block_writes.PackedSlice]


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
) -> Sequence[block_writes.PackedSlice]:
    results = item.results
    if results is not None and len(results.tx_results) != len(item.block.txs):
        # It is refused later.
        return ()
    return tuple(block_writes.slices(item.block, results))
