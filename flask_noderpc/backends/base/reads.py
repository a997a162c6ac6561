"""Reads of a chain: its version, blocks, state, transactions, and the wait for new heights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from ...domain.abci import BlockResults
from ...domain.block import Block, BlockID, BlockMeta, Commit
from ...domain.genesis import ConsensusParams, Genesis
from ...domain.search import TxRecord
from ...domain.validator import ValidatorSet


class ChainVersion(NamedTuple):
    """While it is equal, every answer that depends on the chain alone is the same."""

    history: Hashable
    """The same while blocks are added, and nothing that was there is changed or dropped."""
    head: Hashable
    """The latest block."""


class ChainReads(ABC):
    """Blocks, state and transactions of a chain; the abstract methods are required.

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

    def base_meta(self) -> BlockMeta:
        """The oldest stored block, without its content; raise ``HeightNotAvailable``.

        One that forgets blocks reads both at once: between two looks it may be gone.
        """
        return self.block_meta(self.base_height())

    @abstractmethod
    def height_of(self, block_hash: bytes) -> int:
        """Return the height of this block; raise :exc:`~flask_noderpc.errors.BlockNotFound`."""

    def hash_at(self, height: int) -> bytes:
        """The hash of the block at a height; raise ``HeightNotAvailable``."""
        return self.block_meta(height).block_id.hash

    @abstractmethod
    def commit(self, height: int) -> Commit:
        """The precommits for the block: those that the next block carries, or, at the
        latest height, those seen here. Raise ``HeightNotAvailable``."""

    @abstractmethod
    def results(self, height: int) -> BlockResults:
        """Return the results of the block; raise ``HeightNotAvailable`` or
        :exc:`~flask_noderpc.errors.ResultNotFound`."""

    def version(self) -> ChainVersion | None:
        """Return the chain's version, by which answers are cached; ``None`` if it is unknown
        and nothing is cached."""
        return None

    def read_view(self) -> AbstractContextManager[ChainVersion | None]:
        """Give all reads of this thread one snapshot, where the store can; yield its version.
        Hold it briefly; :meth:`version` still returns the current version."""
        return nullcontext(self.version())

    def block_metas(self, low: int, high: int) -> tuple[BlockMeta, ...]:
        """The metas of a range, both ends included, highest first."""
        return tuple(self.block_meta(height) for height in range(high, low - 1, -1))

    # State.

    @abstractmethod
    def genesis(self) -> Genesis:
        """The document the chain started from."""

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
    def tx(self, tx_hash: bytes) -> TxRecord:
        """The transaction; raise :exc:`~flask_noderpc.errors.TxNotFound`.

        A hash committed more than once gives the latest that succeeded, or the latest.
        """

    def latest_txs(self, limit: int) -> tuple[TxRecord, ...]:
        """The newest transactions, newest first; the default knows none."""
        return ()

    # Events are cursors over heights, not callbacks.

    @abstractmethod
    def wait_for_height(self, after: int, timeout: float) -> int:
        """The latest height, as soon as it is above ``after`` or ``timeout`` seconds on."""
