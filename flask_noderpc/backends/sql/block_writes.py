"""Writes of blocks, their commits, results and transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...domain.abci import BlockResults, ExecTxResult
from ...domain.block import Block, BlockMeta, Commit
from ...errors import InvalidBlock
from . import state, votes
from .blocks import LAST_HEIGHT
from .blocks import results as stored_results
from .connection import Connection
from .packed import blocks as packed
from .packed import results as packed_results
from .packed.results import LAST_POSITION, place


class Provenance(NamedTuple):
    """Marks of a block that is stored."""

    unchecked: frozenset[str] = frozenset()
    """Fields that this chain computes in its own way."""
    unverified: frozenset[str] = frozenset()
    """Fields that were not looked at."""
    source: str = ""


VERIFIED = Provenance()


def check_place(height: int, tx_count: int) -> None:
    """Raise :exc:`InvalidBlock` for a block that has no place in the store."""
    if not 0 < height <= LAST_HEIGHT or tx_count > LAST_POSITION + 1:
        raise InvalidBlock(
            f"block {height}: the store has heights from 1 to {LAST_HEIGHT}, and"
            f" {LAST_POSITION + 1} transactions in each"
        )


PackedSlice = tuple[int, bytes]


def slices(block: Block, results: BlockResults | None) -> Iterator[PackedSlice]:
    """Yield the rows of a block's transactions."""
    found = None if results is None else results.tx_results
    return packed_results.slices(block.header.height, block.txs, found)


def write(
    at: Connection,
    meta: BlockMeta,
    slices: Iterable[PackedSlice],
    results: BlockResults | None,
    events: str | None,
    provenance: Provenance = VERIFIED,
) -> None:
    """Write a block with its results, without its index; ``slices`` are its transactions, and
    ``events`` is what the index returned for it."""
    header = meta.header
    check_place(header.height, meta.tx_count)
    at.execute(
        "INSERT INTO blocks (height, hash, time, proposer, size, tx_count, header, events,"
        " unchecked, unverified, source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            header.height,
            meta.block_id.hash,
            header.time,
            header.proposer_address,
            meta.size,
            meta.tx_count,
            packed.pack_meta(meta),
            events,
            " ".join(sorted(provenance.unchecked)),
            " ".join(sorted(provenance.unverified)),
            provenance.source,
        ),
    )
    at.execute(
        "INSERT INTO results (height, results) VALUES (?, ?)",
        (header.height, results and packed_results.pack_results(results)),
    )
    write_slices(at, slices)


def write_slices(at: Connection, slices: Iterable[PackedSlice]) -> None:
    """Write the transactions of a block."""
    at.executemany("INSERT INTO tx_slices (place, txs) VALUES (?, ?)", slices)


def write_app_hash(at: Connection, height: int, app_hash: bytes) -> None:
    """Write the app hash that the following header has into results that lack it."""
    found = stored_results(at, height)
    if found is not None and not found.app_hash:
        row = packed_results.pack_results(replace(found, app_hash=app_hash))
        at.execute("UPDATE results SET results = ? WHERE height = ?", (row, height))


def write_txs(
    at: Connection,
    height: int,
    tx_hashes: Sequence[bytes],
    tx_results: Sequence[ExecTxResult],
    events: Sequence[str | None],
    first: int = 0,
) -> None:
    """Write the look-up rows of a block's transactions from a position on; ``events`` is what
    the index returned for each."""
    at.executemany(
        "INSERT INTO txs (place, hash, code, gas_wanted, gas_used, events)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [
            (place(height, position), tx_hash, r.code, r.gas_wanted, r.gas_used, indexed)
            for position, (tx_hash, r, indexed) in enumerate(
                zip(tx_hashes, tx_results, events, strict=True), first
            )
        ],
    )


def write_commit(at: Connection, commit: Commit) -> None:
    """Write the precommits for a block, in place of those that were stored."""
    addresses = state.addresses(at, commit.height)
    at.execute(
        'INSERT INTO commits (height, "commit") VALUES (?, ?)'
        ' ON CONFLICT (height) DO UPDATE SET "commit" = excluded."commit"',
        (commit.height, packed.pack_commit(commit, addresses)),
    )
    votes.write(at, commit, addresses)
