"""Writes of blocks, their commits, results and transactions.

Hashes and rows are computed before the write lock is taken. Several blocks are then written
together, because one statement for many rows is faster than one statement per row.

The table ``missed_votes`` lists the validators that did not vote for a block, so that a
validator's signing record is one query. Votes for the block are only in the packed commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

from ...concurrency import next_turn
from ...domain.abci import BlockResults, ExecTxResult, PackedEvents
from ...domain.block import Block, BlockIDFlag, BlockMeta, Commit
from ...errors import InvalidBlock
from ...event_aliases import searchable
from ...protocol.comet import hashes
from ...protocol.comet.hashes import BlockHashes
from ..base.new_blocks import BlockWithoutResults, CommittedBlock, OlderBlock
from . import evidence, hits, index, state
from .blocks import LAST_HEIGHT
from .blocks import results as stored_results
from .connection import Connection
from .hits import BlockTxs
from .index import NO_ENTRIES, Entries
from .index_steps import weight
from .packed import blocks as packed
from .packed.blocks import LAST_POSITION, place


class Provenance(NamedTuple):
    """Source of a block, and its fields that were not checked or verified."""

    unchecked: frozenset[str] = frozenset()
    """Fields that this chain computes differently from CometBFT."""
    unverified: frozenset[str] = frozenset()
    """Fields that could not be verified yet."""
    source: str = ""


VERIFIED = Provenance()

_NOTHING: Mapping[int, str] = {}


def check_place(height: int, tx_count: int) -> None:
    """Raise :exc:`InvalidBlock` if a block's height or number of transactions is too large for
    a place, the integer of height and index that locates a transaction."""
    if not 0 < height <= LAST_HEIGHT or tx_count > LAST_POSITION + 1:
        raise InvalidBlock(
            f"block {height}: expected a height from 1 to {LAST_HEIGHT} and at most"
            f" {LAST_POSITION + 1} transactions, got {tx_count} transactions"
        )


PackedSlice = tuple[int, bytes]


class BlockRow(NamedTuple):
    """Row of a block, without its transactions; ``events`` is the column of that name, which
    the event index returns."""

    meta: BlockMeta
    results: BlockResults | None
    events: str | None = None
    provenance: Provenance = VERIFIED

    def fields(self) -> tuple[object, ...]:
        """Return the values of the row's columns."""
        meta, provenance = self.meta, self.provenance
        header = meta.header
        return (
            header.height,
            meta.block_id.hash,
            header.time,
            header.proposer_address,
            meta.size,
            meta.tx_count,
            packed.pack_meta(meta),
            self.events,
            " ".join(sorted(provenance.unchecked)),
            " ".join(sorted(provenance.unverified)),
            provenance.source,
        )


def write_blocks(at: Connection, rows: Sequence[BlockRow]) -> None:
    """Write blocks with their block results, but without transactions and their results."""
    at.executemany(
        "INSERT INTO blocks (height, hash, time, proposer, size, tx_count, header, events,"
        " unchecked, unverified, source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [row.fields() for row in rows],
    )
    at.executemany(
        "INSERT INTO results (height, results) VALUES (?, ?)",
        [
            (meta.header.height, results and packed.pack_results(results))
            for meta, results, *_ in rows
        ],
    )


def write_slices(at: Connection, slices: Iterable[PackedSlice]) -> None:
    """Write the packed transactions of blocks with their results."""
    at.executemany("INSERT INTO tx_slices (place, txs) VALUES (?, ?)", slices)


def write_app_hash(at: Connection, height: int, app_hash: bytes) -> None:
    """Store the app hash, from the following header, in the results of a height that lack
    it."""
    found = stored_results(at, height)
    if found is not None and not found.app_hash:
        row = packed.pack_results(replace(found, app_hash=app_hash))
        at.execute("UPDATE results SET results = ? WHERE height = ?", (row, height))


TxRow = tuple[int, bytes, int, int, int, str | None]


def tx_rows(
    height: int,
    tx_hashes: Sequence[bytes],
    tx_results: Sequence[ExecTxResult],
    events: Mapping[int, str] = _NOTHING,
    first: int = 0,
) -> Iterator[TxRow]:
    """Yield rows of the table ``txs`` for a block's transactions, the first of which has the
    index ``first``; ``events`` has the values of the column ``events`` by place."""
    for position, (tx_hash, r) in enumerate(zip(tx_hashes, tx_results, strict=True), first):
        here = place(height, position)
        yield here, tx_hash, r.code, r.gas_wanted, r.gas_used, events.get(here)


def write_txs(at: Connection, rows: Iterable[TxRow]) -> None:
    """Write rows of the table ``txs``, which locates transactions by hash."""
    at.executemany(
        "INSERT INTO txs (place, hash, code, gas_wanted, gas_used, events)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        rows,
    )


