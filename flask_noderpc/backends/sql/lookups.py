"""Verify columns and indexes against the packed rows from which they were computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

from ...domain.abci import Event, ExecTxResult
from ...domain.responses import PendingCount
from ...domain.search import indexed_attributes
from ...errors import InvalidBlock
from ...event_aliases import searchable
from ...protocol.comet.hashes import evidence_hash_of, tx_hash
from . import block_writes, blocks, evidence, hits, index, mempool, state
from .connection import Connection
from .hits import BlockTxs
from .packed.blocks import POSITION_BITS, place


def check_block(at: Connection, height: int) -> None:
    """Check a block's columns and its index entries; raise :exc:`InvalidBlock` if they differ
    from the block.

    A block that was pruned meanwhile is skipped.
    """
    meta = blocks.meta(at, height, "")
    if meta is None:
        return
    row = at.execute(
        "SELECT hash, time, proposer, size, tx_count, events FROM blocks WHERE height = ?",
        (height,),
    ).fetchone()
    header = meta.header
    columns = (header.time, header.proposer_address, meta.size, meta.tx_count)
    _expect(height, "header", row[:5], (meta.block_id.hash, *columns))
    results = blocks.results(at, height)
    if results is not None:
        events = results.begin_block_events + results.end_block_events
        if row[5] is not None:
            _check_hits(at, index.BLOCK, height, height, events, row[5])
        _check_txs(at, height, is_indexed=row[5] is not None)
    _check_evidence(at, height)
    commit = blocks.commit(at, height)
    if commit is not None:
        missed = block_writes.missed_votes(commit, state.addresses(at, height))
        _expect(height, "missed votes", set(block_writes.stored_votes(at, height)), set(missed))


def _expect(height: int, subject: str, found: object, expected: object) -> None:
    if found != expected:
        raise InvalidBlock(
            f"block {height}: the columns or indexes of its {subject} differ from its content:"
            " restore a backup"
        )


def _check_txs(at: Connection, height: int, *, is_indexed: bool) -> None:
    txs, results = blocks.txs_with_results(at, height)
    rows = at.execute(
        "SELECT place, hash, code, gas_wanted, gas_used, events FROM txs"
        " WHERE place BETWEEN ? AND ? ORDER BY place",
        blocks.places(height, height),
    ).fetchall()
    hashes = [tx_hash(tx) for tx in txs]
    _expect(
        height,
        "transactions",
        [row[:5] for row in rows],
        [
            (place(height, position), digest, result.code, result.gas_wanted, result.gas_used)
            for position, (digest, result) in enumerate(zip(hashes, results, strict=True))
        ],
    )
    for row, result in zip(rows, results, strict=True):
        here, digest, *_, listed = row
        if listed is None and is_indexed:
            _expect(height, "transactions", _is_repeat(at, here, digest, result), True)
        elif listed is not None:
            _check_hits(at, index.TX, height, here, searchable(result.events), listed)
    for name in hits.indexes_lacking(at, BlockTxs(height, txs, results)):
        _expect(height, f"index {name}", False, True)


def _has(at: Connection, table: str, args: Sequence[object]) -> bool:
    return at.execute(f"SELECT 1 FROM {table}", args).fetchone() is not None


def _is_repeat(at: Connection, here: int, digest: bytes, result: ExecTxResult) -> bool:
    if result.code == 0:
        return False
    # The row of the earlier success may be pruned, or its block have been stored without
    # results.
    known = (
        f"{at.engine.tx_hashes} WHERE hash = ? AND code = 0 AND place < ?",
        (digest, here),
    )
    pruned = (
        f"chain WHERE initial_height < (SELECT min(height) FROM {at.engine.heights})",
        (),
    )
    unknown = ("results WHERE results IS NULL AND height < ?", (here >> POSITION_BITS,))
    return any(_has(at, *each) for each in (known, pruned, unknown))


def _check_hits(
    at: Connection, kind: str, height: int, here: int, events: Iterable[Event], listed: str
) -> None:
    listed_ids = index.parse_value_ids(kind, here, listed)
    has = partial(
        _has, at, f"{kind}_{at.engine.hits} WHERE value_id = ? AND place = ? AND event = ?"
    )
    # Compare one event after the other, as a large block has hundreds of thousands.
    expected = zip_longest(indexed_attributes(events), listed_ids)
    for number, (pairs, value_ids) in enumerate(expected):
        agrees = (
            pairs is not None
            and value_ids is not None
            and [*dict.fromkeys(pairs)] == [_name(at, kind, each) for each in value_ids]
            and all(has((each, here, number)) for each in value_ids)
        )
        _expect(height, "events", agrees, True)


def _name(at: Connection, kind: str, value_id: int) -> tuple[str, str] | None:
    row: tuple[Any, Any, int, str | None] | None = at.execute(
        f"SELECT key, value, digest, number FROM {kind}_values AS v"
        f" JOIN {kind}_keys AS k ON k.id = v.key_id WHERE v.id = ?",
        (value_id,),
    ).fetchone()
    if row is None:
        return None
    key, value = map(at.engine.to_text, row[:2])
    digest, number = row[2:]
    agrees = (digest, number) == (index.digest(value), index.number_text(value))
    return (key, value) if agrees else None


def _check_evidence(at: Connection, height: int) -> None:
    pieces = evidence.block_evidence(at, height)
    found = at.execute(
        "SELECT hash, offence FROM evidence WHERE height = ? ORDER BY position", (height,)
    )
    expected = [(evidence_hash_of(piece), piece.height) for piece in pieces]
    _expect(height, "evidence", found.fetchall(), expected)


# Number of mempool transactions that are read at once; each has up to a megabyte.
_WAITING = 20


def check_waiting(at: Connection) -> None:
    """Check pending transactions and evidence by their hashes; raise :exc:`InvalidBlock`."""
    last = 0
    while found := at.execute(
        "SELECT seq, hash, size, tx FROM mempool WHERE seq > ? ORDER BY seq LIMIT ?",
        (last, _WAITING),
    ).fetchall():
        for last, digest, size, tx in found:
            if (digest, size) != (tx_hash(tx), len(tx)):
                raise InvalidBlock(
                    f"mempool: transaction {last} does not match its stored hash or size:"
                    " restore a backup, or empty the mempool with unsafe_flush_mempool"
                )
    hashes = at.execute("SELECT hash FROM pending_evidence ORDER BY hash").fetchall()
    for (digest,) in hashes:
        if evidence_hash_of(evidence.pending_piece(at, digest)) != digest:
            raise InvalidBlock(
                f"pending_evidence: {digest.hex().upper()} has another hash: restore a backup"
            )


def check_counts(at: Connection) -> None:
    """Check the stored counts of index entries, of indexed transactions and of the mempool;
    raise :exc:`InvalidBlock`."""
    waiting = "SELECT count(*), CAST(coalesce(sum(size), 0) AS BIGINT) FROM mempool"
    if mempool.count(at) != PendingCount(*at.execute(waiting).fetchone()):
        raise InvalidBlock(
            "mempool_totals: the counts differ from the mempool's content: restore a backup"
        )
    lowest = at.engine.lowest_kept
    bases = {index.TX: f"{lowest} << {POSITION_BITS}", index.BLOCK: lowest}
    counted_txs = (
        f"SELECT place >> {POSITION_BITS + index.COUNT_BUCKET_BITS}, count(*) FROM txs"
        f" WHERE events IS NOT NULL AND place >= {bases[index.TX]} GROUP BY 1"
    )
    stored = "SELECT heights, txs FROM tx_counts WHERE txs <> 0"
    for one, other in ((counted_txs, stored), (stored, counted_txs)):
        if _has(
            at, f"(SELECT * FROM ({one}) AS a EXCEPT SELECT * FROM ({other}) AS b) AS c", ()
        ):
            raise InvalidBlock(
                "tx_counts: the counts differ from the number of transactions: restore a backup"
            )
    for kind in (index.TX, index.BLOCK):
        places = f"SELECT count(DISTINCT h.place) FROM {kind}_{at.engine.hits} AS h"
        of_base = f"h.place >= {bases[kind]}"
        of_value = f"{places} WHERE value_id = o.id AND {of_base}"
        of_key = (
            f"{places} JOIN {kind}_values AS v ON v.id = value_id WHERE v.key_id = o.id"
            f" AND {of_base}"
        )
        for table, counted in ((f"{kind}_values", of_value), (f"{kind}_keys", of_key)):
            wrong = at.execute(
                f"SELECT id FROM {table} AS o WHERE places <> ({counted}) LIMIT 1"
            ).fetchone()
            if wrong is not None:
                raise InvalidBlock(
                    f"{table}: the count of row {wrong[0]} differs from the number of its hits:"
                    " restore a backup"
                )
        orphan = (
            f"{kind}_hits AS h WHERE value_id NOT IN (SELECT id FROM {kind}_values)"
            f" AND {of_base}"
        )
        if _has(at, orphan, ()):
            raise InvalidBlock(
                f"{kind}_hits: some rows refer to a missing value: restore a backup"
            )
