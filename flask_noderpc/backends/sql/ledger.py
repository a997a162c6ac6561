"""Append blocks: write everything that a block changes in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ...domain.block import BlockMeta
from ...domain.validator import ValidatorSet
from ...errors import InvalidBlock
from ...protocol.comet.chain_state import ChainState
from ...protocol.comet.hashes import BlockHashes, tx_hash
from ...protocol.comet.validators import is_rescaled_next
from ..base.new_blocks import BlockWithoutResults, CommittedBlock, OlderBlock
from . import backfill, block_writes, chain, prune, state
from .backfill import Pace
from .block_writes import Batch, NewBlock, Prepared
from .connection import Connection
from .values import write_changes

# Weight of the blocks that are written together: about 50 blocks with 10 transactions each.
_BATCH = 20_000

AppendedBlock = CommittedBlock | BlockWithoutResults


def append(
    connection: Connection, head: ChainState, blocks: Iterable[Prepared[CommittedBlock]]
) -> ChainState:
    """Write blocks that follow ``head``; return the new head."""
    batch = Batch(connection, _BATCH)
    for number, prepared in enumerate(blocks):
        item = prepared.block_item
        head, hashes = _check(head, item, prepared)
        time = item.block.header.time
        after = head.next_state(hashes.block_id, time, item.commit, item.results)
        _add(connection, batch, head, after, prepared._replace(hashes=hashes))
        write_changes(connection, item.changes)
        # Write the next height's parameters if they change, and also if they are missing, as
        # after a head that was stored without results.
        if after.params != head.params or not (
            number or state.params(connection, after.height + 1)
        ):
            state.write_params(connection, after.height + 1, after.params)
        head = after
        if batch.is_full:
            _write(batch)
    _write(batch)
    return head


def _write(batch: Batch) -> None:
    try:
        batch.write()
    except batch.at.engine.integrity_error as error:
        raise InvalidBlock(f"{batch.heights_text}: {error}") from None


def append_without_results(
    connection: Connection, head: ChainState, prepared: Prepared[BlockWithoutResults]
) -> ChainState:
    """Write a block without results that follows ``head``; return the new head."""
    item, batch = prepared.block_item, Batch(connection, _BATCH)
    head, hashes = _check(head, item, prepared)
    time = item.block.header.time
    after = head.after_unknown(
        hashes.block_id, time, item.commit, item.next_validators, item.params
    )
    _add(connection, batch, head, after, prepared._replace(hashes=hashes))
    state.write_params(connection, after.height + 1, after.params)
    _write(batch)
    return after


def _check(
    head: ChainState, item: AppendedBlock, prepared: Prepared[Any]
) -> tuple[ChainState, BlockHashes]:
    """Check a block against the head; return the head with the fields that were not checked,
    and the hashes of the block."""
    if unchecked := item.unchecked | head.uncomputable_fields:
        head = replace(head, unchecked=head.unchecked | unchecked)
    return head, head.check(item.block, item.commit, item.results, prepared.hashes)


def _add(
    connection: Connection,
    batch: Batch,
    head: ChainState,
    after: ChainState,
    prepared: Prepared[CommittedBlock] | Prepared[BlockWithoutResults],
) -> None:
    item, height = prepared.block_item, after.height
    if "app_hash" in head.unchecked:
        _write(batch)
        block_writes.write_app_hash(connection, height - 1, item.block.header.app_hash)
    batch.add(_new_block(prepared, head))
    # Replace the stored commit of the parent by the one in this block, which is canonical.
    if item.block.last_commit != head.commit:
        batch.add_commit(item.block.last_commit)
    batch.add_commit(item.commit)
    _write_validators(connection, head, after, height + 2)


def _new_block(
    prepared: Prepared[CommittedBlock] | Prepared[BlockWithoutResults], head: ChainState
) -> NewBlock:
    item, hashes, rows = prepared
    block, unchecked = item.block, item.unchecked | head.uncomputable_fields
    unverified = (head.unchecked - unchecked) | ({"signatures"} if item.source else set())
    marks = block_writes.Provenance(unchecked, unverified, item.source)
    meta = BlockMeta(hashes.block_id, hashes.size, block.header, len(block.txs), block.form)
    return NewBlock(meta, block, hashes.tx_hashes, rows, item.results, marks)


def _write_validators(
    connection: Connection, head: ChainState, after: ChainState, height: int
) -> None:
    if _members(after.next_validators) != _members(head.next_validators):
        state.write_set(connection, height, after.next_validators)
    elif height % state.PRIORITIES_EACH == 0 or is_rescaled_next(head.next_validators):
        state.write_priorities(connection, height, after.next_validators)


def _members(validators: ValidatorSet) -> list[tuple[bytes, int]]:
    return [(v.address, v.voting_power) for v in validators.validators]


class Ledger:
    """Appends blocks, and caches the head between two calls."""

    def __init__(self) -> None:
        self._head: ChainState | None = None
        self._seen: object = None

    def append(
        self, connection: Connection, blocks: Iterable[Prepared[CommittedBlock]]
    ) -> ChainState:
        """Write blocks that follow the head; return the new head, which the caller passes to
        :meth:`set_head` after the commit. Raise :exc:`InvalidBlock`."""
        head = self.head(connection)
        self._head = None
        return append(connection, head, blocks)

    def append_without_results(
        self, connection: Connection, prepared: Prepared[BlockWithoutResults]
    ) -> ChainState:
        """Write a block without results; return the new head as :meth:`append` does."""
        head = self.head(connection)
        self._head = None
        return append_without_results(connection, head, prepared)

    def set_head(self, head: ChainState) -> None:
        """Cache a head whose transaction was committed."""
        self._head = head

    def backfill(
        self, connection: Connection, items: Sequence[Prepared[OlderBlock]], pace: Pace
    ) -> int:
        """Add blocks below the lowest one until a deadline; return the number added."""
        # Clear the cache: the first block may be the trusted one, which becomes the head.
        self._head = None
        return backfill.add_until_deadline(connection, items, pace)

    def replace_head(self, connection: Connection, prepared: Prepared[CommittedBlock]) -> None:
        """Replace the results and the commit of the head, and count its old results as
        refuted."""
        item = prepared.block_item
        self._head = None
        stored = chain.load_head(connection)
        height = item.block.header.height
        if (stored.height, stored.block_id) != (height, item.commit.block_id):
            shown = stored.block_id.hash.hex().upper()
            raise InvalidBlock(
                f"block {height}: expected the head, block {stored.height} {shown}"
            )
        before = chain.state_before(connection, item.block)
        prune.remove_above(connection, height - 1)
        append(connection, before, [prepared])
        connection.execute("INSERT INTO refuted_results (height) VALUES (?)", (height,))
        connection.execute("UPDATE chain SET revision = revision + 1")

    def head(self, connection: Connection) -> ChainState:
        """Return the cached head, or read it again if another connection has changed the
        chain."""
        seen = connection.engine.data_version(connection)
        if self._head is None or seen != self._seen or not _is_head(connection, self._head):
            self._head = chain.load_head(connection)
            self._seen = seen
        return self._head


def _is_head(connection: Connection, head: ChainState) -> bool:
    found = connection.execute(
        f"SELECT height, hash FROM {connection.engine.heights} ORDER BY height DESC LIMIT 1"
    ).fetchone()
    if found is None:
        return head.is_genesis
    return (found[0], bytes(found[1])) == (head.height, head.block_id.hash)


def remove_from_mempool(
    connection: Connection,
    blocks: Sequence[Prepared[CommittedBlock]] | Sequence[Prepared[BlockWithoutResults]],
    cache_size: int,
) -> None:
    """Remove the blocks' transactions from the mempool, and add them to the cache of seen
    transactions."""
    connection.engine.lock_mempool(connection)
    gone: dict[bytes, bool] = {}
    for item, hashes, _ in blocks:
        gone |= dict.fromkeys(hashes.tx_hashes, False)
        if isinstance(item, BlockWithoutResults):
            continue
        gone |= dict.fromkeys(map(tx_hash, item.consumed), False)
        results = zip(hashes.tx_hashes, item.results.tx_results, strict=True)
        # As in CometBFT, a transaction that failed in its block may be sent again.
        gone |= {each: True for each, result in results if result.code}
    connection.executemany("DELETE FROM mempool WHERE hash = ?", [(each,) for each in gone])
    failed = [(each,) for each, has_failed in gone.items() if has_failed]
    cached = [(each,) for each, has_failed in gone.items() if not has_failed]
    connection.executemany("DELETE FROM tx_cache WHERE hash = ?", failed)
    connection.executemany(
        "INSERT INTO tx_cache (hash) VALUES (?) ON CONFLICT DO NOTHING", cached
    )
    connection.execute(
        "DELETE FROM tx_cache WHERE seq <= (SELECT max(seq) FROM tx_cache) - ?", (cache_size,)
    )
