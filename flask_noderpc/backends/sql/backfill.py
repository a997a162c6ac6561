"""Backfill: add blocks below the lowest stored block, each linked by its hash to the block
above.

The hash proves the header, the header proves the content and the validators, and the header
above proves the results. Signatures are not checked. A block that is stored without results
gets its results and its index entries from a later backfill.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ...domain.abci import BlockResults
from ...domain.block import BlockID, BlockMeta, Header
from ...errors import InvalidBlock
from ...protocol.comet import hashes
from ...protocol.comet.chain_state import Expected, compare
from ...protocol.comet.hashes import BlockHashes
from ...protocol.comet.key_types import are_known
from ..base.new_blocks import OlderBlock
from . import block_writes, blocks, chain, hits, index_steps, state
from .block_writes import Batch, NewBlock, Prepared
from .connection import Connection
from .hits import BlockTxs
from .packed import blocks as packed


class Pace(NamedTuple):
    """Sizes of a backfill's steps."""

    seconds: float
    """Time after which a transaction ends, as other writers wait for it. With its last batch
    and the commit, it takes at most twice as long."""
    batch: int
    """Weight of the blocks that are written together, between two checks of the deadline."""
    large: int
    """Weight of the transactions above which a block is indexed in steps."""


GENTLE = Pace(0.025, 800, index_steps.ATTRIBUTES_PER_STEP)
"""For a store to which new blocks are added meanwhile."""
BULK = Pace(1.0, 20_000, 10_000)
"""For a store that has no other writer in a hurry; a block takes half the time."""

_EXTENDED_TABLES = _SETS, _PARAMS = "validator_sets", "consensus_params"


def add_until_deadline(
    at: Connection, items: Sequence[Prepared[OlderBlock]], pace: Pace
) -> int:
    """Add blocks until the transaction's time is over; return the number added.

    The caller's next transaction continues with the first block that was not finished.
    """
    deadline = time.monotonic() + pace.seconds
    # First finish indexing a large block that a previous call, or an interrupted process,
    # began.
    if not index_steps.finish(at, deadline):
        return 0
    step, added = _BackfillTransaction(at, deadline, pace), 0
    for prepared in items:
        try:
            is_added = step.add(prepared)
        except InvalidBlock:
            # Commit the blocks before the invalid one; the next call begins with it and
            # raises.
            if not added:
                raise
            break
        added += is_added
        if not is_added or time.monotonic() > deadline:
            break
    step.write()
    return added


class _ExpectedBlock(NamedTuple):
    """Stored facts that the next block to add must match."""

    chain_id: str
    initial_height: int
    height: int
    block_id: BlockID
    above: Header | None
    """Header of the following block; ``None`` if only a trusted block is stored."""


def _expected_block(at: Connection) -> _ExpectedBlock:
    begins = chain.require_start(at)
    chain_id, initial_height, trusted = begins
    lowest = blocks.lowest_meta(at, chain_id)
    if lowest is not None:
        above = lowest.header
        return _ExpectedBlock(
            chain_id, initial_height, above.height - 1, above.last_block_id, above
        )
    if trusted is not None:
        height = trusted.header.height
        return _ExpectedBlock(chain_id, initial_height, height, trusted.block_id, None)
    raise InvalidBlock("expected a chain with blocks, or one that begins at a trusted block")


