"""Reads of blocks, their commits, results and transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...domain.abci import BlockResults, Events, ExecTxResult
from ...domain.block import (
    NO_COMMIT,
    Block,
    BlockID,
    BlockMeta,
    Commit,
    Evidence,
    Header,
    SignedHeader,
)
from ...domain.search import TxResult
from ...domain.validator import ValidatorSet
from ...protocol.comet.hashes import EMPTY_HASH, evidence_hash, validators_hash
from ...protocol.comet.hashes import tx_hash as hash_of
from ...protocol.comet.key_types import are_known
from . import evidence, state
from .connection import Connection
from .packed import blocks as packed
from .packed.blocks import LAST_POSITION, POSITION_BITS, DamagedRow, Slice, place

# Evidence hashes of blocks without evidence; Tendermint before 0.34 used empty bytes.
_NO_EVIDENCE = (EMPTY_HASH, b"")

Range = tuple[int, int, int]

# A place (height and index of a transaction in one integer) must fit in 64 signed bits.
LAST_HEIGHT = (1 << 63 - POSITION_BITS) - 1


def places(low: int, high: int) -> tuple[int, int]:
    """Return the lowest and highest place of a range of heights."""
    last = place(min(high, LAST_HEIGHT), LAST_POSITION)
    return place(min(max(low, 0), LAST_HEIGHT)), last


def is_stored(at: Connection, height: int) -> bool:
    """Return true if the block is stored."""
    found = at.execute("SELECT 1 FROM blocks WHERE height = ?", (height,)).fetchone()
    if found is None:
        _refuse_gap(at, height)
    return found is not None


def _refuse_gap(at: Connection, height: int) -> None:
    """Raise :exc:`DamagedRow` if a height that is not stored lies between stored heights."""
    low, high = _range(at)
    if low is not None and low < height < high:
        raise DamagedRow("header", height, "it is missing")


def _range(at: Connection) -> tuple[int | None, int]:
    found: tuple[int | None, int] = at.execute(
        f"SELECT (SELECT min(height) FROM {at.engine.heights}),"
        f" (SELECT max(height) FROM {at.engine.heights})"
    ).fetchone()
    return found


def meta(at: Connection, height: int, chain_id: str) -> BlockMeta | None:
    """Return the metadata of a block; ``None`` if it is not stored."""
    row = at.execute("SELECT header FROM blocks WHERE height = ?", (height,)).fetchone()
    if row is None:
        _refuse_gap(at, height)
        return None
    return packed.unpack_meta(row[0], height, chain_id)


def height_of(at: Connection, block_hash: bytes) -> int | None:
    """Return the height of the block with this hash; ``None`` if it is not stored."""
    found = at.execute(at.engine.header_by_hash, (block_hash,))
    row: tuple[int, bytes] | None = found.fetchone()
    if row is None:
        return None
    height, header = row
    if packed.unpack_meta(header, height, "").block_id.hash != block_hash:
        raise DamagedRow("header", height, "it has another hash")
    return height


def metas(at: Connection, low: int, high: int, chain_id: str) -> tuple[BlockMeta, ...]:
    """Return the metadata of a range of stored blocks, highest first."""
    found = at.execute(
        "SELECT header, height FROM blocks WHERE height BETWEEN ? AND ? ORDER BY height DESC",
        (low, high),
    ).fetchall()
    base, latest = _range(at)
    if base is not None:
        heights = {height for _, height in found}
        for height in range(max(low, base), min(high, latest) + 1):
            if height not in heights:
                raise DamagedRow("header", height, "it is missing")
    return tuple([packed.unpack_meta(row, height, chain_id) for row, height in found])


def lowest_meta(at: Connection, chain_id: str) -> BlockMeta | None:
    """Return the metadata of the lowest stored block; ``None`` if no block is stored."""
    (lowest,) = at.execute(f"SELECT min(height) FROM {at.engine.heights}").fetchone()
    return None if lowest is None else meta(at, lowest, chain_id)


# Read a block with its commit and the validator set that signed it in one statement, because
# each statement is a round trip to a remote database.
_WITH_COMMIT = (
    'SELECT header, "commit", members, since, until, {more} FROM blocks AS b'
    " LEFT JOIN commits AS c ON c.height = :signed"
    " LEFT JOIN validator_sets ON since ="
    "  (SELECT max(since) FROM validator_sets WHERE since <= :signed)"
    " WHERE b.height = :height"
)
# Read the first row of transactions in the same statement; usually it is the only one.
_FIRST_SLICE = "(SELECT txs FROM tx_slices WHERE place = :first)"
_BLOCK = _WITH_COMMIT.format(
    more=f"EXISTS (SELECT 1 FROM evidence AS e WHERE e.height = b.height), {_FIRST_SLICE}"
)
_OWN_COMMIT = _WITH_COMMIT.format(more="(SELECT max(height) FROM blocks)")
_HEADER_AND_TXS = f"SELECT header, {_FIRST_SLICE} FROM blocks WHERE height = :height"
_RESULTS = f"SELECT results, {_FIRST_SLICE} FROM results WHERE height = :height"


def block(at: Connection, height: int, chain_id: str) -> tuple[BlockID, Block] | None:
    """Return a block with its ID; ``None`` if it is not stored."""
    row = at.execute(
        _BLOCK, {"height": height, "signed": height - 1, "first": places(height, height)[0]}
    ).fetchone()
    if row is None:
        _refuse_gap(at, height)
        return None
    packed_meta, packed_commit, *members, has_evidence, first_slice = row
    found = packed.unpack_meta(packed_meta, height, chain_id)
    header = found.header
    pieces = evidence.block_evidence(at, height) if has_evidence else ()
    _check_evidence(at, header, pieces)
    last_commit = _unpack_commit(packed_commit, height - 1, members) or NO_COMMIT
    if last_commit.block_id.hash != header.last_block_id.hash:
        raise DamagedRow("commit", height - 1, "it is missing, or for another block")
    txs = _txs(at, height, found.tx_count, first_slice)
    return found.block_id, Block(header, txs, pieces, last_commit, found.form)


def meta_with_txs(
    at: Connection, height: int, chain_id: str
) -> tuple[BlockMeta, tuple[bytes, ...]] | None:
    """Return the metadata and the transactions of a block; ``None`` if it is not stored."""
    row = at.execute(
        _HEADER_AND_TXS, {"height": height, "first": places(height, height)[0]}
    ).fetchone()
    if row is None:
        _refuse_gap(at, height)
        return None
    found = packed.unpack_meta(row[0], height, chain_id)
    return found, _txs(at, height, found.tx_count, row[1])


def _check_evidence(at: Connection, header: Header, pieces: Sequence[Evidence]) -> None:
    """Raise :exc:`DamagedRow` if the evidence does not match the header's evidence hash."""
    if not pieces and header.evidence_hash in _NO_EVIDENCE:
        return
    if evidence_hash(pieces) == header.evidence_hash:
        return
    # Ignore the difference if the chain computes this hash in its own way and the block has
    # evidence; the hash of an empty list is known.
    if not pieces or "evidence_hash" not in unchecked(at, header.height):
        raise DamagedRow(
            "evidence", header.height, "it is missing, or differs from the header's hash"
        )


