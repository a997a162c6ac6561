"""Results and index of a block that was stored without them, brought by a later backfill."""

from __future__ import annotations

from ...domain.abci import BlockResults
from ..base.new_blocks import OlderBlock
from . import block_writes, blocks, hits, index_steps
from .connection import Connection
from .hits import BlockTxs
from .packed import results as packed
from .prepared import Prepared


def add(
    at: Connection, prepared: Prepared[OlderBlock], results: BlockResults, deadline: float
) -> bool:
    """Store proven results where they are missing, and index them; return false if the time is
    over before the end."""
    item, height = prepared.item, results.height
    lacks_results, lacks_index = at.execute(
        "SELECT results IS NULL, events IS NULL FROM blocks JOIN results USING (height)"
        " WHERE height = ?",
        (height,),
    ).fetchone()
    if lacks_results:
        tx_hashes = prepared.hashes.tx_hashes
        if not index_steps.leave_out_repeats(at, height, tx_hashes, results, deadline):
            return False
        _write(at, prepared, results)
    if item.is_indexed and lacks_index:
        return index_steps.more(at, height, deadline)
    return True


def _write(at: Connection, prepared: Prepared[OlderBlock], results: BlockResults) -> None:
    item, found, slices = prepared
    height = results.height
    at.execute(
        "UPDATE results SET results = ? WHERE height = ?",
        (packed.pack_results(results), height),
    )
    at.execute(
        "DELETE FROM tx_slices WHERE place BETWEEN ? AND ?", blocks.places(height, height)
    )
    block_writes.write_slices(at, slices)
    rows = block_writes.tx_rows(height, found.tx_hashes, results.tx_results)
    block_writes.write_txs(at, rows)
    hits.write(at, [BlockTxs(height, item.block.txs, results.tx_results)])
    index_steps.changed(at)
