"""Reads of a chain: blocks, state, transactions, and searches, by default without an index.

The author of a backend implements the abstract methods of :class:`ChainReads`. A read may
leave a mark, which belongs to the thread or greenlet of its call and is a header of the
response.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

from ...domain.abci import BlockResults
from ...domain.block import (
    Block,
    BlockID,
    BlockMeta,
    Commit,
    Evidence,
    LightClientAttackEvidence,
    SignedHeader,
)
from ...domain.genesis import ConsensusParams, Genesis, GenesisSource
from ...domain.search import FoundHeights, FoundTxs, Page, Search, SearchLimits, TxResult
from ...domain.validator import ED25519, PublicKey, Validator, ValidatorSet
from ...errors import (
    GenesisNotAvailable,
    NotFound,
    SearchIncomplete,
    SearchTooCostly,
    TxNotFound,
)
from ...event_aliases import searchable
from ...protocol.comet.hashes import tx_hash, tx_proof


class ChainVersion(NamedTuple):
    """While it is equal, every answer that depends on the chain alone is the same."""

    history: Hashable
    """The same while blocks are added, and nothing that was there is changed or dropped."""
    head: Hashable
    """The latest block."""


class ChainReads(ABC):
    """Reads of blocks, state and transactions of a chain; the abstract methods are required.

    All values are domain types; a missing one is a typed error and never ``None``.
    """

    # Blocks.

    @abstractmethod
    def latest_height(self) -> int:
        """Height of the newest block; 0 while there is none."""

    @abstractmethod
    def base_height(self) -> int:
        """Height of the oldest block stored; 0 while there is none."""

    @abstractmethod
    def block(self, height: int) -> tuple[BlockID, Block]:
        """The block; raise :exc:`~flask_noderpc.errors.HeightNotAvailable`."""

    @abstractmethod
    def block_meta(self, height: int) -> BlockMeta:
        """The block without its content; raise ``HeightNotAvailable``."""

    def block_txs(self, height: int) -> tuple[BlockMeta, tuple[bytes, ...]]:
        """The block with its transactions alone; raise ``HeightNotAvailable``.

        A commit of many validators takes longer to read than all else.
        """
        return self.block_meta(height), self.block(height)[1].txs

    def base_meta(self) -> BlockMeta:
        """The oldest stored block, without its content; raise ``HeightNotAvailable``.

        One that forgets blocks reads both at once: between two looks it may be gone.
        """
        return self.block_meta(self.base_height())

    @abstractmethod
    def height_of(self, block_hash: bytes) -> int:
        """Return the height of this block; raise :exc:`~flask_noderpc.errors.BlockNotFound`."""

    def unchecked(self, height: int) -> frozenset[str]:
        """Fields of a block that this chain computes in another way than CometBFT."""
        return frozenset()

    def lowest_results(self) -> int:
        """Height from which on all blocks have their results."""
        return self.base_height()

    def lowest_indexed(self) -> int:
        """Height from which on all blocks can be searched."""
        return self.base_height()

    def lowest_readable(self) -> int:
        """The lowest height that may be read: that of the lowest block, unless others are read
        from elsewhere."""
        return self.base_height()

    def is_final(self, height: int, *, results: bool) -> bool:
        """Return false if what is read of a height may change, or its ``results`` and what
        follows from them: where one node alone has reported it."""
        return True

    def hash_at(self, height: int) -> bytes:
        """The hash of the block at a height; raise ``HeightNotAvailable``."""
        return self.block_meta(height).block_id.hash

    @abstractmethod
    def commit(self, height: int) -> Commit:
        """The precommits for the block: those that the next block carries, or, at the
        latest height, those seen here. Raise ``HeightNotAvailable``."""

    def signed_header(self, height: int) -> tuple[SignedHeader, bool]:
        """The header of a block with its commit, and true if the next block carries that
        commit. Raise ``HeightNotAvailable``."""
        # Read before the commit: a block that arrives meanwhile may carry another.
        latest = self.latest_height()
        commit = self.commit(height)
        meta = self.block_meta(height)
        return SignedHeader(meta.header, commit, meta.form), height < latest

    @abstractmethod
    def results(self, height: int) -> BlockResults:
        """Return the results of the block; raise ``HeightNotAvailable`` or
        :exc:`~flask_noderpc.errors.ResultNotFound`."""

    def version(self) -> ChainVersion | None:
        """Return the chain's version, by which answers are cached; ``None`` if it is unknown
        and nothing is cached."""
        return None

    def read_view(self) -> AbstractContextManager[ChainVersion | None]:
        """Let all reads of this thread use one snapshot, if possible; yield its version.
        Hold it briefly; :meth:`version` still returns the current version."""
        return nullcontext(self.version())

    def block_metas(self, low: int, high: int) -> tuple[BlockMeta, ...]:
        """The metas of a range, both ends included, highest first."""
        return tuple(self.block_meta(height) for height in range(high, low - 1, -1))

    def reorgs_since(self, number: int) -> tuple[int, int | None]:
        """Return the number of the last reorg, and the lowest height left since reorg
        ``number``; ``None`` where there was none."""
        return number, None

    def refuted_since(self, number: int) -> tuple[int, tuple[int, ...]]:
        """Return the number of refutations of results, and the heights of those after number
        ``number``; by default results are final."""
        return number, ()

    # State.

    @abstractmethod
    def genesis(self) -> Genesis:
        """The document the chain started from; raise
        :exc:`~flask_noderpc.errors.GenesisNotAvailable` where it is not known."""

    def genesis_source(self) -> GenesisSource | None:
        """Return where the chunks of the genesis document are from, if they are stored as
        another node sent them; by default they are not."""
        return None

    def genesis_chunk(self, number: int) -> bytes:
        """Return such a chunk; raise :exc:`~flask_noderpc.errors.GenesisNotAvailable`."""
        raise GenesisNotAvailable

    def chain_id(self) -> str:
        """The chain's id, which is known without the genesis document."""
        return self.genesis().chain_id

    def initial_height(self) -> int:
        """Height of the chain's first block, which may not be stored."""
        return self.genesis().initial_height

    @abstractmethod
    def validators(self, height: int) -> ValidatorSet:
        """The set that signs this height, known up to two above the latest; raise
        :exc:`~flask_noderpc.errors.ResultNotFound`."""

    @abstractmethod
    def consensus_params(self, height: int) -> ConsensusParams:
        """The parameters in force, known up to one above the latest; raise
        ``ResultNotFound``."""

    # Transactions.

    @abstractmethod
    def tx(self, tx_hash: bytes) -> TxResult:
        """The transaction; raise :exc:`~flask_noderpc.errors.TxNotFound`.

        A hash committed more than once gives the latest that succeeded, or the latest.
        """

    def latest_txs(self, limit: int) -> tuple[TxResult, ...]:
        """The newest transactions, newest first; the default knows none."""
        return ()

    def search_txs(
        self, search: Search, page: Page, limits: SearchLimits, prove: bool = False
    ) -> FoundTxs:
        """The transactions found by attributes of their events, with proofs where asked for;
        raise :exc:`~flask_noderpc.errors.SearchTooCostly`.

        By default one block after another is looked at; a backend with an index of its own is
        faster.
        """
        return scan_txs(self, search, page, limits, prove)

    def search_blocks(self, search: Search, page: Page, limits: SearchLimits) -> FoundHeights:
        """The heights of the blocks found; raise ``SearchTooCostly``."""
        return scan_blocks(self, search, page, limits)

    # Events are cursors over heights, not callbacks.

    @abstractmethod
    def wait_for_height(self, after: int, timeout: float) -> int:
        """The latest height, as soon as it is above ``after`` or ``timeout`` seconds on."""

    def byzantine_validators(self, evidence: Evidence) -> tuple[Validator, ...]:
        """The validators that a piece of evidence accuses, as they were at its height."""
        if isinstance(evidence, LightClientAttackEvidence):
            return evidence.byzantine_validators
        address = evidence.vote_a.validator_address
        try:
            known = self.validators(evidence.height).by_address.get(address)
        except NotFound:
            known = None
        # Where that set was pruned, the address is all that is known.
        unknown = Validator(address, PublicKey(ED25519, b""), evidence.validator_power)
        return (known[1] if known else unknown,)

    def close(self) -> None:
        """Close files and connections; the next read opens them again."""


