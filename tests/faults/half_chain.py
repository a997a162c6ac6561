"""Stores that begin in the middle of a chain, and are filled from there on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.base.store import CommittedBlock, OlderBlock

BLOCKS, TRUSTED = 240, 120


def begin(path: Path, whole: Path) -> None:
    """Make a store above the trusted block of a chain."""
    with closing(SQLiteBackend(path)) as store, closing(SQLiteBackend(whole)) as chain:
        first, second, third = (chain.validators(TRUSTED + n) for n in range(3))
        store.init_at(
            chain.chain_id(),
            1,
            chain.block_meta(TRUSTED).header,
            chain.commit(TRUSTED),
            (first, second, third),
            chain.consensus_params(TRUSTED + 1),
        )


def check(store: SQLiteBackend, chain: SQLiteBackend) -> None:
    """Check that a store verifies, and takes the next block on either side."""
    base, latest = store.base_height(), store.latest_height()
    if latest:
        assert store.verify() == latest - base + 1
    if latest < BLOCKS:
        height = (latest or TRUSTED) + 1
        block, commit = chain.block(height)[1], chain.commit(height)
        store.append_block(CommittedBlock(block, commit, chain.results(height)))
    if base != 1:
        height = (base or TRUSTED + 1) - 1
        block, results = chain.block(height)[1], chain.results(height)
        store.backfill(OlderBlock(block, results, chain.validators(height)))
