"""The application of an embedded chain in ABCI's terms: its requests and results."""

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
    """Transactions that wait for a block, in the order in which they were accepted."""

    stored: tuple[tuple[int, bytes], ...] = ()
    """Those of the mempool behind a cursor, each with its own."""
    incoming: tuple[bytes, ...] = ()
    """Those that this process has accepted and is storing; some may be stored by now."""
    total: int = 0
    """Number of all that are stored."""


class AppState(Protocol):
    """The application's committed key-value state, in the chain's own store."""

    def get(self, key: bytes) -> bytes | None:
        """The value, or ``None``."""

    def range(
        self, prefix: bytes, after: bytes | None = None, limit: int = 1000
    ) -> Sequence[tuple[bytes, bytes]]:
        """Return the first pairs whose keys begin with the prefix and follow ``after``, in the
        order of their bytes."""

    def waiting(self, cursor: int = 0, limit: int = 1000) -> Waiting:
        """Return the oldest transactions that wait behind a cursor, at most ``limit`` of the
        stored ones."""


Changes = Mapping[bytes, bytes | None]
"""Writes of a block to the application's state; ``None`` removes a key."""


@dataclass(frozen=True, slots=True)
class InitChain:
    """Result of ``InitChain``: the state before the first block."""

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
    """Maximum bytes and gas of a block's transactions; -1 is no limit."""

    max_bytes: int
    max_gas: int

    def fits(self, size: int, gas: int) -> bool:
        """Return true if so many bytes and so much gas fit."""
        return not 0 <= self.max_bytes < size and not 0 <= self.max_gas < gas


@dataclass(frozen=True, slots=True)
class SenderNonce:
    """Sender and nonce of a transaction: another one with the same replaces it."""

    hash: bytes
    """The transaction's Ethereum hash."""
    sender: bytes
    nonce: int
    next_nonce: int
    """The sender's first unused nonce."""
    fee_cap: int
    """Maximum price of a unit of gas."""
    tip: int


class ApplicationAccess:
    """The application behind a chain, as far as clients query it. The default has none."""

    refusal = "this backend has no application"
    """Error of a method that is not supported."""

    is_chain_only = False
    """True if :meth:`info` and :meth:`query` may be cached while the backend's ``version()``
    is the same."""

    def info(self) -> AppInfo:
        """Return the application's info."""
        raise NotSupported(self.refusal)

    def check_tx(self, tx: bytes) -> ExecTxResult:
        """Return the application's check of a transaction, without the mempool's."""
        raise NotSupported(self.refusal)

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        """Return the application's answer."""
        raise NotSupported(self.refusal)

    def sdk_prefix(self) -> str | None:
        """Return the prefix of addresses of an application of the Cosmos SDK, above which the
        node answers queries about blocks and transactions; ``None`` for others, and where
        another node answers."""
        return None


