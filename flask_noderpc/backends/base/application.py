"""Interface of an embedded chain's application, with the requests and results of ABCI."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...domain.abci import AppInfo, Event, ExecTxResult, QueryResult
from ...domain.block import Commit, Evidence
from ...domain.genesis import ConsensusParamsUpdate, Genesis
from ...domain.validator import ValidatorSet, ValidatorUpdate
from ...errors import InvalidBlock, NotSupported
from .capabilities import Capability
from .reads import ChainReads


@dataclass(frozen=True, slots=True)
class Waiting:
    """Pending transactions, in the order in which they were accepted."""

    stored: tuple[tuple[int, bytes], ...] = ()
    """Stored transactions after a cursor, each with its own cursor."""
    incoming: tuple[bytes, ...] = ()
    """Transactions that this process has accepted and is storing; some may be in ``stored`` as
    well."""
    total: int = 0
    """Number of all stored pending transactions."""


class AppState(Protocol):
    """Committed key-value state of the application, in the chain's own store."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or ``None``."""

    def range(
        self, prefix: bytes, after: bytes | None = None, limit: int = 1000
    ) -> Sequence[tuple[bytes, bytes]]:
        """Return up to ``limit`` pairs of key and value, in byte order, whose keys start with
        the prefix and sort after ``after``."""

    def waiting(self, cursor: int = 0, limit: int = 1000) -> Waiting:
        """Return the pending transactions after a cursor, oldest first, at most ``limit``
        stored ones."""


Changes = Mapping[bytes, bytes | None]
"""Writes of a block to the application's state; ``None`` removes a key."""


@dataclass(frozen=True, slots=True)
class InitChain:
    """Result of ``InitChain``: the state before the first block."""

    app_hash: bytes = b""
    validators: tuple[ValidatorUpdate, ...] = ()
    """Validators that replace the genesis validators; an empty tuple keeps the genesis
    validators."""
    consensus_params: ConsensusParamsUpdate | None = None
    changes: Changes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """Request to execute a block."""

    height: int
    time: int
    txs: tuple[bytes, ...]
    evidence: tuple[Evidence, ...]
    proposer_address: bytes
    hash: bytes
    last_commit: Commit
    validators: ValidatorSet
    """Validator set that signs this height."""
    next_validators: ValidatorSet
    """Validator set that signs the next height, before this block's validator updates."""


@dataclass(frozen=True, slots=True)
class BlockExecution:
    """Results of a block's execution, and its writes to the state."""

    tx_results: tuple[ExecTxResult, ...]
    app_hash: bytes
    begin_events: tuple[Event, ...] = ()
    end_events: tuple[Event, ...] = ()
    validator_updates: tuple[ValidatorUpdate, ...] = ()
    consensus_param_updates: ConsensusParamsUpdate | None = None
    changes: Changes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BlockLimits:
    """Maximum bytes and gas of a block's transactions; -1 means unlimited."""

    max_bytes: int
    max_gas: int

    def fits(self, size: int, gas: int) -> bool:
        """Return true if transactions with this total size and gas fit."""
        return not 0 <= self.max_bytes < size and not 0 <= self.max_gas < gas


@dataclass(frozen=True, slots=True)
class SenderNonce:
    """Sender and nonce of a transaction; a transaction with the same pair replaces a pending
    one."""

    hash: bytes
    """Ethereum hash of the transaction."""
    sender: bytes
    nonce: int
    next_nonce: int
    """First unused nonce of the sender."""
    fee_cap: int
    """Maximum price per unit of gas."""
    tip: int


class ApplicationAccess:
    """Queries of clients to the application behind a chain; by default there is no
    application."""

    refusal = "this backend has no application"
    """Error message of an unsupported method."""

    is_chain_only = False
    """True if results of :meth:`info` and :meth:`query` may be cached while the backend's
    ``version()`` stays the same."""

    def info(self) -> AppInfo:
        """Return the application's info."""
        raise NotSupported(self.refusal)

    def check_tx(self, tx: bytes) -> ExecTxResult:
        """Return the application's check of a transaction, without the mempool's own checks."""
        raise NotSupported(self.refusal)

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        """Return the application's response to a query of its state."""
        raise NotSupported(self.refusal)

    def sdk_prefix(self) -> str | None:
        """Return the address prefix of a Cosmos SDK application if this node must answer its
        queries about blocks and transactions; ``None`` for other applications, and if the
        application answers these queries itself."""
        return None


