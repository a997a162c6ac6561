"""Reads of a chain: blocks, state, transactions, and searches, by default without an index.

A backend implements the abstract methods of :class:`ChainReads`. A read may add a mark to the
current request, such as "unverified", which becomes a response header.
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
    """Version of the chain, for caches: if two versions are equal, results that only depend on
    the chain are equal as well."""

    history: Hashable
    """Value that changes if stored data is changed or removed, but not if blocks are added."""
    head: Hashable
    """Value that identifies the latest block."""


class ChainReads(ABC):
    """Reads of blocks, state and transactions of a chain; the abstract methods are required.

    All values are domain types. If a value is missing, a method raises an error of its own
    type instead of returning ``None``.
    """

    # Blocks.

    @abstractmethod
    def latest_height(self) -> int:
        """Return the height of the newest block; 0 if no block is stored."""

    @abstractmethod
    def base_height(self) -> int:
        """Return the height of the oldest stored block; 0 if no block is stored."""

    @abstractmethod
    def block(self, height: int) -> tuple[BlockID, Block]:
        """Return the block; raise :exc:`~flask_noderpc.errors.HeightNotAvailable`."""

    @abstractmethod
    def block_meta(self, height: int) -> BlockMeta:
        """Return the block's ID, size and header; raise ``HeightNotAvailable``."""

    def block_txs(self, height: int) -> tuple[BlockMeta, tuple[bytes, ...]]:
        """Return the block's metadata and transactions; raise ``HeightNotAvailable``.

        A backend should not read the commit, which takes longest if there are many validators.
        """
        return self.block_meta(height), self.block(height)[1].txs

    def base_meta(self) -> BlockMeta:
        """Return the metadata of the oldest stored block; raise ``HeightNotAvailable``.

        A backend that prunes blocks must read height and metadata in one step, as the block
        may be pruned in between.
        """
        return self.block_meta(self.base_height())

    @abstractmethod
    def height_of(self, block_hash: bytes) -> int:
        """Return the height of the block with this hash; raise
        :exc:`~flask_noderpc.errors.BlockNotFound`."""

    def unchecked(self, height: int) -> frozenset[str]:
        """Return the fields of a block that this chain computes differently from CometBFT."""
        return frozenset()

    def lowest_results(self) -> int:
        """Return the lowest height from which all blocks have results."""
        return self.base_height()

    def lowest_indexed(self) -> int:
        """Return the lowest height from which all blocks are indexed for searches."""
        return self.base_height()

    def lowest_readable(self) -> int:
        """Return the lowest readable height: the lowest stored height, unless older blocks are
        read from elsewhere."""
        return self.base_height()

    def is_final(self, height: int, *, results: bool) -> bool:
        """Return false if the data of a height may still change, as it comes from one node and
        nothing proves it yet. ``results`` is true if the data is or depends on the results of
        the block."""
        return True

    def hash_at(self, height: int) -> bytes:
        """Return the hash of the block at a height; raise ``HeightNotAvailable``."""
        return self.block_meta(height).block_id.hash

    @abstractmethod
    def commit(self, height: int) -> Commit:
        """Return the commit for the block: the one in the next block or, at the latest height,
        the one that this node has seen. Raise ``HeightNotAvailable``."""

    def signed_header(self, height: int) -> tuple[SignedHeader, bool]:
        """Return the header of a block with its commit, and true if the next block contains
        that commit. Raise ``HeightNotAvailable``."""
        # Read the latest height before the commit: a block that arrives in between may contain
        # another commit.
        latest = self.latest_height()
        commit = self.commit(height)
        meta = self.block_meta(height)
        return SignedHeader(meta.header, commit, meta.form), height < latest

    @abstractmethod
    def results(self, height: int) -> BlockResults:
        """Return the results of the block; raise ``HeightNotAvailable`` or
        :exc:`~flask_noderpc.errors.ResultNotFound`."""

    def version(self) -> ChainVersion | None:
        """Return the chain's version, under which results are cached; ``None`` disables
        caching."""
        return None

    def read_view(self) -> AbstractContextManager[ChainVersion | None]:
        """In this context, all reads of this thread use one snapshot, if possible; yield its
        version. Keep the context short. :meth:`version` still returns the current version."""
        return nullcontext(self.version())

    def block_metas(self, low: int, high: int) -> tuple[BlockMeta, ...]:
        """Return the metadata of a range of blocks, both ends included, highest first."""
        return tuple(self.block_meta(height) for height in range(high, low - 1, -1))

    def reorgs_since(self, number: int) -> tuple[int, int | None]:
        """Return the number of the last reorg, and the lowest height to which a reorg after
        reorg ``number`` reverted the chain; ``None`` if there was no such reorg."""
        return number, None

    def refuted_since(self, number: int) -> tuple[int, tuple[int, ...]]:
        """Return the number of refutations of stored results, and the heights whose results
        were refuted after refutation ``number``; by default results are final."""
        return number, ()

    # State.

    @abstractmethod
    def genesis(self) -> Genesis:
        """Return the chain's genesis document; raise
        :exc:`~flask_noderpc.errors.GenesisNotAvailable` if it is not known."""

    def genesis_source(self) -> GenesisSource | None:
        """Return the source of the genesis document's chunks if the chunks of another node are
        stored; ``None`` by default."""
        return None

    def genesis_chunk(self, number: int) -> bytes:
        """Return a stored chunk of the genesis document; raise
        :exc:`~flask_noderpc.errors.GenesisNotAvailable`."""
        raise GenesisNotAvailable

    def chain_id(self) -> str:
        """Return the chain ID, which is known even without the genesis document."""
        return self.genesis().chain_id

    def initial_height(self) -> int:
        """Return the height of the chain's first block, which may not be stored."""
        return self.genesis().initial_height

    @abstractmethod
    def validators(self, height: int) -> ValidatorSet:
        """Return the validator set that signs this height, which is known up to two heights
        above the latest; raise :exc:`~flask_noderpc.errors.ResultNotFound`."""

    @abstractmethod
    def consensus_params(self, height: int) -> ConsensusParams:
        """Return the consensus parameters in force at a height, which are known up to one
        height above the latest; raise ``ResultNotFound``."""

    # Transactions.

    @abstractmethod
    def tx(self, tx_hash: bytes) -> TxResult:
        """Return the transaction; raise :exc:`~flask_noderpc.errors.TxNotFound`.

        If a transaction was committed more than once, return its latest success or, if all
        failed, its latest failure.
        """

    def latest_txs(self, limit: int) -> tuple[TxResult, ...]:
        """Return the newest transactions, newest first; empty by default."""
        return ()

    def search_txs(
        self, search: Search, page: Page, limits: SearchLimits, prove: bool = False
    ) -> FoundTxs:
        """Return the transactions whose events match a search, with proofs if ``prove``; raise
        :exc:`~flask_noderpc.errors.SearchTooCostly`.

        The default scans one block after another. A backend with its own index is faster.
        """
        return scan_txs(self, search, page, limits, prove)

    def search_blocks(self, search: Search, page: Page, limits: SearchLimits) -> FoundHeights:
        """Return the heights of the blocks whose events match a search; raise
        ``SearchTooCostly``."""
        return scan_blocks(self, search, page, limits)

    # New blocks. There are no callbacks: a caller passes the last height it has seen, and waits
    # for a higher one.

    @abstractmethod
    def wait_for_height(self, after: int, timeout: float) -> int:
        """Wait until the latest height is above ``after``, at most ``timeout`` seconds; return
        the latest height."""

    def byzantine_validators(self, evidence: Evidence) -> tuple[Validator, ...]:
        """Return the validators that a piece of evidence accuses, with their power at its
        height."""
        if isinstance(evidence, LightClientAttackEvidence):
            return evidence.byzantine_validators
        address = evidence.vote_a.validator_address
        try:
            known = self.validators(evidence.height).by_address.get(address)
        except NotFound:
            known = None
        # If the validator set of that height was pruned, only address and power are known.
        unknown = Validator(address, PublicKey(ED25519, b""), evidence.validator_power)
        return (known[1] if known else unknown,)

    def close(self) -> None:
        """Close files and connections; the next read opens them again."""