def events(at: Connection, height: int) -> Events:
    """Return the block events of a height, without those of transactions; its results must be
    stored."""
    (row,) = at.execute("SELECT results FROM results WHERE height = ?", (height,)).fetchone()
    return packed.unpack_block_events(row, height)


def _txs(at: Connection, height: int, count: int, first_slice: bytes) -> tuple[bytes, ...]:
    txs = tuple([tx for part in _parts(at, height, count, first_slice) for tx in part.txs])
    if len(txs) != count:
        raise DamagedRow("transactions", height, f"only {len(txs)} of {count} are stored")
    return txs


def _parts(at: Connection, height: int, count: int, first_slice: bytes | None) -> list[Slice]:
    """Return the slices (rows of several transactions) of a block; the first was already
    read."""
    if not count:
        return []
    if first_slice is None:
        return _slices(at, height)
    part = Slice(first_slice, place(height))
    return [part] if len(part.txs) == count else [part, *_slices(at, height, len(part.txs))]


def _slices(at: Connection, height: int, position: int = 0) -> list[Slice]:
    """Return the slices of a block that contain its transactions from index ``position``
    on."""
    found = at.execute(
        "SELECT txs, place FROM tx_slices WHERE place BETWEEN ? AND ? ORDER BY place",
        (place(height, position), place(height, LAST_POSITION)),
    )
    return [Slice(row, first) for row, first in found]


def commit(at: Connection, height: int) -> Commit | None:
    """Return the commit for the block at this height; ``None`` if it is not stored."""
    row = at.execute('SELECT "commit" FROM commits WHERE height = ?', (height,)).fetchone()
    if row is None:
        return None
    return packed.unpack_commit(row[0], height, lambda: state.addresses(at, height))


def _unpack_commit(row: bytes | None, height: int, members: Sequence[Any]) -> Commit | None:
    """Unpack a commit; ``members`` are the columns of the validator set that signed it."""
    if row is None:
        return None
    return packed.unpack_commit(row, height, lambda: state.addresses_in(members, height))