class Application(ApplicationAccess, ABC):
    """An ABCI application: the state machine of an embedded chain.

    An application reads its committed state from an :class:`AppState`, and returns writes
    instead of storing them, so that a block, its results and the resulting state are stored
    together or not at all.
    """

    name = ""
    """Name that is stored with the application's chains, so that no other application opens
    them; an empty string stores no name."""

    rechecks = True
    """True if pending transactions are checked again after each block."""

    checks_in_turn = False
    """True if the validity of a transaction depends on the transactions pending before it (see
    ``AppState.waiting()``); a process then checks one transaction at a time."""

    makes_empty_blocks_together = False
    """True if :meth:`finalize_block` may be called for several empty blocks before they are
    stored and committed together. The application must then keep nothing in memory between
    these calls."""

    keeps_chain_time = False
    """True if the clock of a development chain goes on from its latest block, or from its
    genesis, instead of having the machine's time."""

    selects_txs = False
    """True if :meth:`prepare_proposal` gets all pending transactions and selects from them;
    false if it gets the oldest ones that fit the block.

    If true, a transaction is checked before the mempool's limits are, because it may replace a
    transaction with the same :meth:`sender_nonce`.
    """

    is_chain_only = False
    """True if :meth:`info` and :meth:`query` depend only on the :class:`AppState` and their
    parameters, so that their results can be cached until the next block. A subclass that
    overrides one of the two methods must declare this attribute again."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # Reset ``is_chain_only`` if a class that comes first in the MRO overrides info() or
        # query() without declaring the attribute.
        for kind in cls.__mro__:
            if "is_chain_only" in vars(kind):
                return
            if "info" in vars(kind) or "query" in vars(kind):
                cls.is_chain_only = False
                return

    @abstractmethod
    def info(self) -> AppInfo:
        """Return the application's name, version and last height."""

    def new_genesis(self, genesis: Genesis) -> Genesis:
        """Return the genesis document to write for a new chain; by default the given one, with
        which a chain begins at height 1."""
        return genesis

    @abstractmethod
    def init_chain(self, genesis: Genesis) -> InitChain:
        """Return the state before the first block."""

    def describe_genesis(self, genesis: Genesis) -> Mapping[str, str]:
        """Return a summary of what :meth:`init_chain` would make of a genesis document, as
        names and readable values; raise :exc:`~flask_noderpc.errors.ConfigurationError` if it
        would refuse the document.

        Nothing is stored, and the application is not used afterwards.
        """
        return {}

    @abstractmethod
    def check_tx(self, tx: bytes) -> ExecTxResult:
        """Check a transaction for the mempool; code 0 accepts it."""

    def fail_next_tx(self, result: ExecTxResult | None, *, in_check: bool = False) -> None:
        """Make the next transaction fail with a result, in its block or in its check, for
        tests; ``None`` cancels both. Raise :exc:`~flask_noderpc.errors.NotSupported` if the
        application can't do that."""
        if result is not None:
            raise NotSupported(
                "this application can't make a transaction fail on request",
                "NODERPC_APPLICATION = 'bank' can",
            )

    def begin_recheck(self) -> None:
        """Prepare to check all pending transactions again, oldest first."""

    def recheck_tx(self, tx: bytes) -> ExecTxResult:
        """Check a transaction again that is already pending, or check one that this node
        created."""
        return self.check_tx(tx)

    def sender_nonce(self, tx: bytes) -> SenderNonce | None:
        """Return the sender and nonce of a transaction that :meth:`check_tx` accepted; ``None``
        if the application has no nonces."""
        return None

    def prepare_proposal(self, txs: Sequence[bytes], limits: BlockLimits) -> tuple[bytes, ...]:
        """Return the transactions of a block to propose, selected from ``txs``.

        Transactions that are left out stay pending. If the result contains transactions that
        were not in ``txs``, these replace the ones left out, which are removed from the
        mempool.
        """
        return tuple(txs)

    @abstractmethod
    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        """Execute a block; return its results and its writes to the state.

        The block is not stored yet; if it is not committed, it is executed again.
        """

    needs_blocks = 1
    """Number of latest blocks that the application reads when it executes a block, and that
    must not be pruned."""

    def commit(self, height: int) -> int | None:
        """Return the retain height: blocks below it may be pruned. ``None`` or 0 leaves
        pruning to the operator, who may always keep more blocks.

        Called after the block was stored durably. An application with its own store commits its
        changes here.
        """
        return None

    def undo_changes(self, height: int) -> Changes:
        """Return the changes that restore the state after an earlier block; raise
        :exc:`~flask_noderpc.errors.NotSupported` if they are not available any more."""
        raise NotSupported(
            "the application stores no earlier states, so blocks can't be reverted",
            "NODERPC_APPLICATION = 'bank' and 'evm' keep them",
        )

    def verify_state(self, chain: ChainReads) -> None:
        """Check the committed state against the app hash of the chain's blocks; raise
        :exc:`~flask_noderpc.errors.InvalidBlock` if they differ.

        The default compares the app hash of :meth:`info`. An application whose app hash commits
        to its state should recompute the hash from the state.
        """
        info = self.info()
        height, app_hash = info.last_block_height, info.last_block_app_hash
        if height and app_hash and app_hash != chain.results(height).app_hash:
            raise InvalidBlock(
                f"the application's state differs from the state after block {height}:"
                " restore a backup"
            )

    @abstractmethod
    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        """Return the response to a query of the committed state."""

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        """Capabilities that this application adds to its backend, by key; empty by default."""
        return {}

    def close(self) -> None:
        """Stop worker processes. They start again when they are needed."""