class _BackfillTransaction:
    """A transaction that adds blocks and writes them in batches.

    The object caches what the next block must match, and the lowest heights at which the
    present validator set and parameters are in force.
    """

    def __init__(self, at: Connection, deadline: float, pace: Pace) -> None:
        self._at, self._deadline, self._large = at, deadline, pace.large
        self._batch = Batch(at, pace.batch)
        self._next: _ExpectedBlock | None = None
        self._extended: dict[str, tuple[int, int]] = {}

    def write(self) -> None:
        """Write the blocks added since the last write."""
        for table in _EXTENDED_TABLES:
            self._write_extended(table)
        self._batch.write()

    def add(self, prepared: Prepared[OlderBlock]) -> bool:
        """Add a block, or what a stored block lacks; return false if the deadline passes
        before it is indexed."""
        item, found, rows = prepared
        height = item.block.header.height
        block_writes.check_place(height, len(item.block.txs))
        link = self._next or _expected_block(self._at)
        if height > link.height:
            self.write()
            known = _stored_block(self._at, item, found, link)
            if known is not None:
                return _compare_stored(self._at, prepared, known, self._deadline)
        item, found = _check(item, found, link)
        results = _results_to_store(item, link)
        if results is not None and not index_steps.unindex_repeats(
            self._at, height, found.tx_hashes, results, self._deadline
        ):
            return False
        self._write_set(item, link)
        self._write_params(item, results)
        is_large = results is not None and rows.weight > self._large
        at_once = item.is_indexed and not is_large
        self._add_block(Prepared(item, found, rows), results, link, at_once)
        header = item.block.header
        self._next = link._replace(
            height=height - 1, block_id=header.last_block_id, above=header
        )
        if item.is_indexed and is_large:
            self.write()
            index_steps.begin_indexing(self._at, height)
            return index_steps.is_finished(self._at) or self._finish()
        if self._batch.is_full:
            self.write()
        return True

    def _finish(self) -> bool:
        """Continue to index a large block until the deadline; return true if it is
        finished."""
        in_time = time.monotonic() <= self._deadline
        return in_time and index_steps.finish(self._at, self._deadline)

    def _extend_down(self, table: str, height: int) -> None:
        """Note that the lowest row of a table also applies at this height; ``write`` stores
        that."""
        since, _ = self._extended.get(table, (height + 1, 0))
        self._extended[table] = since, height

    def _write_extended(self, table: str) -> None:
        held = self._extended.pop(table, None)
        if held is not None:
            state.extend_down(self._at, table, *held)

    def _write_set(self, item: OlderBlock, link: _ExpectedBlock) -> None:
        header = item.block.header
        height = header.height
        if link.above is not None and header.validators_hash == link.above.validators_hash:
            self._extend_down(_SETS, height)
        elif item.validators is None and link.above is not None:
            raise InvalidBlock(
                f"block {height}: expected its validators, as they differ from the next block's"
            )
        if item.validators is not None:
            self._write_extended(_SETS)
            state.write_set(self._at, height, item.validators)
            state.drop_derived(self._at, height + 1, item.validators)

    def _write_params(self, item: OlderBlock, results: BlockResults | None) -> None:
        height = item.block.header.height
        if item.params is not None:
            self._write_extended(_PARAMS)
        # The Cosmos SDK sends a parameter update in each block, which usually changes nothing.
        is_unchanged = results is not None and (
            results.consensus_param_updates is None
            or (item.params is not None and item.params == state.params(self._at, height + 1))
        )
        if is_unchanged:
            self._extend_down(_PARAMS, height)
        if item.params is None:
            return
        self._write_extended(_PARAMS)
        if state.params(self._at, height) is None:
            # If the results may change the parameters, the row only applies at this height.
            state.write_params(self._at, height, item.params, until=height + is_unchanged)

    def _add_block(
        self,
        prepared: Prepared[OlderBlock],
        results: BlockResults | None,
        link: _ExpectedBlock,
        at_once: bool,
    ) -> None:
        item, found, rows = prepared
        block, height = item.block, item.block.header.height
        unverified = {"signatures", "time"} | ({"results"} if link.above is None else set())
        marks = block_writes.Provenance(item.unchecked, frozenset(unverified), item.source)
        meta = BlockMeta(found.block_id, found.size, block.header, len(block.txs), block.form)
        # Write the stored commit for this block again: now that the validator set is known, it
        # takes less space.
        if not self._batch.has_commit(height):
            own = blocks.commit(self._at, height)
            if own is not None:
                self._batch.add_commit(own)
        if height > link.initial_height:
            self._batch.add_commit(block.last_commit)
        self._batch.add(NewBlock(meta, block, found.tx_hashes, rows, results, marks, at_once))


def _check(
    item: OlderBlock, found: BlockHashes, link: _ExpectedBlock
) -> tuple[OlderBlock, BlockHashes]:
    """Compare a block with what the store expects; return the block and hashes to store."""
    if item.validators is not None and not are_known(item.validators):
        item = replace(item, unchecked=item.unchecked | {"validators_hash"})
    if "data_hash" in item.unchecked and found.block_id.hash == link.block_id.hash:
        # The chain hashes blocks in its own way, so its part set hash can't be computed here:
        # use the ID in the block above.
        found = found._replace(block_id=link.block_id)
    compare(item.block, _expected_fields(item, found, link), item.unchecked)
    return item, found


def _compare_stored(
    at: Connection, prepared: Prepared[OlderBlock], known: _ExpectedBlock, deadline: float
) -> bool:
    """Compare a block with the stored block of its height, and add results that the stored
    block lacks; return false if the deadline passes before the end."""
    item, found, rows = prepared
    item = replace(item, unchecked=item.unchecked | blocks.unchecked(at, known.height))
    item, found = _check(item, found, known)
    results = _results_to_store(item, known)
    if results is None:
        return True
    if known.above is not None:
        return _add_results(at, Prepared(item, found, rows), results, deadline)
    stored = blocks.results(at, known.height)
    if stored is not None:
        pair = hashes.results_hash(results.tx_results), hashes.results_hash(stored.tx_results)
        compare(item.block, {"results": pair}, item.unchecked)
    return True


