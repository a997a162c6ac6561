"""Writing blocks: everything that one block changes, in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from ...domain.block import NO_BLOCK, NO_COMMIT
from ...domain.genesis import Genesis
from ...domain.validator import ValidatorSet
from ...errors import InvalidBlock, StoreError
from ...protocol.comet.chain_state import ChainState
from ...protocol.comet.hashes import BlockHashes, results_hash, tx_hash
from ..base.application import Changes, InitChain
from ..base.store import CommittedBlock
from ..sql.packed import state as packed
from . import blocks, evidence, evm_index, index, state

T = TypeVar("T")
Connection = sqlite3.Connection


def init_chain(
    connection: Connection, genesis: Genesis, state_: InitChain, application: str = ""
) -> None:
    """Store the genesis; the same one again changes nothing."""
    known = stored_genesis(connection)
    if known is not None:
        if known != genesis:
            raise StoreError(
                f"the store holds chain {known.chain_id!r} of another genesis:"
                " use another NODERPC_DATABASE for this one"
            )
        return
    params = genesis.consensus_params
    if state_.consensus_params:
        params = params.updated(state_.consensus_params)
    head = ChainState.at_genesis(genesis, state_.app_hash, state_.validators, params)
    write_chain(connection, genesis, head.app_hash, application)
    state.write_set(connection, genesis.initial_height, head.validators)
    state.write_params(connection, genesis.initial_height, head.params)
    write_changes(connection, state_.changes)


def write_chain(
    connection: Connection, genesis: Genesis, app_hash: bytes, application: str
) -> None:
    """Store the genesis, the app hash before the first block and the application's name."""
    connection.execute(
        "INSERT INTO chain (id, chain_id, initial_height, application, app_hash, genesis,"
        " app_state) VALUES (1, ?, ?, ?, ?, ?, ?)",
        (
            genesis.chain_id,
            genesis.initial_height,
            application,
            app_hash,
            packed.pack_genesis(genesis),
            packed.pack_app_state(genesis.app_state),
        ),
    )


def stored_genesis(connection: Connection) -> Genesis | None:
    """The genesis of the store, or ``None`` before :func:`init_chain`."""
    row = connection.execute("SELECT genesis, app_state FROM chain").fetchone()
    if row is None:
        return None
    return replace(packed.unpack_genesis(row[0]), app_state=packed.unpack_app_state(row[1]))


def load_head(connection: Connection) -> ChainState:
    """Return the state of the stored chain."""
    row = connection.execute("SELECT genesis, app_hash FROM chain").fetchone()
    if row is None:
        raise StoreError("the store holds no chain yet: init_chain comes first")
    genesis, app_hash = packed.unpack_genesis(row[0]), row[1]
    start = genesis.initial_height
    (height,) = connection.execute("SELECT max(height) FROM blocks").fetchone()
    if height is None:
        meta, results, height = None, None, start - 1
    else:
        meta = _known(blocks.meta(connection, height, genesis.chain_id))
        results = _known(blocks.results(connection, height))
        app_hash = results.app_hash
    return ChainState(
        chain_id=genesis.chain_id,
        initial_height=start,
        height=height,
        block_id=meta.block_id if meta else NO_BLOCK,
        time=meta.header.time if meta else genesis.genesis_time,
        app_hash=app_hash,
        results_hash=results_hash(results.tx_results if results else ()),
        commit=blocks.commit(connection, height) or NO_COMMIT,
        last_validators=state.validators(connection, height) or ValidatorSet(),
        validators=_known(state.validators(connection, height + 1)),
        next_validators=_known(state.validators(connection, height + 2)),
        params=_known(state.params(connection, height + 1)),
    )


def _known(value: T | None) -> T:
    if value is None:
        raise StoreError("the store has no results, validators or parameters for its head")
    return value


