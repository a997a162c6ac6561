"""``CompanionReads``: reads from the store, and from the nodes for data that the store
lacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from ..backends.base.reads import mark_coverage
from ..backends.sql.reads import SQLReads
from ..backends.sql.store import ChainStore
from ..domain.abci import BlockResults
from ..domain.block import Block, BlockID, BlockMeta, Commit, SignedHeader
from ..domain.genesis import ConsensusParams, Genesis, GenesisSource
from ..domain.search import FoundHeights, FoundTxs, Page, Search, SearchLimits, TxResult
from ..domain.validator import ValidatorSet
from ..errors import (
    BlockNotFound,
    HeightNotAvailable,
    NotFound,
    NotReady,
    ResultNotFound,
    TxNotFound,
)
from ..protocol.comet.validate_basic import HASH_SIZE
from .chain_health import NO_BLOCK
from .follower import FollowOptions
from .older import OlderReads
from .pool import Upstreams
from .searches import ForwardedSearches

T = TypeVar("T")


class CompanionReads(SQLReads):
    """Reads of a followed chain's store.

    Missing blocks are read from the nodes; the first such read calls ``upstreams`` to connect.
    ``last_error`` returns why no node responds now, or an empty string.
    """

    def __init__(
        self,
        store: ChainStore,
        upstreams: Callable[[], Upstreams],
        options: FollowOptions,
        last_error: Callable[[], str],
    ) -> None:
        super().__init__(store.reads.files, store.reads.engine)
        self._store, self._connect, self._last_error = store, upstreams, last_error
        self._head_delay, self._unchecked = options.head_delay, options.fetch.unchecked
        self._has_begun = False

    def chain_id(self) -> str:
        self._check_begun()
        return super().chain_id()

    def initial_height(self) -> int:
        self._check_begun()
        return super().initial_height()

    def _check_begun(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.NotReady` until the first block is stored."""
        if not self._has_begun:
            if not self._store.has_chain():
                error = self._last_error()
                raise NotReady(f"{NO_BLOCK}: {error}" if error else NO_BLOCK)
            self._has_begun = True

    def genesis(self) -> Genesis:
        self._check_begun()
        return super().genesis()

    def genesis_source(self) -> GenesisSource | None:
        self._check_begun()
        return super().genesis_source()

    def search_txs(
        self, search: Search, page: Page, limits: SearchLimits, prove: bool = False
    ) -> FoundTxs:
        if lowest := self._lowest_to_ask_below(search):
            found = self._searches.txs(search, page, prove, lowest)
            if found is not None:
                return found
            mark_coverage(lowest, self.latest_height())
        return super().search_txs(search, page, limits, prove)

    def search_blocks(self, search: Search, page: Page, limits: SearchLimits) -> FoundHeights:
        if lowest := self._lowest_to_ask_below(search):
            found = self._searches.heights(search, page, lowest)
            if found is not None:
                return found
            mark_coverage(lowest, self.latest_height())
        return super().search_blocks(search, page, limits)

    def _lowest_to_ask_below(self, search: Search) -> int:
        """Return the lowest indexed height, if a search goes below it; otherwise 0."""
        self._check_begun()
        lowest = self.lowest_indexed()
        return lowest if lowest > max(search.low, self.initial_height()) else 0

    @cached_property
    def _searches(self) -> ForwardedSearches:
        return ForwardedSearches(self._connect(), self._store)

    def is_final(self, height: int, *, results: bool) -> bool:
        return not results or self._head_delay > 0 or height < self.latest_height()

    # Heights below the stored blocks, which are read from the nodes.

    @cached_property
    def _older(self) -> OlderReads:
        return OlderReads(self._connect(), self._store, self._unchecked)

    def lowest_readable(self) -> int:
        return self.initial_height()

    def _read(
        self, height: int, stored: Callable[[int], T], asked: Callable[[int, NotFound], T]
    ) -> T:
        self._check_begun()
        try:
            return stored(height)
        except ResultNotFound as missing:
            # During a backfill, the store may have a block but not yet its validators.
            if not self.initial_height() <= height <= self.latest_height():
                raise
            return asked(height, missing)
        except NotFound as missing:
            if not self.initial_height() <= height < self.base_height():
                raise
            return asked(height, missing)

    def block(self, height: int) -> tuple[BlockID, Block]:
        return self._read(height, super().block, self._older.block)

    def block_meta(self, height: int) -> BlockMeta:
        return self._read(height, super().block_meta, self._older.meta)

    def block_txs(self, height: int) -> tuple[BlockMeta, tuple[bytes, ...]]:
        return self._read(
            height,
            super().block_txs,
            lambda height, missing: (
                self._older.meta(height, missing),
                self._older.block(height, missing)[1].txs,
            ),
        )

    def block_metas(self, low: int, high: int) -> tuple[BlockMeta, ...]:
        self._check_begun()
        base = self.base_height()
        stored = super().block_metas(max(low, base), high) if high >= base else ()
        if low >= base:
            return stored
        try:
            top = min(high, base - 1)
            return (*stored, *self._older.metas(low, top, HeightNotAvailable(low, base, high)))
        except HeightNotAvailable:
            return stored

    def height_of(self, block_hash: bytes) -> int:
        self._check_begun()
        try:
            return super().height_of(block_hash)
        except BlockNotFound as missing:
            if len(block_hash) != HASH_SIZE or self.base_height() <= self.initial_height():
                raise
            return self._older.height_of(block_hash, missing)

    def results(self, height: int) -> BlockResults:
        self._check_begun()
        try:
            return super().results(height)
        except NotFound as missing:
            # No node had the results of this block at the backfill, but one may have them now.
            if not self.initial_height() <= height < self.lowest_results():
                raise
            return self._older.results(height, missing)

    def commit(self, height: int) -> Commit:
        return self._read(height, super().commit, self._older.commit)

    def signed_header(self, height: int) -> tuple[SignedHeader, bool]:
        return self._read(height, super().signed_header, self._older.signed_header)

    def validators(self, height: int) -> ValidatorSet:
        return self._read(height, super().validators, self._older.validators)

    def consensus_params(self, height: int) -> ConsensusParams:
        return self._read(height, super().consensus_params, self._older.params)

    def tx(self, tx_hash: bytes) -> TxResult:
        self._check_begun()
        try:
            return super().tx(tx_hash)
        except TxNotFound as missing:
            if self.lowest_indexed() <= self.initial_height():
                raise
            return self._older.tx(tx_hash, missing)

    def close(self) -> None:
        for name in ("_older", "_searches"):
            self.__dict__.pop(name, None)
        super().close()