T = TypeVar("T")


def scan_txs(
    blocks: ChainReads, search: Search, page: Page, limits: SearchLimits, prove: bool
) -> FoundTxs:
    """Return a page of the matching transactions, by scanning all blocks in the search's
    range."""
    found = [
        (height, index)
        for height, results in _results(blocks, search, limits)
        for index, result in enumerate(results.tx_results)
        if search.matches(searchable(result.events)) and not _is_repeat(blocks, height, index)
    ]
    positions = _slice_page(found, page)
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
    """Return a page of the heights of matching blocks, by scanning all blocks in the search's
    range."""
    found = [
        height
        for height, results in _results(blocks, search, limits)
        if search.matches(results.begin_block_events + results.end_block_events)
    ]
    return FoundHeights(len(found), tuple(_slice_page(found, page)))


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


def _slice_page(found: list[T], page: Page) -> Sequence[T]:
    ordered = found[::-1] if page.newest_first else found
    return ordered[page.offset : page.offset + page.limit]


def _is_repeat(blocks: ChainReads, height: int, index: int) -> bool:
    """Return true if the transaction failed here after it had succeeded earlier; such failures
    are hidden, as in CometBFT."""
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
"""Names and values of response headers."""

UNVERIFIED = "X-NodeRPC-Provenance", "unverified"
COVERAGE = "X-NodeRPC-Coverage"

_MARKS: ContextVar[Marks] = ContextVar("marks", default=())


def begin_reads() -> None:
    """Reset the marks for a new request."""
    _MARKS.set(())


def mark_unverified() -> None:
    """Mark this request's response as unverified: nothing proves part of the returned data."""
    _mark(UNVERIFIED)


def mark_coverage(low: int, high: int) -> None:
    """Mark this request's response: a search covered only these heights."""
    _mark((COVERAGE, f"{low}-{high}"))


def check_complete() -> None:
    """Raise :exc:`~flask_noderpc.errors.SearchIncomplete` if a search of this request covered
    only some heights. For responses that have no headers to show these."""
    for name, heights in _MARKS.get():
        if name == COVERAGE:
            low = heights.partition("-")[0]
            raise SearchIncomplete(
                f"the search covers only heights {heights}, which a response over a websocket"
                f" can't show: add tx.height >= {low} to the query (block.height in"
                f" block_search), or send it over HTTP, where the header {COVERAGE} shows it"
            )


def _mark(mark: tuple[str, str]) -> None:
    known = _MARKS.get()
    if mark not in known:
        _MARKS.set((*known, mark))


def marks() -> Marks:
    """Return the marks of this request; a result with marks is not cached."""
    return _MARKS.get()
