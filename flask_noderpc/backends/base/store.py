"""A store that an embedded chain can be built on: a backend that takes blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...domain.abci import BlockResults
from ...domain.block import Block, Commit, Evidence
from ...domain.genesis import Genesis
from ...protocol.comet.chain_state import ChainState
from .application import AppState, BlockLimits, Changes, InitChain
from .backend import ChainBackend

FULL = "the disk or the page limit is full, nothing was written"
"""Prefix of the error with which a full store refuses a write."""


@dataclass(frozen=True, slots=True)
class CommittedBlock:
    """A block on its way into a store."""

    block: Block
    commit: Commit
    """The precommits that finalised this block."""
    results: BlockResults
    changes: Changes = field(default_factory=dict)
    """Its writes to the application's state."""
    consumed: tuple[bytes, ...] = ()
    """Pending transactions that are in the block in another form, or are to be dropped."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to produce blocks; a later epoch overrules an earlier one."""

    owner: str
    epoch: int


@dataclass(frozen=True, slots=True)
class LeaseState:
    """Owner and expiry (ns) of the lease, or the error for which it was released."""

    owner: str = ""
    expires: int = 0
    last_error: str = ""


class BlockWriter(ABC):
    """Role: takes blocks, from a producer or from an importer."""

    @abstractmethod
    def init_chain(self, genesis: Genesis, state: InitChain) -> None:
        """Store the genesis of an empty store; the same genesis again changes nothing."""

    @abstractmethod
    def append_block(self, *blocks: CommittedBlock, lease: Lease | None = None) -> None:
        """Store blocks that follow the head, all of them or none.

        Raise :exc:`~flask_noderpc.errors.InvalidBlock` for a block that does not follow
        or does not match its own hashes, and with a lease
        :exc:`~flask_noderpc.errors.LeaseLost` when another producer has taken over.
        """

    @abstractmethod
    def rewind(self, height: int, changes: Changes, lease: Lease) -> None:
        """Forget the blocks above a height; ``changes`` undo what they wrote into the
        application's state. Raise :exc:`~flask_noderpc.errors.LeaseLost`."""

    @abstractmethod
    def prune_some(self, base: int) -> int:
        """Forget a few of the oldest blocks below a height, and never the latest; how many.

        Bounded, so that other writers wait briefly.
        """

    @abstractmethod
    def head(self) -> ChainState:
        """Return the chain's state; raise ``StoreError`` before :meth:`init_chain`."""

    @abstractmethod
    def app_state(self) -> AppState:
        """The application's committed state."""

    @abstractmethod
    def reap(self, limits: BlockLimits) -> tuple[bytes, ...]:
        """Waiting transactions that fit a block, oldest first."""

    @abstractmethod
    def reap_evidence(self, max_bytes: int) -> tuple[Evidence, ...]:
        """Waiting evidence that fits a block, of the earliest offences first."""

    @abstractmethod
    def drop_pending(self, txs: Sequence[bytes]) -> None:
        """Forget waiting transactions, so that they may be sent again."""

    @abstractmethod
    def wait_for_pending(self, timeout: float) -> bool:
        """Wait until transactions or evidence are pending, ``timeout`` seconds at most; return
        true if any are."""

    @abstractmethod
    def acquire_lease(self, owner: str, seconds: float) -> Lease | None:
        """The lease, when it is free, lapsed or the owner's; else ``None``."""

    @abstractmethod
    def renew_lease(self, lease: Lease, seconds: float) -> bool:
        """Extend the lease by ``seconds``; return false if it was lost."""

    @abstractmethod
    def release_lease(self, lease: Lease, last_error: str = "") -> None:
        """Give the lease back; ``last_error`` is why no block could be made."""

    @abstractmethod
    def lease_state(self) -> LeaseState:
        """Return the owner, expiry and last error of the lease."""


class ChainStore(ChainBackend, BlockWriter):
    """A backend that an embedded chain can be built on."""
