"""Stores that begin in the middle of a chain, and are filled from there."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.base.new_blocks import CommittedBlock, OlderBlock

BLOCKS, TRUSTED = 240, 120


def begin(path: Path, whole: Path) -> None:
    """Make a store above the trusted block of a chain."""
    with closing(SQLiteBackend(path)) as store, closing(SQLiteBackend(whole)) as chain:
        first, second, third = (chain.reads.validators(TRUSTED + n) for n in range(3))
        store.init_at(
            chain.reads.chain_id(),
            1,
            chain.reads.block_meta(TRUSTED).header,
            chain.reads.commit(TRUSTED),
            (first, second, third),
            chain.reads.consensus_params(TRUSTED + 1),
        )


def check(store: SQLiteBackend, chain: SQLiteBackend) -> None:
    """Check that a store verifies, and accepts the next block on either side."""
    base, latest = store.reads.base_height(), store.reads.latest_height()
    if latest:
        assert store.verify() == latest - base + 1
    if latest < BLOCKS:
        height = (latest or TRUSTED) + 1
        block, commit = chain.reads.block(height)[1], chain.reads.commit(height)
        store.append_block(CommittedBlock(block, commit, chain.reads.results(height)))
    if base != 1:
        height = (base or TRUSTED + 1) - 1
        block, results = chain.reads.block(height)[1], chain.reads.results(height)
        store.backfill(OlderBlock(block, results, chain.reads.validators(height)))