def _stored_block(
    at: Connection, item: OlderBlock, found: BlockHashes, link: _ExpectedBlock
) -> _ExpectedBlock | None:
    """Return what the next older block must match if this block is stored already, otherwise
    ``None``; raise :exc:`InvalidBlock` if another block is stored at its height."""
    height = item.block.header.height
    known = blocks.meta(at, height, link.chain_id)
    if known is None:
        return None
    if known.block_id.hash != found.block_id.hash:
        raise InvalidBlock(
            f"block {height}: expected the stored block"
            f" {known.block_id.hash.hex().upper()}, got {found.block_id.hash.hex().upper()}"
        )
    following = blocks.meta(at, height + 1, link.chain_id)
    above = None if following is None else following.header
    return link._replace(height=height, block_id=known.block_id, above=above)


def _expected_fields(item: OlderBlock, found: BlockHashes, link: _ExpectedBlock) -> Expected:
    """Return the actual and the expected value of each field, by the field's name."""
    header, last = item.block.header, item.block.last_commit
    first = header.height == link.initial_height
    rules: Expected = {
        "height": (header.height, link.height),
        "chain_id": (header.chain_id, link.chain_id),
        "block_id": (found.block_id, link.block_id),
        "last_commit.height": (last.height, 0 if first else header.height - 1),
        "last_commit.block_id": (last.block_id, header.last_block_id),
        "last_commit_hash": (header.last_commit_hash, found.last_commit_hash),
        "data_hash": (header.data_hash, found.data_hash),
        "evidence_hash": (header.evidence_hash, found.evidence_hash),
    }
    if item.results is not None:
        rules["results.height"] = (item.results.height, header.height)
        rules["results.tx_results"] = (len(item.results.tx_results), len(item.block.txs))
        rules |= _result_fields(item.results, link.above)
    if item.validators is not None and "validators_hash" not in item.unchecked:
        proven = hashes.validators_hash(item.validators)
        rules["validators_hash"] = (proven, header.validators_hash)
    if item.params is not None:
        rules["consensus_hash"] = (hashes.consensus_hash(item.params), header.consensus_hash)
    return rules


def _result_fields(results: BlockResults, above: Header | None) -> Expected:
    if above is None:
        return {}
    proven = hashes.results_hash(results.tx_results)
    rules: Expected = {"results": (proven, above.last_results_hash)}
    if results.app_hash:
        # CometBFT before 0.38 does not return the app hash with results.
        rules["results.app_hash"] = (results.app_hash, above.app_hash)
    return rules


def _results_to_store(item: OlderBlock, link: _ExpectedBlock) -> BlockResults | None:
    results = item.results
    if results is None or results.app_hash or link.above is None:
        return results
    return replace(results, app_hash=link.above.app_hash)


def _add_results(
    at: Connection, prepared: Prepared[OlderBlock], results: BlockResults, deadline: float
) -> bool:
    """Store proven results that a stored block lacks, and index them; return false if the
    deadline passes before the end."""
    item, height = prepared.block_item, results.height
    lacks_results, lacks_index = at.execute(
        "SELECT results IS NULL, events IS NULL FROM blocks JOIN results USING (height)"
        " WHERE height = ?",
        (height,),
    ).fetchone()
    if lacks_results:
        tx_hashes = prepared.hashes.tx_hashes
        if not index_steps.unindex_repeats(at, height, tx_hashes, results, deadline):
            return False
        _write_results(at, prepared, results)
    if item.is_indexed and lacks_index:
        return index_steps.continue_indexing(at, height, deadline)
    return True


def _write_results(
    at: Connection, prepared: Prepared[OlderBlock], results: BlockResults
) -> None:
    item, found, rows = prepared
    height = results.height
    at.execute(
        "UPDATE results SET results = ? WHERE height = ?",
        (packed.pack_results(results), height),
    )
    at.execute(
        "DELETE FROM tx_slices WHERE place BETWEEN ? AND ?", blocks.places(height, height)
    )
    block_writes.write_slices(at, rows.slices)
    block_writes.write_txs(
        at, block_writes.tx_rows(height, found.tx_hashes, results.tx_results)
    )
    hits.write(at, [BlockTxs(height, item.block.txs, results.tx_results)])
    index_steps.invalidate_caches(at)