def append(connection: Connection, head: ChainState, item: CommittedBlock) -> ChainState:
    """Write one block that follows ``head``; the new head."""
    hashes = head.check(item.block, item.commit, item.results)
    height = item.block.header.height
    after = head.next_state(hashes.block_id, item.block.header.time, item.commit, item.results)
    _write_block(connection, hashes, item)
    # The commit that the block carries is the canonical one of its parent.
    if item.block.last_commit != head.commit:
        blocks.write_commit(connection, item.block.last_commit)
    blocks.write_commit(connection, item.commit)
    _write_validators(connection, head, after, height + 2)
    if after.params != head.params:
        state.write_params(connection, height + 1, after.params)
    write_changes(connection, item.changes)
    return after


def _write_block(connection: Connection, hashes: BlockHashes, item: CommittedBlock) -> None:
    block, results = item.block, item.results
    height = block.header.height
    events = index.write_block(connection, height, results)
    blocks.write(connection, block, hashes.block_id, hashes.size, results, events)
    indexed = index.positions(connection, hashes.tx_hashes, results)
    tx_events = index.write_txs(connection, height, results, indexed)
    blocks.write_txs(connection, height, hashes.tx_hashes, results, tx_events)
    evm_index.write(connection, height, block.txs, results.tx_results)
    evidence.write(connection, height, block.evidence)


def _write_validators(
    connection: Connection, head: ChainState, after: ChainState, height: int
) -> None:
    if _members(after.next_validators) != _members(head.next_validators):
        state.write_set(connection, height, after.next_validators)
    elif height % state.PRIORITIES_EACH == 0:
        state.write_priorities(connection, height, after.next_validators)


def _members(validators: ValidatorSet) -> list[tuple[bytes, int]]:
    return [(v.address, v.voting_power) for v in validators.validators]


def write_changes(connection: Connection, changes: Changes) -> None:
    """Apply what a block writes into the application's state."""
    written = [(key, value) for key, value in changes.items() if value is not None]
    removed = [(key,) for key, value in changes.items() if value is None]
    connection.executemany(
        "INSERT INTO app_state (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        written,
    )
    connection.executemany("DELETE FROM app_state WHERE key = ?", removed)


class Ledger:
    """Appends blocks, remembering the head between one and the next."""

    def __init__(self) -> None:
        self._head: ChainState | None = None
        self._seen = -1

    def append(self, connection: Connection, blocks: Iterable[CommittedBlock]) -> None:
        """Write blocks; raise :exc:`InvalidBlock` for one that does not follow."""
        head = self.head(connection)
        for item in blocks:
            try:
                head = append(connection, head, item)
            except sqlite3.IntegrityError as error:
                raise InvalidBlock(f"block {item.block.header.height}: {error}") from None
        self._head = head

    def head(self, connection: Connection) -> ChainState:
        """The head, read anew when anyone else wrote, or when a write was undone."""
        seen = connection.execute("PRAGMA data_version").fetchone()[0]
        stored = connection.execute("SELECT max(height) FROM blocks").fetchone()[0]
        if (
            self._head is None
            or seen != self._seen
            or stored != (None if self._head.is_genesis else self._head.height)
        ):
            self._head = load_head(connection)
            self._seen = seen
        return self._head


def forget(connection: Connection, blocks: Sequence[CommittedBlock], cache_size: int) -> None:
    """Take the blocks' transactions out of the mempool, and remember them."""
    for item in blocks:
        codes = [result.code for result in item.results.tx_results]
        gone = [(tx_hash(tx),) for tx in (*item.block.txs, *item.consumed)]
        connection.executemany("DELETE FROM mempool WHERE hash = ?", gone)
        # CometBFT: a transaction that failed in its block may be sent again.
        failed = {row for row, code in zip(gone, codes, strict=False) if code}
        cached = [row for row in gone if row not in failed]
        connection.executemany("DELETE FROM tx_cache WHERE hash = ?", failed)
        connection.executemany("INSERT OR IGNORE INTO tx_cache (hash) VALUES (?)", cached)
    connection.execute(
        "DELETE FROM tx_cache WHERE seq <= (SELECT max(seq) FROM tx_cache) - ?", (cache_size,)
    )
