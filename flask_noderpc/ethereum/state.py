"""The Ethereum state of a chain, as a capability of its backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from ..backends.base.capabilities import Capability
from .domain.forks import OSAKA, Activation, Schedule
from .domain.records import ZERO_HASH
from .engine.base import Job

if TYPE_CHECKING:
    from .application.forked import ForkedChain

T = TypeVar("T")


class EvmState(ABC):
    """The Ethereum state after each block of a chain, and an engine that executes code on
    it."""

    initial_base_fee = 0
    """Base fee of the genesis block, in wei per gas."""

    @abstractmethod
    def root(self, height: int) -> bytes:
        """Return the state root after the block at a height, where 0 is the genesis; raise
        :exc:`~flask_noderpc.errors.ResultNotFound` if it is not stored."""

    @abstractmethod
    def record(self, digest: bytes) -> bytes | None:
        """Return the trie node or the contract code with a hash, or ``None``."""

    def chain_id(self, height: int) -> int | None:
        """Return the chain ID of a block's transactions, or of the next block's if no block has
        that height; ``None`` if the setting has it."""
        return None

    def next_prev_randao(self) -> bytes:
        """Return the value of PREVRANDAO in the next block."""
        return ZERO_HASH

    def forks(self) -> Schedule:
        """Return the chain's forks by height, oldest first."""
        return (Activation(0, OSAKA),)

    @property
    def fork(self) -> ForkedChain | None:
        """The other chain from whose state the chain began; ``None``, the default, if it began
        with its own."""
        return None

    def calls_recorded_since(self) -> int | None:
        """Return the height from which on each block's results have the internal calls of its
        transactions; ``None``, the default, if the latest block's don't."""
        return None

    @abstractmethod
    def run(self, job: Job[T], client: str = "") -> T:
        """Return the result of a job, within its time limit; raise
        :exc:`~flask_noderpc.errors.ExecutionFailed`.

        ``client`` is the caller's address: executors are shared fairly among clients.
        """

    def start(self, *, calls: bool, blocks: bool) -> None:
        """Start the executors for calls and for blocks in the background; the default does
        nothing."""


EVM_STATE: Capability[EvmState] = Capability(
    "the backend has no Ethereum state, so accounts can't be read and code can't be executed",
    "NODERPC_APPLICATION = 'evm' makes a chain that has one",
)