class Application(ApplicationAccess, ABC):
    """A state machine in ABCI's terms.

    It reads its committed state from an :class:`AppState` and hands its writes back, so
    that a block, its results and the state it leaves are stored together or not at all.
    """

    name = ""
    """The mark of its chains' stores, so that no other application opens them;
    empty marks none."""

    rechecks = True
    """True if pending transactions are checked again after each block."""

    checks_in_turn = False
    """True if whether a transaction is valid depends on those that wait before it, which
    ``AppState.waiting()`` has: a process then checks one after the other."""

    makes_empty_blocks_together = False
    """True if :meth:`finalize_block` can be called for several blocks without transactions
    before they are stored and committed: what it keeps between them is in its state alone."""

    selects_txs = False
    """True if :meth:`prepare_proposal` gets all waiting transactions and selects among them;
    false if it gets the oldest that fit the block.

    If true, a transaction is checked before the mempool's limits are: it may replace another
    of its :meth:`sender_nonce`.
    """

    is_chain_only = False
    """True if :meth:`info` and :meth:`query` follow from the :class:`AppState` and their
    parameters alone, so that their answers are cached until the next block. A subclass that
    overrides one of the two declares it anew."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # The first class with one of the three must be one that declares it.
        for kind in cls.__mro__:
            if "is_chain_only" in vars(kind):
                return
            if "info" in vars(kind) or "query" in vars(kind):
                cls.is_chain_only = False
                return

    @abstractmethod
    def info(self) -> AppInfo:
        """Return name, version and last height of the application."""

    @abstractmethod
    def init_chain(self, genesis: Genesis) -> InitChain:
        """The state before the first block."""

    def describe_genesis(self, genesis: Genesis) -> Mapping[str, str]:
        """Return what :meth:`init_chain` would make of a genesis document, as names and texts
        for people; raise :exc:`~flask_noderpc.errors.ConfigurationError` if it would refuse it.

        Nothing is stored, and the application is not used any further.
        """
        return {}

    @abstractmethod
    def check_tx(self, tx: bytes) -> ExecTxResult:
        """Check a transaction for the mempool; code 0 accepts it."""

    def fail_next_tx(self, result: ExecTxResult | None, *, in_check: bool = False) -> None:
        """Let the next transaction fail with a result, in its block or in its check; ``None``
        takes both back. For tests: raise :exc:`~flask_noderpc.errors.NotSupported` if the
        application can't."""
        if result is not None:
            raise NotSupported(
                "this application lets no transaction fail on request",
                "NODERPC_APPLICATION = 'bank' does",
            )

    def begin_recheck(self) -> None:
        """All pending transactions are about to be checked again, the oldest first."""

    def recheck_tx(self, tx: bytes) -> ExecTxResult:
        """Check a transaction that is pending already, or that this node made."""
        return self.check_tx(tx)

    def sender_nonce(self, tx: bytes) -> SenderNonce | None:
        """Return sender and nonce of a transaction that :meth:`check_tx` accepted; ``None``
        where the application has no nonces."""
        return None

    def prepare_proposal(self, txs: Sequence[bytes], limits: BlockLimits) -> tuple[bytes, ...]:
        """The transactions of a block that is about to be proposed.

        Those that are left out wait for another block, unless others are brought in:
        those have taken their place.
        """
        return tuple(txs)

    @abstractmethod
    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        """The begin, deliver and end results of a block, and what it writes.

        Nothing is stored yet: a block that does not get committed is executed again.
        """

    needs_blocks = 1
    """Number of latest blocks that must be stored when one is executed."""

    def commit(self, height: int) -> int | None:
        """The block is durable now; an application with a store of its own keeps it.

        The lowest height whose block may still be needed: those below may be forgotten.
        ``None`` or 0 leaves that to the operator, who may keep more in any case.
        """
        return None

    def undo_changes(self, height: int) -> Changes:
        """Return the changes that restore the state after an earlier block; raise
        :exc:`~flask_noderpc.errors.NotSupported` where that can't be had any more."""
        raise NotSupported(
            "the application keeps no earlier states, its blocks stay",
            "NODERPC_APPLICATION = 'bank' and 'evm' keep them",
        )

    def verify_state(self, chain: ChainReads) -> None:
        """Check the committed state against the app hash of the chain's blocks; raise
        :exc:`~flask_noderpc.errors.InvalidBlock`.

        The default compares the app hash of :meth:`info`. An application whose app hash
        commits to its state computes it anew from the state.
        """
        info = self.info()
        height, app_hash = info.last_block_height, info.last_block_app_hash
        if height and app_hash and app_hash != chain.results(height).app_hash:
            raise InvalidBlock(f"the application's state is not that of block {height}")

    @abstractmethod
    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        """An answer from the committed state."""

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        """What a backend with this application can do besides, by keys; by default nothing."""
        return {}

    def close(self) -> None:
        """Stop worker processes; they start again when they are needed."""