def write_commits(at: Connection, commits: Sequence[Commit]) -> None:
    """Write commits, replacing stored commits of the same heights."""
    addresses = state.addresses_by_height(at, [commit.height for commit in commits])
    signed = [(commit, addresses[commit.height]) for commit in commits]
    at.executemany(
        'INSERT INTO commits (height, "commit") VALUES (?, ?)'
        ' ON CONFLICT (height) DO UPDATE SET "commit" = excluded."commit"',
        [(commit.height, packed.pack_commit(commit, known)) for commit, known in signed],
    )
    _write_votes(at, signed)


def _write_votes(at: Connection, signed: Sequence[tuple[Commit, Sequence[bytes]]]) -> None:
    """Write the missed votes of commits, replacing stored ones. ``signed`` has each commit
    with the addresses of its validators."""
    at.executemany(
        "DELETE FROM missed_votes WHERE height = ?", [(commit.height,) for commit, _ in signed]
    )
    lacking = [
        (commit.height, address, flag)
        for commit, addresses in signed
        for address, flag in missed_votes(commit, addresses)
    ]
    ids = _validator_ids(at, dict.fromkeys(address for _, address, _ in lacking))
    at.executemany(
        "INSERT INTO missed_votes (height, validator_id, flag) VALUES (?, ?, ?)",
        [(height, ids[address], flag) for height, address, flag in lacking],
    )


def missed_votes(commit: Commit, addresses: Sequence[bytes]) -> list[tuple[bytes, int]]:
    """Return the address and flag of each validator whose vote is absent or for nil; an empty
    list if the validators are unknown."""
    if len(addresses) != len(commit.signatures):
        return []
    return [
        (address, int(sig.block_id_flag))
        for address, sig in zip(addresses, commit.signatures, strict=True)
        if sig.block_id_flag != BlockIDFlag.COMMIT
    ]


def stored_votes(at: Connection, height: int) -> list[tuple[bytes, int]]:
    """Return the stored missed votes of a height as pairs of address and flag."""
    return at.execute(
        "SELECT address, flag FROM missed_votes LEFT JOIN validators ON id = validator_id"
        " WHERE height = ?",
        (height,),
    ).fetchall()


def _validator_ids(at: Connection, addresses: Iterable[bytes]) -> dict[bytes, int]:
    """Return the row IDs of validators; new validators are inserted."""
    wanted = [(address,) for address in addresses]
    at.executemany("INSERT INTO validators (address) VALUES (?) ON CONFLICT DO NOTHING", wanted)
    found = at.each("SELECT id FROM validators WHERE address = ?", wanted)
    return {address: rows[0][0] for (address,), rows in zip(wanted, found, strict=True)}


B = TypeVar("B", CommittedBlock, BlockWithoutResults, OlderBlock)


class Rows(NamedTuple):
    """Packed transactions of a block, and its index entries."""

    slices: Sequence[PackedSlice] = ()
    weight: int = 0
    """Cost of indexing its transactions, in units of one attribute."""
    tx_entries: Entries = NO_ENTRIES
    block_entries: Entries = NO_ENTRIES
    is_large: bool = False
    """True for large results, whose entries are not computed before they are written."""


Precomputed = tuple[BlockHashes, Rows]


class Prepared(NamedTuple, Generic[B]):
    """A block with its hashes and rows, computed before the write lock is taken."""

    block_item: B
    hashes: BlockHashes
    rows: Rows


def prepare(items: Iterable[B]) -> list[Prepared[B]]:
    """Compute the hashes and rows of blocks, unless another process has done so."""
    found = []
    for item in items:
        known: Precomputed | None = item.precomputed
        if known is None and _is_large(item.block):
            # Let other greenlets run: computing the hashes of one block may take 20 ms.
            next_turn()
        found.append(Prepared(item, *(known or precompute(item.block, item.results))))
    return found


def _is_large(block: Block) -> bool:
    return bool(block.txs) or len(block.last_commit.signatures) > 1


def precompute(block: Block, results: BlockResults | None) -> Precomputed:
    """Compute the hashes and rows of a block."""
    return hashes.block_hashes(block), _rows(block, results)


def precomputed_apart(block: Block, results: BlockResults) -> tuple[BlockResults, Precomputed]:
    """Compute the hashes and rows of a block; return also its results without the events of
    transactions, which are not needed then and take long to send to another process."""
    found = precompute(block, results)
    if found[1].is_large:
        return results, found
    tx_results = tuple(
        each if hits.has_hits(each) else replace(each, events=()) for each in results.tx_results
    )
    return replace(results, tx_results=tx_results), found


