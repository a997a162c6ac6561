"""Interface of an EVM engine.

An engine knows records by their hashes and nothing of where they are stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from ..domain.evm import Account, Environment, Message, Outcome, Overrides, StateChange

T_co = TypeVar("T_co", covariant=True)


class NodeStore(Protocol):
    """Storage of nodes and code by hash that a chain provides to its engine."""

    def record(self, digest: bytes) -> bytes | None:
        """A node or a code by its hash."""

    def block_hash(self, height: int) -> bytes | None:
        """The hash of a block."""


class Frame(Protocol):
    """A message that code runs for, as a tracer sees it."""

    depth: int
    kind: str
    """``CALL``, ``STATICCALL``, ``DELEGATECALL``, ``CALLCODE``, ``CREATE``, ``CREATE2``."""
    sender: bytes
    to: bytes
    """The account whose storage it has."""
    code_address: bytes
    value: int
    gas: int
    data: bytes
    refund: int
    """Gas that is given back however it ends (EIP-7702)."""


class Step(Protocol):
    """One instruction that is about to run."""

    pc: int
    op: int
    gas: int

    @property
    def frame(self) -> Frame:
        """The message it runs for."""

    @property
    def refund(self) -> int:
        """Gas that will be given back."""

    def stack(self) -> list[int]:
        """All of it, the top last."""

    def memory(self) -> bytes:
        """All of it."""

    def return_data(self) -> bytes:
        """Return data of the last call."""

    def storage(self, address: bytes, slot: int) -> int:
        """A word of storage as it is now."""


class Tracer:
    """Watches a message run; this one does nothing.

    ``step`` comes before an instruction and ``stepped`` after it, or before the message that
    it begins; ``cost`` is what it took, with the gas it gave away.
    """

    def enter(self, frame: Frame) -> None:
        """A message begins."""

    def step(self, step: Step) -> None:
        """An instruction is about to run."""

    def stepped(self, step: Step, cost: int, error: str) -> None:
        """An instruction has run, or failed, or begins a message."""

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        """A contract reports something."""

    def selfdestruct(self, address: bytes, beneficiary: bytes, balance: int) -> None:
        """A contract ends."""

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        """A message ends."""


class World(ABC):
    """The state at a root, and what has been done to it since."""

    @abstractmethod
    def account(self, address: bytes) -> Account:
        """Nonce, balance and the hash of the code; the storage's root may be that of before."""

    @abstractmethod
    def code(self, address: bytes) -> bytes:
        """The code at an address."""

    @abstractmethod
    def storage(self, address: bytes, slot: int) -> int:
        """A word of storage."""

    @abstractmethod
    def patch(self, overrides: Overrides) -> None:
        """Change accounts by hand."""

    @abstractmethod
    def run(
        self, environment: Environment, message: Message, tracer: Tracer | None = None
    ) -> Outcome:
        """Run a message to its end and keep what it does.

        The gas is bought and the nonce counted; that both are there is not looked at.
        """

    @abstractmethod
    def root(self) -> bytes:
        """The root of what it is now."""

    @abstractmethod
    def commit(self) -> StateChange:
        """The new root, and the records that came since the last."""


class EvmEngine(ABC):
    """A kind of EVM."""

    @abstractmethod
    def world(self, root: bytes) -> World:
        """The state at a root; its records are read as they are needed."""


class Job(ABC, Generic[T_co]):
    """Something to be done with an engine, maybe in another process."""

    @abstractmethod
    def __call__(self, engine: EvmEngine) -> T_co:
        """Run the job and return its result."""
