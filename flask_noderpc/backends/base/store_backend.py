"""Backend that reads from a store, with capabilities of its own; the embedded chain is one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from ...domain.abci import BlockResults
from ...domain.block import Block, BlockID, BlockMeta, Commit, SignedHeader
from ...domain.genesis import ConsensusParams, Genesis, GenesisSource
from ...domain.search import FoundHeights, FoundTxs, Page, Search, SearchLimits, TxResult
from ...domain.validator import ValidatorSet
from .application import ApplicationAccess
from .backend import ChainBackend
from .capabilities import Capability, Mempool
from .evidence import EvidencePool
from .filters import Filters
from .reads import ChainVersion
from .store import ChainStore


class StoreBackend(ChainBackend):
    """Reads a chain from a :class:`ChainStore`, and has the store's capabilities.

    A subclass replaces those that it has itself.
    """

    def __init__(self, store: ChainStore) -> None:
        self.store = store
        """The store of the chain: its blocks, index, state and mempool."""

    @property
    def path(self) -> str:
        """The store's file name or URI, as given."""
        return self.store.location.path

    # Capabilities.

    @property
    def mempool(self) -> Mempool:
        return self.store.mempool

    @property
    def evidence(self) -> EvidencePool:
        return self.store.evidence

    @property
    def application(self) -> ApplicationAccess:
        return self.store.application

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        return self.store.capabilities

    @property
    def filters(self) -> Filters:
        return self.store.filters

    # Blocks.

    def latest_height(self) -> int:
        return self.store.latest_height()

    def base_height(self) -> int:
        return self.store.base_height()

    def base_meta(self) -> BlockMeta:
        return self.store.base_meta()

    def block(self, height: int) -> tuple[BlockID, Block]:
        return self.store.block(height)

    def block_meta(self, height: int) -> BlockMeta:
        return self.store.block_meta(height)

    def block_txs(self, height: int) -> tuple[BlockMeta, tuple[bytes, ...]]:
        return self.store.block_txs(height)

    def block_metas(self, low: int, high: int) -> tuple[BlockMeta, ...]:
        return self.store.block_metas(low, high)

    def unchecked(self, height: int) -> frozenset[str]:
        return self.store.unchecked(height)

    def lowest_results(self) -> int:
        return self.store.lowest_results()

    def lowest_indexed(self) -> int:
        return self.store.lowest_indexed()

    def hash_at(self, height: int) -> bytes:
        return self.store.hash_at(height)

    def height_of(self, block_hash: bytes) -> int:
        return self.store.height_of(block_hash)

    def commit(self, height: int) -> Commit:
        return self.store.commit(height)

    def signed_header(self, height: int) -> tuple[SignedHeader, bool]:
        own = type(self)
        if own.commit is StoreBackend.commit and own.block_meta is StoreBackend.block_meta:
            return self.store.signed_header(height)
        # A subclass has changed what it is made of.
        return super().signed_header(height)

    def results(self, height: int) -> BlockResults:
        return self.store.results(height)

    def version(self) -> ChainVersion | None:
        return self.store.version()

    def read_view(self) -> AbstractContextManager[ChainVersion | None]:
        return self.store.read_view()

    def reorgs_since(self, number: int) -> tuple[int, int | None]:
        return self.store.reorgs_since(number)

    def refuted_since(self, number: int) -> tuple[int, tuple[int, ...]]:
        return self.store.refuted_since(number)

    # State.

    def genesis(self) -> Genesis:
        return self.store.genesis()

    def genesis_source(self) -> GenesisSource | None:
        return self.store.genesis_source()

    def genesis_chunk(self, number: int) -> bytes:
        return self.store.genesis_chunk(number)

    def chain_id(self) -> str:
        return self.store.chain_id()

    def initial_height(self) -> int:
        return self.store.initial_height()

    def validators(self, height: int) -> ValidatorSet:
        return self.store.validators(height)

    def consensus_params(self, height: int) -> ConsensusParams:
        return self.store.consensus_params(height)

    # Transactions.

    def tx(self, tx_hash: bytes) -> TxResult:
        return self.store.tx(tx_hash)

    def latest_txs(self, limit: int) -> tuple[TxResult, ...]:
        return self.store.latest_txs(limit)

    def search_txs(
        self, search: Search, page: Page, limits: SearchLimits, prove: bool = False
    ) -> FoundTxs:
        return self.store.search_txs(search, page, limits, prove)

    def search_blocks(self, search: Search, page: Page, limits: SearchLimits) -> FoundHeights:
        return self.store.search_blocks(search, page, limits)

    # Events.

    def wait_for_height(self, after: int, timeout: float) -> int:
        return self.store.wait_for_height(after, timeout)

    def close(self) -> None:
        self.store.close()
