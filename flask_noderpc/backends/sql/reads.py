"""Reads of a SQL store: blocks, transactions, searches, and chain state."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from ... import jsoncodec
from ...domain.abci import BlockResults
from ...domain.block import Block, BlockID, BlockMeta, Commit, SignedHeader
from ...domain.genesis import ConsensusParams, Genesis, GenesisSource
from ...domain.search import FoundHeights, FoundTxs, Page, Search, SearchLimits, TxResult
from ...domain.validator import ValidatorSet
from ...errors import (
    BlockNotFound,
    GenesisNotAvailable,
    HeightNotAvailable,
    ResultNotFound,
    StoreError,
    TxNotFound,
)
from ..base.reads import ChainReads, ChainVersion
from . import blocks, chain, state
from . import search as index_search
from .connection import Connection, Engine
from .handles import StoreHandles
from .values import GENESIS, chunk_name, read_metadata

T = TypeVar("T")


class SQLReads(ChainReads):
    """Reads of the chain in a store, each in one snapshot."""

    def __init__(self, files: StoreHandles, engine: Engine) -> None:
        self.files, self.engine = files, engine
        self._genesis: Genesis | None = None
        self._beginning: chain.ChainStart | None = None

    # Blocks.

    def latest_height(self) -> int:
        return self.files().latest_height()

    def base_height(self) -> int:
        row = self.files().readers.one(f"SELECT min(height) FROM {self.engine.heights}")
        return row[0] or 0

    def unchecked(self, height: int) -> frozenset[str]:
        return self.files().read(lambda at: blocks.unchecked(at, height), height)

    def lowest_results(self) -> int:
        row = self.files().readers.one("SELECT max(height) FROM results WHERE results IS NULL")
        return row[0] + 1 if row[0] else self.base_height()

    def lowest_indexed(self) -> int:
        row = self.files().readers.one("SELECT max(height) FROM blocks WHERE events IS NULL")
        return row[0] + 1 if row[0] else self.base_height()

    def base_meta(self) -> BlockMeta:
        chain_id = self.chain_id()
        with self.files().readers.snapshot() as at:
            found = blocks.lowest_meta(at, chain_id)
        if found is None:
            raise self._missing(0)
        return found

    def version(self) -> ChainVersion | None:
        return self.files().readers.version()

    def read_view(self) -> AbstractContextManager[ChainVersion | None]:
        return self.files().read_view()

    def _missing(self, height: int) -> HeightNotAvailable:
        return HeightNotAvailable(height, self.base_height(), self.latest_height())

    def block(self, height: int) -> tuple[BlockID, Block]:
        chain_id = self.chain_id()
        found = self.files().read(lambda at: blocks.block(at, height, chain_id), height)
        if found is None:
            raise self._missing(height)
        return found

    def block_meta(self, height: int) -> BlockMeta:
        chain_id = self.chain_id()
        found = self.files().read(lambda at: blocks.meta(at, height, chain_id), height)
        if found is None:
            raise self._missing(height)
        return found

    def block_txs(self, height: int) -> tuple[BlockMeta, tuple[bytes, ...]]:
        chain_id = self.chain_id()
        found = self.files().read(lambda at: blocks.meta_with_txs(at, height, chain_id), height)
        if found is None:
            raise self._missing(height)
        return found

    def block_metas(self, low: int, high: int) -> tuple[BlockMeta, ...]:
        chain_id = self.chain_id()
        return self.files().read(lambda at: blocks.metas(at, low, high, chain_id), high)

    def hash_at(self, height: int) -> bytes:
        return self.block_meta(height).block_id.hash

    def height_of(self, block_hash: bytes) -> int:
        found = self.files().read(lambda at: blocks.height_of(at, block_hash))
        if found is None:
            raise BlockNotFound(block_hash)
        return found

    def commit(self, height: int) -> Commit:
        return self._signed(height)[0].commit

    def signed_header(self, height: int) -> tuple[SignedHeader, bool]:
        return self._signed(height)

    def _signed(self, height: int) -> tuple[SignedHeader, bool]:
        chain_id = self.chain_id()
        # Read from a replica only if it has the next block: that may contain another commit
        # than the one that this node has seen.
        found = self.files().read(
            lambda at: blocks.signed_header(at, height, chain_id), height + 1
        )
        if found is None:
            raise self._missing(height)
        return found

    def results(self, height: int) -> BlockResults:
        def look(at: Connection) -> tuple[BlockResults | None, bool]:
            found = blocks.results(at, height)
            return found, found is not None or blocks.is_stored(at, height)

        found, is_there = self.files().read(look, height)
        if not is_there:
            raise self._missing(height)
        if found is None:
            raise ResultNotFound(
                f"could not find results for height #{height}",
                f"results are stored from height {self.lowest_results()} on",
            )
        return found

    def tx(self, tx_hash: bytes) -> TxResult:
        found = self.files().read(lambda at: blocks.tx(at, tx_hash))
        if found is None:
            raise TxNotFound(tx_hash, self._begins_above())
        return found

    def _begins_above(self) -> str:
        """Return a hint for errors if results or index begin above the lowest block; otherwise
        an empty string."""
        results, indexed = self.lowest_results(), self.lowest_indexed()
        if max(results, indexed) <= self.base_height():
            return ""
        return f"results are stored from height {results} on, and indexed from {indexed} on"

    def latest_txs(self, limit: int) -> tuple[TxResult, ...]:
        return self.files().read(lambda at: blocks.latest_txs(at, limit))

    # Searching.

    def search_txs(
        self, search: Search, page: Page, limits: SearchLimits, prove: bool = False
    ) -> FoundTxs:
        def work(at: Connection) -> FoundTxs:
            return index_search.txs(at, search, page, limits, prove)

        return self._search(work, search, limits)

    def search_blocks(self, search: Search, page: Page, limits: SearchLimits) -> FoundHeights:
        def work(at: Connection) -> FoundHeights:
            return index_search.heights(at, search, page, limits)

        return self._search(work, search, limits)

    def _search(
        self, work: Callable[[Connection], T], search: Search, limits: SearchLimits
    ) -> T:
        files = self.files()
        if search.is_one_height:
            return files.read(work, search.high)
        return files.search_pool.run(work, limits, search.high)

    # State.

    def genesis(self) -> Genesis:
        # Use a local variable, because another thread may close the backend, which clears the
        # attribute.
        found = self._genesis
        if found is None:
            with self.files().readers.snapshot() as at:
                found = self._genesis = chain.stored_genesis(at)
        return found

    def chain_id(self) -> str:
        return self._begins().chain_id

    def initial_height(self) -> int:
        return self._begins().initial_height

    def _begins(self) -> chain.ChainStart:
        found = self._beginning
        if found is None:
            with self.files().readers.snapshot() as at:
                found = chain.chain_start(at)
            if found is None:
                raise StoreError(
                    "the store has no chain yet; call init_chain or init_at first",
                    self.files.location.display_name,
                )
            self._beginning = found
        return found

    def genesis_source(self) -> GenesisSource | None:
        found = self._metadata(GENESIS)
        return jsoncodec.decode(found, GenesisSource) if found else None

    def genesis_chunk(self, number: int) -> bytes:
        found = self._metadata(chunk_name(number))
        if found is None:
            raise GenesisNotAvailable
        return found

    def _metadata(self, name: str) -> bytes | None:
        with self.files().readers.snapshot() as at:
            return read_metadata(at, name)

    def reorgs_since(self, number: int) -> tuple[int, int | None]:
        found = self.files().readers.one(
            "SELECT max(number), min(height) FROM rewinds WHERE number > ?", number
        )
        latest, lowest = found or (None, None)
        return latest or number, lowest

    def refuted_since(self, number: int) -> tuple[int, tuple[int, ...]]:
        with self.files().readers.snapshot() as at:
            rows = at.execute(
                "SELECT number, height FROM refuted_results WHERE number > ? ORDER BY number",
                (number,),
            ).fetchall()
        return rows[-1][0] if rows else number, tuple(row[1] for row in rows)

    def validators(self, height: int) -> ValidatorSet:
        def look(at: Connection) -> ValidatorSet | None:
            found = state.validators(at, height)
            if found is not None:
                blocks.check_validators(at, height, found)
            return found

        found = self.files().read(look, height)
        if found is None:
            raise ResultNotFound(f"could not find validator set for height #{height}")
        return found

    def consensus_params(self, height: int) -> ConsensusParams:
        first = self.initial_height()
        # The genesis parameters are kept when the first blocks are pruned.
        known = height == first or max(first, self.base_height()) <= height
        known = known and height <= self._next_height()
        found = (
            self.files().read(lambda at: state.params(at, height), height) if known else None
        )
        if found is None:
            raise ResultNotFound(f"could not find consensus params for height #{height}")
        return found

    def _next_height(self) -> int:
        _, initial_height, trusted = self._begins()
        before = initial_height - 1 if trusted is None else trusted.header.height
        return (self.latest_height() or before) + 1

    # New blocks.

    def wait_for_height(self, after: int, timeout: float) -> int:
        latest = after

        def is_higher() -> bool:
            nonlocal latest
            latest = self.latest_height()
            return latest > after

        self.files().changes.wait_until(is_higher, timeout)
        return latest

    def close(self) -> None:
        self._genesis = self._beginning = None
        self.files.close()
