"""The roles of a backend, and the application of an embedded chain.

A :class:`ChainBackend` is what the routes ask. Its required roles only read:
blocks, state, transactions, and the wait for new heights. The mempool, the
application and the network have defaults that refuse or know nothing, so the
author of a read-only backend writes reads alone. All values are domain types;
what is missing is a typed error and never ``None``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..canonical.head import Head
from ..domain.abci import AppInfo, BlockResults, Event, QueryResult, TxResult
from ..domain.answers import PendingCount, PendingTxs
from ..domain.block import Block, BlockID, BlockMeta, Commit, Evidence
from ..domain.genesis import Genesis
from ..domain.network import NetInfo, NodeInfo
from ..domain.params import ConsensusParams, ConsensusParamsUpdate
from ..domain.validator import (
    ED25519,
    PublicKey,
    Validator,
    ValidatorSet,
    ValidatorUpdate,
)
from ..errors import NotFound, NotSupported

NO_NODE_ID = bytes(20)
NO_VALIDATOR_KEY = PublicKey(ED25519, bytes(32))


@dataclass(frozen=True, slots=True)
class TxRecord:
    """A committed transaction and where it stands."""

    height: int
    index: int
    tx: bytes
    result: TxResult


class BlockStore(ABC):
    """Role: the blocks, their commits and their results."""

    @abstractmethod
    def latest_height(self) -> int:
        """Height of the newest block; 0 while there is none."""

    @abstractmethod
    def base_height(self) -> int:
        """Height of the oldest block kept; 0 while there is none."""

    @abstractmethod
    def block(self, height: int) -> tuple[BlockID, Block]:
        """The block; raise :exc:`~flask_noderpc.errors.HeightNotAvailable`."""

    @abstractmethod
    def block_meta(self, height: int) -> BlockMeta:
        """The block without its content; raise ``HeightNotAvailable``."""

    @abstractmethod
    def height_of(self, block_hash: bytes) -> int:
        """Where this block stands; raise :exc:`~flask_noderpc.errors.BlockNotFound`."""

    @abstractmethod
    def commit(self, height: int) -> Commit:
        """The precommits for the block: those that the next block carries, or, at the
        latest height, those seen here. Raise ``HeightNotAvailable``."""

    @abstractmethod
    def results(self, height: int) -> BlockResults:
        """What executing the block gave; raise ``HeightNotAvailable`` or
        :exc:`~flask_noderpc.errors.ResultNotFound`."""

    def block_metas(self, low: int, high: int) -> tuple[BlockMeta, ...]:
        """The metas of a range, both ends included, highest first."""
        return tuple(self.block_meta(height) for height in range(high, low - 1, -1))


class StateStore(ABC):
    """Role: what consensus knows at a height."""

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


class TxIndex(ABC):
    """Role: transactions by their hash."""

    @abstractmethod
    def tx(self, tx_hash: bytes) -> TxRecord:
        """The transaction; raise :exc:`~flask_noderpc.errors.TxNotFound`.

        A hash committed more than once gives the latest that succeeded, or the latest.
        """

    def latest_txs(self, limit: int) -> tuple[TxRecord, ...]:
        """The newest transactions, newest first; the default knows none."""
        return ()


class EventSource(ABC):
    """Role: events are cursors over heights, not callbacks."""

    @abstractmethod
    def wait_for_height(self, after: int, timeout: float) -> int:
        """The latest height, as soon as it is above ``after`` or ``timeout`` seconds on."""


class Mempool:
    """Role: transactions that wait for a block. The default has none and takes none."""

    def submit(self, tx: bytes) -> TxResult:
        """The application's check; when its code is 0 the transaction now waits.

        Raise :exc:`~flask_noderpc.errors.TxRejected` or
        :exc:`~flask_noderpc.errors.MempoolFull`.
        """
        raise NotSupported("this backend does not take transactions")

    def pending(self, limit: int) -> PendingTxs:
        """At most ``limit`` waiting transactions, oldest first."""
        return PendingTxs(0, 0, ())

    def pending_count(self) -> PendingCount:
        """How many wait, and their bytes."""
        return PendingCount(0, 0)


class ApplicationAccess:
    """Role: the application behind the chain. The default has none."""

    def app_info(self) -> AppInfo:
        """The application's introduction."""
        raise NotSupported("this backend has no application")

    def check_tx(self, tx: bytes) -> TxResult:
        """The application's opinion of a transaction, without the mempool's."""
        raise NotSupported("this backend has no application")

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        """The application's answer."""
        raise NotSupported("this backend has no application")


class Network:
    """Role: the node and its peers. The default is a node alone."""

    def node_info(self) -> NodeInfo:
        """How this node introduces itself."""
        return NodeInfo(id=NO_NODE_ID, network=self._chain_id())

    def net_info(self) -> NetInfo:
        """Who it is connected to."""
        return NetInfo()

    def validator_key(self) -> PublicKey:
        """The node's own validator key; 32 zero bytes when it has none."""
        return NO_VALIDATOR_KEY

    def catching_up(self) -> bool:
        """Whether blocks are still being fetched from elsewhere."""
        return False

    def _chain_id(self) -> str:
        return ""