T = TypeVar("T")


def scan_txs(
    blocks: ChainReads, search: Search, page: Page, limits: SearchLimits, prove: bool
) -> FoundTxs:
    """The transactions found in a page."""
    found = [
        (height, index)
        for height, results in _results(blocks, search, limits)
        for index, result in enumerate(results.tx_results)
        if search.matches(searchable(result.events)) and not _is_repeat(blocks, height, index)
    ]
    positions = _cut(found, page)
    remaining_bytes = limits.size
    records = []
    for height, index in positions:
        records.append(_record(blocks, height, index, prove))
        remaining_bytes -= len(records[-1].tx)
        if remaining_bytes < 0:
            raise SearchTooCostly.by_size(limits.size)
    return FoundTxs(len(found), tuple(records))


def scan_blocks(
    blocks: ChainReads, search: Search, page: Page, limits: SearchLimits
) -> FoundHeights:
    """The heights of blocks found in a page."""
    found = [
        height
        for height, results in _results(blocks, search, limits)
        if search.matches(results.begin_block_events + results.end_block_events)
    ]
    return FoundHeights(len(found), tuple(_cut(found, page)))


def _results(
    blocks: ChainReads, search: Search, limits: SearchLimits
) -> Iterator[tuple[int, BlockResults]]:
    deadline = time.monotonic() + limits.seconds
    rows = limits.rows
    low, high = max(search.low, blocks.base_height()), min(search.high, blocks.latest_height())
    for height in range(max(low, 1), high + 1):
        results = blocks.results(height)
        rows -= 1 + len(results.tx_results)
        if rows < 0:
            raise SearchTooCostly.by_rows(limits.rows)
        if time.monotonic() > deadline:
            raise SearchTooCostly.by_time(limits.seconds)
        yield height, results