def _rows(block: Block, results: BlockResults | None) -> Rows:
    height = block.header.height
    if results is None:
        return Rows(tuple(packed.slices(height, block.txs, None)))
    if len(results.tx_results) != len(block.txs):
        # The number of results is wrong: the block is refused later, so don't pack it.
        return Rows()
    slices = tuple(packed.slices(height, block.txs, results.tx_results))
    cost = weight(results.tx_results)
    events = (results.block_events, *(each.events for each in results.tx_results))
    if any(isinstance(each, PackedEvents) for each in events):
        return Rows(slices, cost, is_large=True)
    return Rows(
        slices,
        cost,
        index.tx_entries(results.tx_results),
        index.entries([results.block_events]),
    )


# Weight of a block without transactions: it takes as long as this many indexed attributes.
_BLOCK_WEIGHT = 50


class NewBlock(NamedTuple):
    """A block that is about to be written."""

    meta: BlockMeta
    block: Block
    tx_hashes: Sequence[bytes]
    rows: Rows
    results: BlockResults | None
    provenance: Provenance
    is_indexed: bool = True

    @property
    def height(self) -> int:
        """Height of the block."""
        return self.meta.header.height

    def places(self) -> list[int]:
        """Return the places of the transactions."""
        return [place(self.height, position) for position in range(len(self.tx_hashes))]


class Batch:
    """Blocks and commits that are about to be written together; full at a weight of
    ``most``."""

    def __init__(self, at: Connection, most: int) -> None:
        self.at = at
        self._most, self._weight = most, 0
        self._blocks: list[NewBlock] = []
        self._commits: dict[int, Commit] = {}

    @property
    def is_full(self) -> bool:
        """True if the batch should be written now, to limit its memory and the time of the
        write."""
        return self._weight >= self._most

    @property
    def heights_text(self) -> str:
        """Heights of the blocks, for errors."""
        heights = [each.height for each in self._blocks]
        low, high = min(heights), max(heights)
        return f"block {low}" if low == high else f"blocks {low} to {high}"

    def add(self, found: NewBlock) -> None:
        """Add a block to the batch."""
        check_place(found.height, found.meta.tx_count)
        self._blocks.append(found)
        self._weight += _BLOCK_WEIGHT + found.rows.weight

    def add_commit(self, commit: Commit) -> None:
        """Add a commit; it replaces one of the same height in this batch."""
        self._commits[commit.height] = commit

    def has_commit(self, height: int) -> bool:
        """Return true if the batch has a commit of this height."""
        return height in self._commits

    def write(self) -> None:
        """Write the batch and empty it."""
        blocks, commits = self._blocks, list(self._commits.values())
        heights = [each.height for each in blocks] + [each.height for each in commits]
        if heights:
            self.at.engine.prepare_range(self.at, min(heights), max(heights))
        if blocks:
            self._write(blocks)
        if commits:
            write_commits(self.at, commits)
        self._blocks, self._commits, self._weight = [], {}, 0

    def _write(self, found: Sequence[NewBlock]) -> None:
        at = self.at
        block_events, tx_events = _index(at, found)
        write_blocks(
            at,
            [
                BlockRow(
                    each.meta, each.results, block_events.get(each.height), each.provenance
                )
                for each in found
            ],
        )
        write_slices(at, chain.from_iterable(each.rows.slices for each in found))
        with_results = [(each, each.results) for each in found if each.results is not None]
        write_txs(
            at,
            [
                row
                for each, results in with_results
                for row in tx_rows(each.height, each.tx_hashes, results.tx_results, tx_events)
            ],
        )
        hits.write(
            at,
            [
                BlockTxs(each.height, each.block.txs, results.tx_results)
                for each, results in with_results
            ],
        )
        for each in found:
            evidence.write(at, each.height, each.block.evidence)


def _index(at: Connection, found: Sequence[NewBlock]) -> tuple[dict[int, str], dict[int, str]]:
    """Index the events of blocks; return the values of the columns ``events``: of blocks by
    height, and of transactions by place."""
    known = [(each.tx_hashes, each.results) for each in found if each.results is not None]
    left_out = index.repeated_failures(at, known)
    small, large = list[NewBlock](), list[NewBlock]()
    for each in found:
        if each.is_indexed and each.results is not None:
            (large if each.rows.is_large else small).append(each)
    texts = index.write(
        at, index.BLOCK, [(each.rows.block_entries, [each.height]) for each in small]
    )
    tx_texts = index.write(
        at, index.TX, [each.rows.tx_entries.without(each.places(), left_out) for each in small]
    )
    for each in large:
        assert each.results is not None, "it is indexed"
        texts |= index.write_events(at, index.BLOCK, [(each.height, each.results.block_events)])
        txs = zip(each.places(), each.results.tx_results, strict=True)
        kept = ((here, searchable(tx.events)) for here, tx in txs if here not in left_out)
        tx_texts |= index.write_events(at, index.TX, kept)
    return texts, tx_texts