class ChainBackend(
    BlockStore, StateStore, TxIndex, EventSource, Mempool, ApplicationAccess, Network
):
    """Everything the routes ask for."""

    def _chain_id(self) -> str:
        return self.genesis().chain_id

    def offender(self, evidence: Evidence) -> Validator:
        """The validator that a piece of evidence accuses, as it was at that height."""
        address = evidence.vote_a.validator_address
        try:
            known = self.validators(evidence.height).by_address.get(address)
        except NotFound:
            known = None
        # Where that set is not kept, the address is all that is known.
        unknown = Validator(address, PublicKey(ED25519, b""), evidence.validator_power)
        return known[1] if known else unknown

    def start(self) -> None:
        """Begin what runs beside the calls, unless it has begun in this process.

        Called before every call, so it is quick when there is nothing to do.
        """

    def close(self) -> None:
        """Let go of files and threads; the backend opens again when it is used."""


# The application of an embedded chain.


class AppState(Protocol):
    """The application's committed key-value state, in the chain's own store."""

    def get(self, key: bytes) -> bytes | None:
        """The value, or ``None``."""


Changes = Mapping[bytes, bytes | None]
"""What a block writes into the application's state; ``None`` removes a key."""


@dataclass(frozen=True, slots=True)
class InitChain:
    """What an application makes of the genesis document."""

    app_hash: bytes = b""
    validators: tuple[ValidatorUpdate, ...] = ()
    """Replaces the genesis validators; empty keeps them."""
    consensus_params: ConsensusParamsUpdate | None = None
    changes: Changes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """A proposed block, as the application executes it."""

    height: int
    time: int
    txs: tuple[bytes, ...]
    evidence: tuple[Evidence, ...]
    proposer_address: bytes
    hash: bytes
    last_commit: Commit
    validators: ValidatorSet
    """The set that signs this height."""
    next_validators: ValidatorSet
    """The set that signs the next height, which validator updates change."""


@dataclass(frozen=True, slots=True)
class BlockExecution:
    """What executing a block gave, and what it writes."""

    tx_results: tuple[TxResult, ...]
    app_hash: bytes
    begin_events: tuple[Event, ...] = ()
    end_events: tuple[Event, ...] = ()
    validator_updates: tuple[ValidatorUpdate, ...] = ()
    consensus_param_updates: ConsensusParamsUpdate | None = None
    changes: Changes = field(default_factory=dict)


class Application(ABC):
    """A state machine in ABCI's terms.

    It reads its committed state from an :class:`AppState` and hands its writes back, so
    that a block, its results and the state it leaves are stored together or not at all.
    """

    rechecks = True
    """Whether waiting transactions are checked again after each block."""

    @abstractmethod
    def info(self) -> AppInfo:
        """Who it is and how far it has come."""

    @abstractmethod
    def init_chain(self, genesis: Genesis) -> InitChain:
        """The state before the first block."""

    @abstractmethod
    def check_tx(self, tx: bytes) -> TxResult:
        """Whether the transaction may wait for a block: code 0 says yes."""

    def prepare_proposal(self, txs: Sequence[bytes]) -> tuple[bytes, ...]:
        """The transactions of a block that is about to be proposed.

        Those that are left out wait for another block, unless others are brought in:
        those have taken their place.
        """
        return tuple(txs)

    @abstractmethod
    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        """The begin, deliver and end results of a block, and what it writes.

        Nothing is kept yet: a block that does not get committed is executed again.
        """

    def commit(self, height: int) -> None:
        """The block is durable now; an application with a store of its own keeps it."""

    @abstractmethod
    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        """An answer from the committed state."""


# A store that an embedded chain can be built on.


@dataclass(frozen=True, slots=True)
class CommittedBlock:
    """A block on its way into a store."""

    block: Block
    commit: Commit
    """The precommits that finalised this block."""
    results: BlockResults
    changes: Changes = field(default_factory=dict)
    """What it writes into the application's state."""
    taken: tuple[bytes, ...] = ()
    """Waiting transactions that are in the block in another form, or not worth keeping."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to produce blocks; a later epoch overrules an earlier one."""

    owner: str
    epoch: int


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
    def head(self) -> Head:
        """Where the stored chain stands; raise ``StoreError`` before :meth:`init_chain`."""

    @abstractmethod
    def app_state(self) -> AppState:
        """The application's committed state."""

    @abstractmethod
    def reap(self, max_bytes: int, max_gas: int) -> tuple[bytes, ...]:
        """Waiting transactions that fit a block, oldest first; -1 is no limit."""

    @abstractmethod
    def pending_after(self, cursor: int, limit: int) -> tuple[tuple[int, bytes], ...]:
        """At most ``limit`` waiting transactions that came after a cursor, each with its
        own cursor, oldest first; 0 is before all."""

    @abstractmethod
    def drop_pending(self, txs: Sequence[bytes]) -> None:
        """Forget waiting transactions, so that they may be sent again."""

    @abstractmethod
    def wait_for_pending(self, timeout: float) -> bool:
        """Whether transactions wait, as soon as one does or ``timeout`` seconds on."""

    @abstractmethod
    def acquire_lease(self, owner: str, seconds: float) -> Lease | None:
        """The lease, when it is free, lapsed or the owner's; else ``None``."""

    @abstractmethod
    def renew_lease(self, lease: Lease, seconds: float) -> bool:
        """Whether the lease still holds; it does for ``seconds`` more."""

    @abstractmethod
    def release_lease(self, lease: Lease) -> None:
        """Give the lease back."""


class ChainStore(ChainBackend, BlockWriter):
    """A backend that an embedded chain can be built on."""
