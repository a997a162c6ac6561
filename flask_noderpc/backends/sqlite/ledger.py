"""Writing blocks: everything that one block changes, in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from ... import jsoncodec
from ...domain.block import NO_BLOCK, NO_COMMIT, Commit, PartSetHeader
from ...domain.genesis import Genesis
from ...domain.validator import ValidatorSet
from ...errors import InvalidBlock, StoreError
from ...protocol.comet.chain_state import ChainState
from ...protocol.comet.hashes import BlockHashes, results_hash, tx_hash
from ..base.application import Changes, InitChain
from ..base.store import CommittedBlock
from . import evidence, evm_index, index, rows, state

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
    connection.execute(
        "INSERT INTO chain (id, genesis, app_state, app_hash, application)"
        " VALUES (1, ?, ?, ?, ?)",
        (
            jsoncodec.encode(replace(genesis, app_state=b"")).decode(),
            genesis.app_state,
            head.app_hash,
            application,
        ),
    )
    first = genesis.initial_height
    state.write_members(connection, first, head.validators)
    state.write_priorities(connection, first, first, head.validators)
    state.write_priorities(connection, first + 1, first, head.next_validators)
    state.write_params(connection, first, head.params)
    write_changes(connection, state_.changes)


def stored_genesis(connection: Connection) -> Genesis | None:
    """The genesis of the store, or ``None`` before :func:`init_chain`."""
    row = connection.execute("SELECT genesis, app_state FROM chain").fetchone()
    if row is None:
        return None
    return replace(jsoncodec.decode(row[0], Genesis), app_state=row[1])


def load_head(connection: Connection) -> ChainState:
    """Return the state of the stored chain."""
    row = connection.execute("SELECT genesis, app_hash FROM chain").fetchone()
    if row is None:
        raise StoreError("the store holds no chain yet: init_chain comes first")
    genesis, app_hash = jsoncodec.decode(row[0], Genesis), row[1]
    last = connection.execute(
        f"SELECT next_app_hash, {rows.META_COLUMNS} FROM blocks ORDER BY height DESC LIMIT 1"
    ).fetchone()
    start = genesis.initial_height
    height = last[6] if last else start - 1
    meta = rows.meta_from(last[1:], genesis.chain_id) if last else None
    return ChainState(
        chain_id=genesis.chain_id,
        initial_height=start,
        height=height,
        block_id=meta.block_id if meta else NO_BLOCK,
        time=meta.header.time if meta else genesis.genesis_time,
        app_hash=last[0] if last else app_hash,
        results_hash=results_hash(state.tx_results(connection, height)),
        commit=state.commit(connection, height) or NO_COMMIT,
        last_validators=state.validators(connection, height) or ValidatorSet(),
        validators=_known(state.validators(connection, height + 1)),
        next_validators=_known(state.validators(connection, height + 2)),
        params=_known(state.params(connection, height + 1)),
    )


def _known(value: T | None) -> T:
    if value is None:
        raise StoreError("the store has no validators or parameters for its head")
    return value


def append(connection: Connection, head: ChainState, item: CommittedBlock) -> ChainState:
    """Write one block that follows ``head``; the new head."""
    hashes = head.check(item.block, item.commit, item.results)
    height = item.block.header.height
    after = head.next_state(hashes.block_id, item.block.header.time, item.commit, item.results)
    _write_block(connection, hashes, item)
    # The commit that the block carries is the canonical one of its parent.
    if item.block.last_commit != head.commit:
        _write_commit(connection, height - 1, item.block.last_commit)
    _write_commit(connection, height, item.commit)
    _write_validators(connection, head, after, height)
    if after.params != head.params:
        state.write_params(connection, height + 1, after.params)
    write_changes(connection, item.changes)
    return after


def _write_block(connection: Connection, hashes: BlockHashes, item: CommittedBlock) -> None:
    block, results = item.block, item.results
    height = block.header.height
    connection.execute(
        f"INSERT INTO blocks ({rows.BLOCK_COLUMNS})"
        f" VALUES ({rows.placeholders(rows.BLOCK_COLUMNS)})",
        rows.block_row(hashes.block_id, hashes.size, block, results),
    )
    numbers = index.write(connection, height, hashes.tx_hashes, results)
    columns = f"height, position, seq, hash, tx, {rows.TX_RESULT_COLUMNS}"
    connection.executemany(
        f"INSERT INTO txs ({columns}) VALUES ({rows.placeholders(columns)})",
        (
            (height, position, seq, digest, tx, *rows.exec_tx_result_row(result))
            for position, (seq, digest, tx, result) in enumerate(
                zip(numbers, hashes.tx_hashes, block.txs, results.tx_results, strict=True)
            )
        ),
    )
    evm_index.write(connection, height, block.txs, results)
    evidence.write(connection, height, block.evidence)


def _write_commit(connection: Connection, height: int, commit: Commit) -> None:
    parts: PartSetHeader = commit.block_id.parts
    connection.execute("DELETE FROM signatures WHERE height = ?", (height,))
    connection.execute(
        "INSERT OR REPLACE INTO commits (height, round, block_hash, parts_total, parts_hash)"
        " VALUES (?, ?, ?, ?, ?)",
        (height, commit.round, commit.block_id.hash, parts.total, parts.hash),
    )
    connection.executemany(
        "INSERT INTO signatures"
        " (height, position, flag, validator_address, time, signature)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (rows.signature_row(height, at, sig) for at, sig in enumerate(commit.signatures)),
    )


def _write_validators(
    connection: Connection, head: ChainState, after: ChainState, height: int
) -> None:
    since = state.members_since(connection, height + 1)
    if _members(after.next_validators) != _members(head.next_validators):
        since = height + 2
        state.write_members(connection, since, after.next_validators)
    state.write_priorities(connection, height + 2, since, after.next_validators)


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
