"""Writing blocks: everything that one block changes, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...domain.block import BlockMeta
from ...domain.validator import ValidatorSet
from ...errors import InvalidBlock
from ...protocol.comet.chain_state import ChainState
from ...protocol.comet.hashes import tx_hash
from ...protocol.comet.validators import is_rescaled_next
from ..base.store import CommittedBlock, OlderBlock
from . import backfill, block_writes, chain, evidence, evm_index, index, prune, state
from .app_state import write_changes
from .connection import Connection
from .prepared import Prepared


def append(
    connection: Connection, head: ChainState, prepared: Prepared[CommittedBlock]
) -> ChainState:
    """Write one block that follows ``head``; the new head."""
    item = prepared.item
    if unknown := head.of_unknown_keys:
        item = replace(item, unchecked=item.unchecked | unknown)
    if item.unchecked:
        head = replace(head, unchecked=head.unchecked | item.unchecked)
    hashes = head.check(item.block, item.commit, item.results, prepared.hashes)
    height = item.block.header.height
    after = head.next_state(hashes.block_id, item.block.header.time, item.commit, item.results)
    _write_block(connection, Prepared(item, hashes, prepared.slices), head.unchecked)
    if "app_hash" in head.unchecked:
        block_writes.write_app_hash(connection, height - 1, item.block.header.app_hash)
    # The commit that the block carries is the canonical one of its parent.
    if item.block.last_commit != head.commit:
        block_writes.write_commit(connection, item.block.last_commit)
    block_writes.write_commit(connection, item.commit)
    _write_validators(connection, head, after, height + 2)
    # Of a head without results, which is replaced, the store knows those of two heights apart.
    if after.params != head.params or state.params(connection, height + 1) is None:
        state.write_params(connection, height + 1, after.params)
    write_changes(connection, item.changes)
    return after


def _write_block(
    connection: Connection, prepared: Prepared[CommittedBlock], unchecked: frozenset[str]
) -> None:
    item, hashes, slices = prepared
    block, results = item.block, item.results
    height = block.header.height
    events = index.write_block(connection, height, results.block_events)
    unverified = (unchecked - item.unchecked) | ({"signatures"} if item.source else set())
    marks = block_writes.Provenance(item.unchecked, unverified, item.source)
    meta = BlockMeta(hashes.block_id, hashes.size, block.header, len(block.txs))
    block_writes.write(connection, meta, slices, results, events, marks)
    indexed = index.positions(connection, hashes.tx_hashes, results)
    tx_events = index.write_txs(connection, height, results, indexed)
    block_writes.write_txs(connection, height, hashes.tx_hashes, results.tx_results, tx_events)
    evm_index.write(connection, height, block.txs, results.tx_results)
    evidence.write(connection, height, block.evidence)


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
    """Appends blocks, remembering the head between one and the next."""

    def __init__(self) -> None:
        self._head: ChainState | None = None
        self._seen: int | None = None

    def append(
        self, connection: Connection, blocks: Iterable[Prepared[CommittedBlock]]
    ) -> None:
        """Write blocks; raise :exc:`InvalidBlock` for one that does not follow."""
        head = self.head(connection)
        for prepared in blocks:
            try:
                head = append(connection, head, prepared)
            except connection.engine.integrity_error as error:
                height = prepared.item.block.header.height
                raise InvalidBlock(f"block {height}: {error}") from None
        self._head = head

    def backfill(self, connection: Connection, items: Sequence[Prepared[OlderBlock]]) -> int:
        """Add blocks below the lowest one; return how many were added."""
        # The first may be the trusted block, which makes it the head.
        self._head = None
        return backfill.add_some(connection, items)

    def replace_head(self, connection: Connection, prepared: Prepared[CommittedBlock]) -> None:
        """Write the head's results and commit anew."""
        item = prepared.item
        # Its height stays the same, so that a write that was undone would not be noticed.
        self._head = None
        stored = chain.load_head(connection)
        height = item.block.header.height
        if (stored.height, stored.block_id) != (height, item.commit.block_id):
            shown = stored.block_id.hash.hex().upper()
            raise InvalidBlock(
                f"block {height}: it is not the head, block {stored.height} {shown}"
            )
        before = chain.state_before(connection, item.block)
        prune.remove_above(connection, height - 1)
        append(connection, before, prepared)
        connection.execute("INSERT INTO refuted_results (height) VALUES (?)", (height,))
        connection.execute("UPDATE chain SET revision = revision + 1")

    def head(self, connection: Connection) -> ChainState:
        """The head, read anew when anyone else wrote, or when a write was undone."""
        seen = connection.engine.data_version(connection)
        stored = connection.execute("SELECT max(height) FROM blocks").fetchone()[0]
        if (
            self._head is None
            or seen is None
            or seen != self._seen
            or stored != (None if self._head.is_genesis else self._head.height)
        ):
            self._head = chain.load_head(connection)
            self._seen = seen
        return self._head


def forget(
    connection: Connection, blocks: Sequence[Prepared[CommittedBlock]], cache_size: int
) -> None:
    """Take the blocks' transactions out of the mempool, and remember them."""
    connection.engine.lock_mempool(connection)
    for item, hashes, _ in blocks:
        codes = [result.code for result in item.results.tx_results]
        gone = [(each,) for each in (*hashes.tx_hashes, *map(tx_hash, item.consumed))]
        connection.executemany("DELETE FROM mempool WHERE hash = ?", gone)
        # CometBFT: a transaction that failed in its block may be sent again.
        failed = {row for row, code in zip(gone, codes, strict=False) if code}
        cached = [row for row in gone if row not in failed]
        connection.executemany("DELETE FROM tx_cache WHERE hash = ?", failed)
        connection.executemany(
            "INSERT INTO tx_cache (hash) VALUES (?) ON CONFLICT DO NOTHING", cached
        )
    connection.execute(
        "DELETE FROM tx_cache WHERE seq <= (SELECT max(seq) FROM tx_cache) - ?", (cache_size,)
    )
