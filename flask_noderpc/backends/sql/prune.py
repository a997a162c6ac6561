"""Remove blocks: the oldest ones, a few at a time (pruning), or the latest ones (rewind)."""

from __future__ import annotations

import time

from ...errors import NotSupported, StoreError
from ..base.application import Changes
from . import blocks, chain, hits, index, index_steps, state
from .connection import Connection
from .values import write_changes

# Maximum blocks and seconds of a pruning transaction. Other writers have to wait for it; the
# commit takes about as long again.
_MAX_BLOCKS, _STEP_S = 30, 0.02
# Pruning in bulk has longer transactions, and takes less processor time for a block. Blocks
# with up to so many index entries in all are removed together.
_MAX_BLOCKS_IN_BULK, _BULK_STEP_S, _ENTRIES_IN_BULK = 3_000, 1.0, 100_000
# Number of blocks that a transaction first removes together, and maximum of their
# transactions and of their index entries for each block.
_FEW_BLOCKS, _TXS_A_BLOCK, _ENTRIES_A_BLOCK = 5, 10, 400

# Number of heights below the lowest block whose rows each table keeps: the lowest block
# contains the commit of its parent.
_BELOW = (
    ("blocks", 0),
    ("results", 0),
    ("evidence", 0),
    ("commits", 1),
    ("missed_votes", 1),
)
_PLACES = ("txs", "tx_slices")
# Further tables whose rows the engine may drop by itself, in whole partitions.
_DROPPED = ("commits",)


def prune_some(at: Connection, base: int, *, in_bulk: bool) -> int | None:
    """Remove some blocks below a height, oldest first, ``in_bulk`` in a longer transaction;
    return the number removed, or ``None`` if a large block was only partly removed (the next
    call continues).

    The last block is never removed.
    """
    max_blocks, step_s, entries = _MAX_BLOCKS, _STEP_S, 0
    if in_bulk:
        max_blocks, step_s, entries = _MAX_BLOCKS_IN_BULK, _BULK_STEP_S, _ENTRIES_IN_BULK
    dropped_below = at.engine.dropped_below(at, base)
    began, removed, most = time.monotonic(), 0, _FEW_BLOCKS
    while removed < max_blocks and (heights := _oldest(at, base, most)):
        few = _few(at, heights, entries)
        if few:
            _remove(at, few, dropped_below)
        else:
            index_steps.unindex_some(at, heights[0])
        removed += len(few)
        elapsed = time.monotonic() - began
        if elapsed > step_s:
            if not removed:
                return None
            break
        # Next remove as many blocks as fit into the remaining time, as each statement for many
        # blocks costs little more than one for a few.
        fitting = int(removed * (step_s / max(elapsed, 0.0001) - 1))
        most = max(1, min(3 * len(few), fitting, max_blocks - removed))
    if removed:
        at.engine.free_space(at)
    return removed