def signed_header(
    at: Connection, height: int, chain_id: str
) -> tuple[SignedHeader, bool] | None:
    """Return a stored header with its commit, and true if the next block is stored; ``None``
    if the block is not stored."""
    row = at.execute(_OWN_COMMIT, {"height": height, "signed": height}).fetchone()
    if row is None:
        _refuse_gap(at, height)
        return None
    packed_meta, packed_commit, *members, latest = row
    own = packed.unpack_meta(packed_meta, height, chain_id)
    found = _unpack_commit(packed_commit, height, members)
    if found is None or found.block_id.hash != own.block_id.hash:
        raise DamagedRow("commit", height, "it is missing, or for another block")
    return SignedHeader(own.header, found, own.form), height < latest


def results(at: Connection, height: int) -> BlockResults | None:
    """Return the results of a block; ``None`` if they are not stored."""
    row = at.execute(
        _RESULTS, {"height": height, "first": places(height, height)[0]}
    ).fetchone()
    if row is None and is_stored(at, height):
        raise DamagedRow("results", height, "they are missing")
    if row is None or row[0] is None:
        return None
    of_block, first_slice = row

    def of_txs(count: int) -> tuple[ExecTxResult, ...]:
        parts = _parts(at, height, count, first_slice)
        return tuple(packed.all_results(parts))

    return packed.unpack_results(of_block, height, of_txs)


def txs_with_results(at: Connection, height: int) -> tuple[list[bytes], list[ExecTxResult]]:
    """Return the transactions of a block with their results."""
    found = _slices(at, height)
    return (
        [tx for part in found for tx in part.txs],
        packed.all_results(found),
    )


def tx(at: Connection, tx_hash: bytes) -> TxResult | None:
    """Return the transaction with this hash; ``None`` if it is not stored."""
    here, row, first = at.execute(at.engine.tx_by_hash, {"hash": tx_hash}).fetchone()
    if here is None:
        return None
    height, position = here >> POSITION_BITS, here & LAST_POSITION
    if row is None:
        raise _missing(height, position)
    found = Slice(row, first).tx_result(position)
    if hash_of(found.tx) != tx_hash:
        raise DamagedRow("transactions", found.height, f"number {found.index} has another hash")
    return found


def latest_txs(at: Connection, limit: int) -> tuple[TxResult, ...]:
    """Return the newest transactions, newest first."""
    found = at.execute(
        f"SELECT place FROM txs WHERE place >= {at.engine.lowest_kept} << {POSITION_BITS}"
        " ORDER BY place DESC LIMIT ?",
        (limit,),
    )
    return tuple(txs_at(at, [place for (place,) in found.fetchall()]))


def txs_at(at: Connection, places: Iterable[int]) -> Iterator[TxResult]:
    """Yield the transactions at these places. Adjacent places in one row read the row once."""
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
        raise _missing(height, position)
    return Slice(*row)


def _missing(height: int, position: int) -> DamagedRow:
    return DamagedRow("transactions", height, f"number {position} is missing")


def check_validators(at: Connection, height: int, found: ValidatorSet) -> None:
    """Raise :exc:`DamagedRow` if a validator set does not match the block's header."""
    row = at.execute(
        "SELECT header, unchecked || unverified FROM blocks WHERE height = ?", (height,)
    ).fetchone()
    if row is None or "validators_hash" in row[1] or not are_known(found):
        return
    header = packed.unpack_meta(row[0], height, "").header
    if validators_hash(found) != header.validators_hash:
        raise DamagedRow("validator set", height, "it differs from the header's hash")


def unchecked(at: Connection, height: int) -> frozenset[str]:
    """Return the fields of a block that this chain computes differently from CometBFT."""
    row = at.execute("SELECT unchecked FROM blocks WHERE height = ?", (height,)).fetchone()
    return frozenset(row[0].split()) if row else frozenset()


def all_unchecked(at: Connection) -> dict[str, Range]:
    """Return the fields that any block has as unchecked; for each one the number of such
    blocks, and their lowest and highest height."""
    return _marked_blocks(at, "unchecked")


def all_unverified(at: Connection) -> dict[str, Range]:
    """Return the fields that any block has as unverified; for each one the number of such
    blocks, and their lowest and highest height."""
    return _marked_blocks(at, "unverified")


def _marked_blocks(at: Connection, column: str) -> dict[str, Range]:
    found: dict[str, Range] = {}
    for names, *each in at.execute(
        f"SELECT {column}, count(*), min(height), max(height) FROM blocks"
        f" WHERE {column} <> '' GROUP BY {column}"
    ):
        for name in names.split():
            count, low, high = found.get(name, (0, each[1], each[2]))
            found[name] = count + each[0], min(low, each[1]), max(high, each[2])
    return found


def sources(at: Connection) -> dict[str, Range]:
    """Return the nodes that blocks were read from; for each one the number of blocks, and
    their lowest and highest height."""
    found = at.execute(
        "SELECT source, count(*), min(height), max(height) FROM blocks"
        " WHERE source <> '' GROUP BY source"
    )
    return {source: (count, low, high) for source, count, low, high in found}