def _cut(found: list[T], page: Page) -> Sequence[T]:
    ordered = found[::-1] if page.newest_first else found
    return ordered[page.offset : page.offset + page.limit]


def _is_repeat(blocks: ChainReads, height: int, index: int) -> bool:
    """Return true for a failure after the same transaction had succeeded, which hides it."""
    if blocks.results(height).tx_results[index].code == 0:
        return False
    try:
        best = blocks.tx(tx_hash(blocks.block(height)[1].txs[index]))
    except TxNotFound:
        return False
    return best.result.code == 0 and (best.height, best.index) < (height, index)


def _record(blocks: ChainReads, height: int, index: int, prove: bool) -> TxResult:
    of_block = blocks.block(height)[1].txs
    proof = tx_proof(of_block, index) if prove else None
    result = blocks.results(height).tx_results[index]
    return TxResult(height, index, of_block[index], result, proof)


Marks = tuple[tuple[str, str], ...]
"""Names of headers with their values."""

UNVERIFIED = "X-NodeRPC-Provenance", "unverified"
COVERAGE = "X-NodeRPC-Coverage"

_MARKS: ContextVar[Marks] = ContextVar("marks", default=())


def begin_reads() -> None:
    """Forget what was read by an earlier call."""
    _MARKS.set(())


def mark_unverified() -> None:
    """Mark the reads of this call: what one of them returned is proven by nothing."""
    _mark(UNVERIFIED)


def mark_coverage(low: int, high: int) -> None:
    """Mark a search of this call: it has looked at these heights, and at no others."""
    _mark((COVERAGE, f"{low}-{high}"))


def check_complete() -> None:
    """Raise :exc:`~flask_noderpc.errors.SearchIncomplete` if a search of this call has looked
    at some heights alone, for a response that has no headers to say so."""
    for name, heights in _MARKS.get():
        if name == COVERAGE:
            low = heights.partition("-")[0]
            raise SearchIncomplete(
                f"the search has looked at heights {heights} alone, and a response over a"
                f" websocket can't say so: add tx.height >= {low} to the query (block.height in"
                f" block_search), or send it over HTTP, where the header {COVERAGE} says so"
            )


def _mark(mark: tuple[str, str]) -> None:
    known = _MARKS.get()
    if mark not in known:
        _MARKS.set((*known, mark))


def marks() -> Marks:
    """Return the marks of this call; a result with any is not cached."""
    return _MARKS.get()