def _few(at: Connection, heights: list[int], entries: int) -> list[int]:
    """Return the first of these heights whose blocks can be removed together; an empty list if
    the first block is too large. At least ``entries`` index entries may be removed."""
    few = heights
    while index_steps.has_many(at, few[0], few[-1], max(entries, len(few) * _ENTRIES_A_BLOCK)):
        if len(few) == 1:
            return []
        few = few[: len(few) // 2]
    return few


def _remove(at: Connection, heights: list[int], dropped_below: int) -> None:
    first, last = heights[0], heights[-1]
    for height in heights:
        hits.forget(at, height)
    hits.forget_heights(at, first, last)
    goes_whole = last < dropped_below
    index.unindex_blocks(at, first, last, keeps_tx_hits=goes_whole)
    for table, still in _BELOW:
        if not goes_whole or table not in _DROPPED:
            between = first - still, last - still
            at.execute(f"DELETE FROM {table} WHERE height BETWEEN ? AND ?", between)
    if goes_whole:
        at.execute(
            f"DELETE FROM {at.engine.tx_hashes} WHERE (hash, place) IN"
            " (SELECT hash, place FROM txs WHERE place BETWEEN ? AND ?)",
            blocks.places(first, last),
        )
    else:
        for table in _PLACES:
            between = blocks.places(first, last)
            at.execute(f"DELETE FROM {table} WHERE place BETWEEN ? AND ?", between)
    forget_state(at, last + 1)


def _oldest(at: Connection, base: int, most: int) -> list[int]:
    heights_of = at.engine.heights
    lowest, last = at.execute(
        f"SELECT (SELECT min(height) FROM {heights_of}), (SELECT max(height) FROM {heights_of})"
    ).fetchone()
    if lowest is None:
        return []
    found = at.execute(
        "SELECT height, tx_count FROM blocks WHERE height BETWEEN ? AND ? ORDER BY height",
        (lowest, min(base, last, lowest + most) - 1),
    )
    heights: list[int] = []
    remaining_txs = most * _TXS_A_BLOCK
    for height, tx_count in found.fetchall():
        remaining_txs -= tx_count
        # Stop before the blocks have too many transactions in total; a larger block is removed
        # alone.
        if heights and remaining_txs < 0:
            break
        heights.append(height)
    return heights


def forget_state(at: Connection, base: int) -> None:
    """Remove validator sets and parameters that heights from ``base`` on do not need; set the
    last height of rows that remain for other reasons."""
    _forget_sets(at, base - 1)
    _forget_params(at, base)


def _forget_sets(at: Connection, below: int) -> None:
    """Remove validator sets below a height, except those in force at later heights and those
    at heights of offences in stored evidence, which need the accused validators."""
    for table, column in (("validator_sets", "since"), ("validator_priorities", "height")):
        needed = f"SELECT coalesce(max({column}), 0) FROM {table} WHERE {column} <="
        at.execute(
            f"DELETE FROM {table} WHERE {column} < ({needed} ?) AND {column} NOT IN"
            f" (SELECT ({needed} offence) FROM evidence WHERE offence < ?)",
            (below, below),
        )
    # Set the last height of sets that are kept for evidence to the height of the offence, as
    # the sets that follow them are removed.
    found = at.execute(
        "SELECT since, (SELECT coalesce(max(offence), s.since) FROM evidence"
        "  WHERE offence >= s.since AND offence <"
        "  (SELECT min(since) FROM validator_sets AS n WHERE n.since > s.since))"
        " FROM validator_sets AS s WHERE until IS NULL AND since <"
        "  (SELECT max(since) FROM validator_sets WHERE since <= ?)",
        (below,),
    )
    for since, until in found.fetchall():
        state.set_until(at, "validator_sets", since, until)


def _forget_params(at: Connection, base: int) -> None:
    """Remove parameters that are not in force from a height on, except the genesis parameters,
    from which the EVM layer builds block 0."""
    (initial,) = at.execute("SELECT initial_height FROM chain").fetchone()
    held = "since < (SELECT max(since) FROM consensus_params WHERE since <= ?)"
    at.execute(f"DELETE FROM consensus_params WHERE {held} AND since <> ?", (base, initial))
    found = at.execute(
        f"SELECT since FROM consensus_params WHERE {held}"
        " AND (until IS NULL OR until <> since)",
        (base,),
    )
    for (since,) in found.fetchall():
        state.set_until(at, "consensus_params", since, since)


# Table, its height column, and the number of heights above the latest block for which it has
# rows: validator sets are known two blocks ahead, parameters one block.
_BEYOND = (
    ("blocks", "height", 0),
    ("commits", "height", 0),
    ("missed_votes", "height", 0),
    ("results", "height", 0),
    ("evidence", "height", 0),
    ("consensus_params", "since", 1),
    ("validator_sets", "since", 2),
    ("validator_priorities", "height", 2),
)


def rewind(at: Connection, height: int, changes: Changes) -> None:
    """Remove the blocks above a height; ``changes`` are writes that restore the application's
    state at that height."""
    _refuse_below(at, height)
    remove_above(at, height)
    at.execute(
        "UPDATE filters SET cursor = ? WHERE cursor > ? AND kind IN ('logs', 'blocks')",
        (height, height),
    )
    try:
        chain.load_head(at)
    except StoreError as error:
        raise NotSupported(f"the chain can't be reverted to height {height}: {error}") from None
    at.execute("INSERT INTO rewinds (height) VALUES (?)", (height,))
    write_changes(at, changes)


def remove_above(at: Connection, height: int) -> None:
    """Remove the blocks above a height."""
    last = hits.last_place(height)
    at.engine.lock_mempool(at)
    at.execute(
        "DELETE FROM tx_cache WHERE hash IN (SELECT hash FROM txs WHERE place > ?)", (last,)
    )
    index.unindex_blocks(at, height + 1, blocks.LAST_HEIGHT)
    hits.forget_above(at, height)
    for table in _PLACES:
        at.execute(f"DELETE FROM {table} WHERE place > ?", (last,))
    for table, column, ahead in _BEYOND:
        at.execute(f"DELETE FROM {table} WHERE {column} > ?", (height + ahead,))
    for table, ahead in (("consensus_params", 1), ("validator_priorities", 2)):
        state.reopen_last_row(at, table, height + ahead)


def _refuse_below(at: Connection, height: int) -> None:
    """Raise :exc:`NotSupported` for a height whose state is no longer stored."""
    begins = chain.require_start(at)
    (base,) = at.execute(f"SELECT min(height) FROM {at.engine.heights}").fetchone()
    lowest = (
        begins.initial_height - 1 if begins.trusted is None else begins.trusted.header.height
    )
    if base is not None and base > lowest + 1:
        lowest = base
    if height < lowest:
        raise NotSupported(
            f"the chain can't be reverted below height {lowest}: no earlier state is stored",
            "raise NODERPC_RETAIN_BLOCKS to keep more blocks from now on",
        )
