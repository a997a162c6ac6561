"""Reads and writes of blocks, their commits, results and transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ...domain.abci import BlockResults, ExecTxResult
from ...domain.block import NO_COMMIT, Block, BlockID, BlockMeta, Commit
from ...domain.search import TxResult
from ...errors import InvalidBlock
from ...protocol.comet.hashes import tx_hash as hash_of
from ..sql.packed import blocks as packed
from ..sql.packed import results as packed_results
from ..sql.packed.results import LAST_POSITION, POSITION_BITS, Slice, place
from ..sql.packed.row import DamagedRow
from . import evidence, state, votes

Connection = sqlite3.Connection
Range = tuple[int, int, int]

# SQLite's integers have 64 bits, one of them the sign.
LAST_HEIGHT = (1 << 63 - POSITION_BITS) - 1


def places(low: int, high: int) -> tuple[int, int]:
    """Return the first and last place of a range of heights."""
    last = place(min(high, LAST_HEIGHT), LAST_POSITION)
    return place(min(max(low, 0), LAST_HEIGHT)), last


# Reads.


def is_there(at: Connection, height: int) -> bool:
    """Return true if the block is stored."""
    found = at.execute("SELECT 1 FROM blocks WHERE height = ?", (height,))
    return found.fetchone() is not None


def meta(at: Connection, height: int, chain_id: str) -> BlockMeta | None:
    """Return the meta of a block."""
    row = at.execute("SELECT header FROM blocks WHERE height = ?", (height,)).fetchone()
    return None if row is None else packed.unpack_meta(row[0], height, chain_id)


def height_of(at: Connection, block_hash: bytes) -> int | None:
    """Return the height of the block of this hash."""
    found = at.execute("SELECT height, header FROM blocks WHERE hash = ?", (block_hash,))
    row: tuple[int, bytes] | None = found.fetchone()
    if row is None:
        return None
    height, header = row
    if packed.unpack_meta(header, height, "").block_id.hash != block_hash:
        raise DamagedRow("header", height, "it has another hash")
    return height


def metas(at: Connection, low: int, high: int, chain_id: str) -> tuple[BlockMeta, ...]:
    """Return the metas of a range, highest first."""
    found = at.execute(
        "SELECT header, height FROM blocks WHERE height BETWEEN ? AND ? ORDER BY height DESC",
        (low, high),
    )
    return tuple([packed.unpack_meta(row, height, chain_id) for row, height in found])


def lowest_meta(at: Connection, chain_id: str) -> BlockMeta | None:
    """Return the meta of the oldest stored block."""
    (lowest,) = at.execute("SELECT min(height) FROM blocks").fetchone()
    return None if lowest is None else meta(at, lowest, chain_id)


def block(at: Connection, height: int, chain_id: str) -> tuple[BlockID, Block] | None:
    """Return a block with its id."""
    found = meta(at, height, chain_id)
    if found is None:
        return None
    return found.block_id, Block(
        found.header,
        _txs(at, height, found.tx_count),
        evidence.of_block(at, height),
        commit(at, height - 1) or NO_COMMIT,
    )


def _txs(at: Connection, height: int, count: int) -> tuple[bytes, ...]:
    if not count:
        return ()
    txs = tuple([tx for part in _slices(at, height) for tx in part.txs])
    if len(txs) != count:
        raise DamagedRow("transactions", height, f"{len(txs)} of {count} are there")
    return txs


def _slices(at: Connection, height: int) -> list[Slice]:
    found = at.execute(
        "SELECT txs, place FROM tx_slices WHERE place BETWEEN ? AND ? ORDER BY place",
        places(height, height),
    )
    return [Slice(row, first) for row, first in found]


def commit(at: Connection, height: int) -> Commit | None:
    """Return the precommits for the block at this height."""
    row = at.execute('SELECT "commit" FROM commits WHERE height = ?', (height,)).fetchone()
    if row is None:
        return None
    return packed.unpack_commit(row[0], height, lambda: state.addresses(at, height))


def results(at: Connection, height: int) -> BlockResults | None:
    """Return the results of a block."""
    row = at.execute("SELECT results FROM results WHERE height = ?", (height,)).fetchone()
    if row is None or row[0] is None:
        return None
    return packed_results.unpack_results(row[0], height, tx_results(at, height))


def tx_results(at: Connection, height: int) -> tuple[ExecTxResult, ...]:
    """Return the results of the transactions of a block."""
    return tuple(txs_with_results(at, height)[1])


def txs_with_results(at: Connection, height: int) -> tuple[list[bytes], list[ExecTxResult]]:
    """Return the transactions of a block, and their results."""
    found = _slices(at, height)
    return (
        [tx for part in found for tx in part.txs],
        [result for part in found for result in part.results()],
    )


def tx(at: Connection, tx_hash: bytes) -> TxResult | None:
    """Return the transaction of this hash."""
    row = at.execute(
        # CometBFT: a later failure does not hide an earlier success.
        "SELECT place FROM txs WHERE hash = ? ORDER BY code = 0 DESC, place DESC LIMIT 1",
        (tx_hash,),
    ).fetchone()
    if row is None:
        return None
    found = next(txs_at(at, row))
    if hash_of(found.tx) != tx_hash:
        raise DamagedRow("transactions", found.height, f"number {found.index} has another hash")
    return found


def latest_txs(at: Connection, limit: int) -> tuple[TxResult, ...]:
    """Return the newest transactions, newest first."""
    found = at.execute("SELECT place FROM txs ORDER BY place DESC LIMIT ?", (limit,))
    return tuple(txs_at(at, [place for (place,) in found.fetchall()]))


def txs_at(at: Connection, places: Iterable[int]) -> Iterator[TxResult]:
    """Yield the transactions at these places; neighbours share the read of their row."""
    part: Slice | None = None
    for each in places:
        height, position = each >> POSITION_BITS, each & LAST_POSITION
        if part is None or not part.has(height, position):
            part = _slice_of(at, height, position)
        yield part.tx_result(position)


def _slice_of(at: Connection, height: int, position: int) -> Slice:
    row = at.execute(
        "SELECT txs, place FROM tx_slices WHERE place BETWEEN ? AND ?"
        " ORDER BY place DESC LIMIT 1",
        (place(height), place(height, position)),
    ).fetchone()
    if row is None:
        raise DamagedRow("transactions", height, f"number {position} is missing")
    return Slice(*row)


def unchecked(at: Connection, height: int) -> frozenset[str]:
    """Return the fields of a block that this chain computes in its own way."""
    row = at.execute("SELECT unchecked FROM blocks WHERE height = ?", (height,)).fetchone()
    return frozenset(row[0].split()) if row else frozenset()


def all_unchecked(at: Connection) -> dict[str, Range]:
    """Return all such fields, with the number of their blocks, the lowest and the highest."""
    found: dict[str, Range] = {}
    for names, *each in at.execute(
        "SELECT unchecked, count(*), min(height), max(height) FROM blocks"
        " WHERE unchecked <> '' GROUP BY unchecked"
    ):
        for name in names.split():
            count, low, high = found.get(name, (0, each[1], each[2]))
            found[name] = count + each[0], min(low, each[1]), max(high, each[2])
    return found


# Writes.


class Provenance(NamedTuple):
    """Marks of a block that is stored."""

    unchecked: frozenset[str] = frozenset()
    """Fields that this chain computes in its own way."""
    unverified: frozenset[str] = frozenset()
    """What was not looked at."""
    source: str = ""


VERIFIED = Provenance()


def write(
    at: Connection,
    meta: BlockMeta,
    txs: Sequence[bytes],
    results: BlockResults | None,
    events: str | None,
    provenance: Provenance = VERIFIED,
) -> None:
    """Write a block with its results, without its index; ``events`` is what the index
    returned for it."""
    header = meta.header
    if meta.tx_count > LAST_POSITION + 1 or header.height > LAST_HEIGHT:
        raise InvalidBlock(
            f"block {header.height}: the store has heights up to {LAST_HEIGHT}, and"
            f" {LAST_POSITION + 1} transactions in each"
        )
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
    at.executemany(
        "INSERT INTO tx_slices (place, txs) VALUES (?, ?)",
        packed_results.slices(header.height, txs, results.tx_results if results else None),
    )


def write_txs(
    at: Connection,
    height: int,
    tx_hashes: Sequence[bytes],
    results: BlockResults,
    events: Sequence[str | None],
) -> None:
    """Write the look-up rows of a block's transactions; ``events`` is what the index returned
    for each."""
    at.executemany(
        "INSERT INTO txs (place, hash, code, gas_wanted, gas_used, events)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [
            (place(height, position), tx_hash, r.code, r.gas_wanted, r.gas_used, indexed)
            for position, (tx_hash, r, indexed) in enumerate(
                zip(tx_hashes, results.tx_results, events, strict=True)
            )
        ],
    )


def write_commit(at: Connection, commit: Commit) -> None:
    """Write the precommits for a block, in place of those that were stored."""
    addresses = state.addresses(at, commit.height)
    at.execute(
        'INSERT OR REPLACE INTO commits (height, "commit") VALUES (?, ?)',
        (commit.height, packed.pack_commit(commit, addresses)),
    )
    votes.write(at, commit, addresses)
