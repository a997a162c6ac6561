"""``CompanionBackend``: serves a chain that is followed into a store, and forwards the rest."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cached_property, partial
from typing import Any, TypeVar

from ..backends.base.application import ApplicationAccess
from ..backends.base.capabilities import FORWARDED_CALLS, Capability, Mempool
from ..backends.base.evidence import EvidencePool
from ..backends.base.health import Health
from ..backends.base.provenance import mark_coverage
from ..backends.base.store import ChainStore
from ..backends.base.store_backend import StoreBackend
from ..domain.abci import BlockResults
from ..domain.block import Block, BlockID, BlockMeta, Commit, SignedHeader
from ..domain.genesis import ConsensusParams, Genesis, GenesisSource
from ..domain.network import BackfillProgress
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
from ..signals import emit, results_refuted
from . import shared_state
from .agreement import check_chain
from .chain_health import NO_BLOCK, CompanionHealth
from .evm import ForwardedEvm
from .follower import Follower, FollowOptions
from .forward import (
    ForwardedApplication,
    ForwardedEvidence,
    ForwardedMempool,
    ForwardedNetwork,
)
from .forward_pool import ForwardUpstreams, Reserve
from .older import OlderReads
from .pool import Upstreams
from .searches import ForwardedSearches

T = TypeVar("T")


class CompanionBackend(StoreBackend):
    """A backend beside running nodes.

    Blocks, results and searches are read from ``store``; mempool, application and network are
    asked of the nodes. ``connect`` makes the upstreams that are followed, ``connect_forward``
    those that clients wait for, and ``connect_evm`` what asks their EVM JSON-RPC. A process of
    its own calls :meth:`follow`: one that serves only reads.
    """

    def __init__(
        self,
        store: ChainStore,
        connect: Callable[[], Upstreams],
        connect_forward: Callable[[], ForwardUpstreams],
        options: FollowOptions,
        connect_evm: Callable[[], ForwardedEvm] | None = None,
    ) -> None:
        super().__init__(store)
        self._connect, self._connect_forward = connect, connect_forward
        self._connect_evm, self._options = connect_evm, options
        self.reserve: Reserve = nullcontext
        """Occupies the thread of a request while a node is asked."""
        self._start_lock = threading.Lock()
        self._started_pid = 0
        self._has_begun = False
        self._follower: Follower | None = None

    def chain_id(self) -> str:
        self._check_begun()
        return super().chain_id()

    def initial_height(self) -> int:
        self._check_begun()
        return super().initial_height()

    def _check_begun(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.NotReady` before the first block is there."""
        if not self._has_begun:
            if not self.store.has_chain():
                error = self.network.last_error()
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
        """Return the lowest height that is indexed, if a search goes below it; else 0."""
        self._check_begun()
        lowest = self.lowest_indexed()
        return lowest if lowest > max(search.low, self.initial_height()) else 0

    @cached_property
    def _searches(self) -> ForwardedSearches:
        return ForwardedSearches(self._forward, self.store)

    def is_final(self, height: int, *, results: bool) -> bool:
        return not results or self._options.head_delay > 0 or height < self.latest_height()

    # What the store does not have yet.

    @cached_property
    def _older(self) -> OlderReads:
        return OlderReads(self._forward, self.store, self._options.fetch.unchecked)

    def lowest_readable(self) -> int:
        return self.initial_height()

    def _read(
        self, height: int, stored: Callable[[int], T], asked: Callable[[int, NotFound], T]
    ) -> T:
        self._check_begun()
        try:
            return stored(height)
        except ResultNotFound as missing:
            # During a backfill, the validators of stored heights too.
            if not self.initial_height() <= height <= self.latest_height():
                raise
            return asked(height, missing)
        except NotFound as missing:
            if not self.initial_height() <= height < self.base_height():
                raise
            return asked(height, missing)

    def block(self, height: int) -> tuple[BlockID, Block]:
        return self._read(height, super().block, self._older.block)

    def hash_at(self, height: int) -> bytes:
        return self._read(
            height,
            super().hash_at,
            lambda height, missing: self._older.meta(height, missing).block_id.hash,
        )

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
            # Those of stored blocks may be missing, too.
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

    # What the nodes answer.

    @cached_property
    def _forward(self) -> Upstreams:
        upstreams = self._connect_forward()
        upstreams.check = partial(check_chain, self.store, self._options.fetch.chain_id)
        upstreams.reserve, upstreams.refused_elsewhere = self.reserve, self._refused
        return upstreams

    def _refused(self) -> dict[str, str]:
        # A store is made when a chain is known to be there.
        return shared_state.refused(self.store) if self.store.is_made() else {}

    @cached_property
    def mempool(self) -> Mempool:
        return ForwardedMempool(self._forward)

    @property
    def evidence(self) -> EvidencePool:
        return ForwardedEvidence(self._forward)

    @cached_property
    def application(self) -> ApplicationAccess:
        return ForwardedApplication(self._forward, self.store.latest_height)

    @cached_property
    def network(self) -> ForwardedNetwork:
        return ForwardedNetwork(
            self.chain_id, self._forward, self.store.latest_height, self._options.head_delay
        )

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        forwarded = {FORWARDED_CALLS: self._evm} if self._connect_evm else {}
        return {**super().capabilities, **forwarded}

    @cached_property
    def _evm(self) -> ForwardedEvm:
        assert self._connect_evm is not None
        nodes = self._connect_evm()
        nodes.reserve, nodes.known_block = self.reserve, self._latest_block
        return nodes

    def _latest_block(self) -> tuple[int, bytes] | None:
        height = self.store.latest_height()
        return (height, self.hash_at(height)) if height else None

    # Lifecycle.

    def follow(self) -> None:
        with self._start_lock:
            if self._started_pid != os.getpid():
                self._follower = Follower(
                    self.store, self._connect(), self._options, self._emit_refuted
                )
                self._follower.start()
                self._started_pid = os.getpid()

    def backfill_progress(self) -> BackfillProgress | None:
        return shared_state.backfill(self.store)

    def _emit_refuted(self, height: int) -> None:
        emit(results_refuted, self, height=height)

    @property
    def health(self) -> Health:
        return CompanionHealth(self.store, self.network)

    def has_all_rounds(self) -> bool:
        return False

    def awaits_first_block(self) -> bool:
        """Return true until the first block is stored, unless an error prevents that."""
        return self.store.latest_height() == 0 and not self.store.lease_state().last_error

    def close(self) -> None:
        """Stop to follow the chain, and close connections and files."""
        with self._start_lock:
            follower, self._follower = self._follower, None
            if follower is not None and self._started_pid == os.getpid():
                follower.stop()
            self._started_pid = 0
            forward = self.__dict__.pop("_forward", None)
            if forward is not None:
                forward.close()
            for name in (
                "network",
                "application",
                "mempool",
                "_older",
                "_searches",
            ):
                self.__dict__.pop(name, None)
            evm = self.__dict__.pop("_evm", None)
            if evm is not None:
                evm.close()
            super().close()
