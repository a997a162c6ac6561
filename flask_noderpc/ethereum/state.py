"""The Ethereum state of a chain, as a capability of its backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

from ..backends.base.capabilities import Capability
from .engine.base import Job

T = TypeVar("T")


class EvmState(ABC):
    """The Ethereum state of a chain at its heights, and an engine that executes code on it."""

    initial_base_fee = 0
    """Base fee of the genesis, in wei for a unit of gas."""

    @abstractmethod
    def root(self, height: int) -> bytes:
        """Return the root of the state after a block, 0 for the genesis; raise
        :exc:`~flask_noderpc.errors.ResultNotFound`."""

    @abstractmethod
    def record(self, digest: bytes) -> bytes | None:
        """Return a node of the state's tries, or a code, by its hash."""

    @abstractmethod
    def run(self, job: Job[T], client: str = "") -> T:
        """Return the result of a job, within its time limit; raise
        :exc:`~flask_noderpc.errors.ExecutionFailed`.

        ``client`` is the client whose share of a divided limit the job uses.
        """

    def start(self, *, calls: bool, blocks: bool) -> None:
        """Start the executors in the background, before the first job.

        The default has nothing to start.
        """


EVM_STATE: Capability[EvmState] = Capability(
    "the backend has no Ethereum state: accounts can't be read and no code can be run here",
    "NODERPC_APPLICATION = 'evm' is a chain that has",
)
