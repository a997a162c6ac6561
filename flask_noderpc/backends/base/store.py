"""``ChainStore``: the abstract store of an embedded chain, with blocks, lease and mempool."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ... import jsoncodec
from ...domain.abci import BlockResults
from ...domain.block import Block, Commit, Evidence, Header
from ...domain.genesis import ConsensusParams, Genesis, GenesisSource
from ...domain.validator import ValidatorSet
from ...errors import (
    GenesisNotAvailable,
    NotSupported,
    ValueNotAllowed,
)
from ...protocol.comet.chain_state import ChainState
from .application import Application, AppState, BlockLimits, Changes, InitChain
from .backend import ChainBackend
from .identity import Identity
from .location import Location
from .verify import verify_chain

# How long others have the lock, at least, between two steps of a long write.
_YIELD_S = 0.005

FULL = "the disk or the page limit is full, nothing was written"
"""Prefix of the error with which a full store refuses a write."""


MAY_BE_UNCHECKED = frozenset(
    {
        "app_hash",
        "consensus_hash",
        "data_hash",
        "evidence_hash",
        "last_commit_hash",
        "last_results_hash",
        "next_validators_hash",
        "results",
        "results.app_hash",
        "time",
        "validators_hash",
        "version.block",
    }
)
"""Fields that a chain may compute in its own way; all others link a block to its parts and to
its neighbours."""


def _check_unchecked(names: frozenset[str]) -> None:
    if others := names - MAY_BE_UNCHECKED:
        raise ValueError(
            f"unchecked: {', '.join(sorted(others))} must be checked; a chain's own may be"
            f" {', '.join(sorted(MAY_BE_UNCHECKED))}"
        )


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
    unchecked: frozenset[str] = frozenset()
    """Fields that this chain computes in another way than CometBFT, such as ``data_hash``:
    they are stored, and marked as not verified. At most :data:`MAY_BE_UNCHECKED`."""
    source: str = ""
    """Where it came from, for the operator."""

    def __post_init__(self) -> None:
        _check_unchecked(self.unchecked)


@dataclass(frozen=True, slots=True)
class BlockWithoutResults:
    """A block on its way into a store whose results no node returns."""

    block: Block
    commit: Commit
    """The precommits that finalised this block."""
    next_validators: ValidatorSet
    """The set of the height after the next one; results might have changed it."""
    params: ConsensusParams
    """The parameters in force at the next height."""
    unchecked: frozenset[str] = frozenset()
    """As of a :class:`CommittedBlock`."""
    source: str = ""
    results: None = field(default=None, init=False)

    def __post_init__(self) -> None:
        _check_unchecked(self.unchecked)


@dataclass(frozen=True, slots=True)
class OlderBlock:
    """A block on its way into a store, below its lowest block."""

    block: Block
    results: BlockResults | None = None
    """``None`` where nobody has them any more."""
    validators: ValidatorSet | None = None
    """The set that signed it, with its priorities; required where it is not that of the
    following height, and useful at the lowest height of a range: priorities can only be
    computed upwards."""
    params: ConsensusParams | None = None
    """The parameters in force at it; needed below a height whose results changed them."""
    unchecked: frozenset[str] = frozenset()
    """As of a :class:`CommittedBlock`."""
    source: str = ""
    is_indexed: bool = True
    """False leaves its events out of the index."""

    def __post_init__(self) -> None:
        _check_unchecked(self.unchecked)


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

    def init_at(
        self,
        chain_id: str,
        initial_height: int,
        header: Header,
        commit: Commit,
        validators: tuple[ValidatorSet, ValidatorSet, ValidatorSet],
        params: ConsensusParams,
    ) -> None:
        """Begin an empty store above a trusted block, without a genesis; the same again changes
        nothing.

        ``commit`` is for the block of ``header``, whose signatures are checked. ``validators``
        are the sets of its height and of the two following ones, ``params`` those of the
        following height. The first block that is appended follows it; it and those before it
        can be added by :meth:`backfill`. Raise :exc:`~flask_noderpc.errors.InvalidBlock` for
        parts that do not fit each other.
        """
        raise NotSupported("this store begins at the genesis")

    def set_genesis(self, genesis: Genesis) -> None:
        """Store the genesis document of a chain that began at a trusted block."""
        raise NotSupported("this store begins at the genesis")

    def set_dialect(self, dialect: str) -> None:
        """Store the dialect of the nodes that the chain comes from."""
        raise NotSupported("this store does not know where its chain comes from")

    def set_metadata(self, name: str, value: bytes) -> None:
        """Store a value by its name, beside the chain, for other processes; by default it is
        not stored."""

    @abstractmethod
    def append_block(self, *blocks: CommittedBlock, lease: Lease | None = None) -> None:
        """Store blocks that follow the head, all of them or none.

        Raise :exc:`~flask_noderpc.errors.InvalidBlock` for a block that does not follow
        or does not match its own hashes, and with a lease
        :exc:`~flask_noderpc.errors.LeaseLost` when another producer has taken over.
        """

    def replace_head(self, item: CommittedBlock) -> None:
        """Replace results and commit of the latest block, such as those that an upstream had
        seen by others', and count it for :meth:`refuted_since`. Raise
        :exc:`~flask_noderpc.errors.InvalidBlock` for another block."""
        raise NotSupported("this store takes each block once")

    def append_without_results(self, item: BlockWithoutResults, lease: Lease) -> None:
        """Store the next block without results, which :meth:`backfill` may add later.

        The caller has checked its validators and parameters against the next header. Raise as
        ``append_block`` does.
        """
        raise NotSupported("this store takes no blocks without results")

    def backfill(self, *blocks: OlderBlock) -> None:
        """Store blocks below the lowest one, highest first, in several short transactions.

        Those that are stored already are left as they are. Raise
        :exc:`~flask_noderpc.errors.InvalidBlock` for a block that the one above it does not
        follow; those before it are stored then.
        """
        raise NotSupported("this store takes no older blocks")

    @abstractmethod
    def rewind(self, height: int, changes: Changes, lease: Lease) -> None:
        """Remove the blocks above a height; ``changes`` undo what they wrote into the
        application's state. Raise :exc:`~flask_noderpc.errors.LeaseLost`."""

    @abstractmethod
    def prune_some(self, base: int) -> int:
        """Remove a few of the oldest blocks below a height, never the latest; return how many.

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
        """Remove pending transactions, so that they may be sent again."""

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
        """Release the lease; ``last_error`` is the reason why no block could be produced."""

    @abstractmethod
    def lease_state(self) -> LeaseState:
        """Return the owner, expiry and last error of the lease."""


class ChainStore(ChainBackend, BlockWriter):
    """A backend that an embedded chain can be built on."""

    abci: Application | None = None
    """The application that checks pending transactions, set by the chain that has the store."""

    @property
    @abstractmethod
    def location(self) -> Location:
        """The location, as given."""

    @property
    def read_only(self) -> bool:
        """True if nothing can be written."""
        return False

    def is_made(self) -> bool:
        """Return true if there is a store already, which the first other call would make."""
        return self.location.may_have_chain()

    @abstractmethod
    def has_chain(self) -> bool:
        """Return true after :meth:`init_chain`."""

    @abstractmethod
    def identity(self) -> Identity | None:
        """Return the chain id and the application of the store; ``None`` without a chain."""

    def metadata(self, name: str) -> bytes | None:
        """Return what :meth:`set_metadata` stored; ``None`` if it did not."""
        return None

    def set_genesis_chunks(self, source: GenesisSource, chunks: Sequence[bytes]) -> None:
        """Store the genesis document as a node sent it; nothing proves it."""
        for number, chunk in enumerate(chunks):
            self.set_metadata(f"genesis.{number}", chunk)
        # Last: with it they are complete.
        self.set_metadata("genesis", jsoncodec.encode(source))

    def genesis_source(self) -> GenesisSource | None:
        """Return where the document is from."""
        found = self.metadata("genesis")
        return jsoncodec.decode(found, GenesisSource) if found else None

    def genesis_chunk(self, number: int) -> bytes:
        """Return a chunk of it."""
        found = self.metadata(f"genesis.{number}")
        if found is None:
            raise GenesisNotAvailable
        return found

    def settle(self) -> None:
        """Wait until the transactions that this process submitted are stored, or refused."""

    def has_free_space(self) -> bool:
        """Return true if there is space for a block, as far as can be known."""
        return True

    def risk_of_loss(self) -> str:
        """Return why stored blocks may be lost where another server takes over; empty where
        they are not."""
        return ""

    # Maintenance.

    def prune(self, retain: int, progress: Callable[[int], None] | None = None) -> int:
        """Retain the latest blocks, prune those before; return how many were pruned.

        ``progress`` is called with the number pruned by each of many short transactions,
        between which others write.
        """
        self._check_retain(retain)
        base, pruned = self.latest_height() - retain + 1, 0
        while True:
            began = time.monotonic()
            few = self.prune_some(base)
            if not few:
                return pruned
            pruned += few
            if progress is not None:
                progress(few)
            # Those that wait for a lock may have to poll it.
            time.sleep(max(_YIELD_S, time.monotonic() - began))

    def _check_retain(self, retain: int) -> None:
        minimum = self.abci.needs_blocks if self.abci else 1
        if retain < minimum:
            raise ValueNotAllowed(
                f"{retain} blocks are too few to keep, the chain needs the last {minimum}"
            )

    def backup(
        self,
        target: str | os.PathLike[str],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Copy the store to a new file while it is in use.

        ``progress`` is called with the number of remaining pages, and of all.
        """
        raise NotSupported("this store can't be copied to a file")

    def all_unchecked(self) -> dict[str, tuple[int, int, int]]:
        """Return the fields that this chain computes in another way than CometBFT, each with
        the number of its blocks, the lowest and the highest height."""
        return {}

    def unread_indexes(self) -> tuple[str, ...]:
        """Return the names of indexes of features that can't be verified, as the feature or its
        packages are missing."""
        return ()

    def all_unverified(self) -> dict[str, tuple[int, int, int]]:
        """Return what was not looked at when blocks were stored, each with the number of its
        blocks, the lowest and the highest height."""
        return {}

    def sources(self) -> dict[str, tuple[int, int, int]]:
        """Return the sources that blocks were stored from, each with the number of its blocks,
        the lowest and the highest height."""
        return {}

    def compact(self, progress: Callable[[int, int], None] | None = None) -> tuple[int, int]:
        """Make the store as small as it can be; return its bytes before and after.

        Nobody else may have it open. ``progress`` is called with the number of bytes that were
        copied, and of all.
        """
        raise NotSupported("this store can't be compacted")

    def migrate(self, progress: Callable[[int], None] | None = None) -> int:
        """Migrate a store of an earlier version; return the number of blocks that were copied.

        Nobody else may have it open. It can be interrupted, and goes on when it is called
        again. ``progress`` is called with the number of blocks that are left.
        """
        raise NotSupported("this store has no earlier versions")

    def verify(self, progress: Callable[[int], None] | None = None, first: int = 0) -> int:
        """Check every block's hashes and signatures, from ``first`` on; return the number of
        blocks.

        Raise :exc:`~flask_noderpc.errors.InvalidBlock` or ``StoreError``.
        """
        checked = verify_chain(self, progress, first)
        if self.abci is not None:
            # One snapshot: a block that is committed meanwhile would change the state.
            with self.read_view():
                self.abci.verify_state(self)
        return checked
