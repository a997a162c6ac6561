"""Interface of an EVM engine and of its state; opcodes by name; decoding of revert reasons.

An engine reads trie nodes and codes by hash from a :class:`NodeStore`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, Generic, Protocol, TypeVar

from ..domain.execution import Account, Environment, Message, Outcome, Overrides, StateChange
from .frames import Tracer

T_co = TypeVar("T_co", covariant=True)


class NodeStore(Protocol):
    """Storage of trie nodes and codes by hash, which a chain provides to its engine."""

    def record(self, digest: bytes) -> bytes | None:
        """Return a trie node or code by its hash."""

    def block_hash(self, height: int) -> bytes | None:
        """Return the hash of a block."""


class World(ABC):
    """State of a block, and the changes made by the messages that have run on it."""

    @abstractmethod
    def account(self, address: bytes) -> Account:
        """Return an account; its storage root may be outdated until :meth:`root` is called."""

    @abstractmethod
    def exists(self, address: bytes) -> bool:
        """Return true if the account is in the state, even if it is empty."""

    @abstractmethod
    def code(self, address: bytes) -> bytes:
        """Return the code at an address."""

    @abstractmethod
    def storage(self, address: bytes, slot: int) -> int:
        """Return the value of a storage slot."""

    @abstractmethod
    def patch(self, overrides: Overrides) -> None:
        """Apply state overrides, without a transaction."""

    @abstractmethod
    def run(
        self, environment: Environment, message: Message, tracer: Tracer | None = None
    ) -> Outcome:
        """Run a message to its end, and keep its changes.

        Gas is bought and the nonce is incremented; neither balance nor nonce is checked.
        """

    @abstractmethod
    def root(self) -> bytes:
        """Compute and return the root of the current state."""

    @abstractmethod
    def commit(self) -> StateChange:
        """Return the new root, and the records written since the last commit."""


class EvmEngine(ABC):
    """An EVM implementation."""

    @abstractmethod
    def world(self, root: bytes) -> World:
        """Return the state at a root; its records are loaded when they are needed."""


class Job(ABC, Generic[T_co]):
    """A job that an engine runs, usually in an executor process."""

    @abstractmethod
    def __call__(self, engine: EvmEngine) -> T_co:
        """Run the job and return its result."""


_ROWS = {
    0x00: "STOP ADD MUL SUB DIV SDIV MOD SMOD ADDMOD MULMOD EXP SIGNEXTEND",
    0x10: "LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR SAR CLZ",
    0x20: "KECCAK256",
    0x30: "ADDRESS BALANCE ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE CALLDATACOPY"
    " CODESIZE CODECOPY GASPRICE EXTCODESIZE EXTCODECOPY RETURNDATASIZE RETURNDATACOPY"
    " EXTCODEHASH",
    0x40: "BLOCKHASH COINBASE TIMESTAMP NUMBER DIFFICULTY GASLIMIT CHAINID SELFBALANCE BASEFEE"
    " BLOBHASH BLOBBASEFEE",
    0x50: "POP MLOAD MSTORE MSTORE8 SLOAD SSTORE JUMP JUMPI PC MSIZE GAS JUMPDEST TLOAD TSTORE"
    " MCOPY PUSH0",
    0x60: " ".join(f"PUSH{size}" for size in range(1, 33)),
    0x80: " ".join(f"DUP{number}" for number in range(1, 17)),
    0x90: " ".join(f"SWAP{number}" for number in range(1, 17)),
    0xA0: "LOG0 LOG1 LOG2 LOG3 LOG4",
    0xF0: "CREATE CALL CALLCODE RETURN DELEGATECALL CREATE2",
    0xFA: "STATICCALL",
    0xFD: "REVERT INVALID SELFDESTRUCT",
}
OPCODES: Final = {
    name: first + number
    for first, names in _ROWS.items()
    for number, name in enumerate(names.split())
}
"""Opcodes by name."""
_NAMES = {opcode: name for name, opcode in OPCODES.items()}


def _named(names: str) -> dict[int, str]:
    return {OPCODES[name]: name for name in names.split()}


SLOAD, SSTORE, SELFDESTRUCT = _named("SLOAD SSTORE SELFDESTRUCT")
OF_STORAGE: Final = frozenset((SLOAD, SSTORE))
"""Instructions with a slot on top of the stack."""
OF_ACCOUNT: Final = _named("BALANCE EXTCODESIZE EXTCODECOPY EXTCODEHASH SELFDESTRUCT")
"""Instructions with an address on top of the stack, with their names."""
CREATES: Final = _named("CREATE CREATE2")
"""Instructions that create a contract, with their names."""
CALLS: Final = _named("CALL CALLCODE DELEGATECALL STATICCALL")
"""Instructions with an address below the gas, with their names."""


def name_of(opcode: int) -> str:
    """Return the name of an opcode, as in geth's core/vm/opcodes.go."""
    return _NAMES.get(opcode) or f"opcode {opcode:#x} not defined"


def address_of(word: int) -> bytes:
    """Return the address in a word."""
    return word.to_bytes(32)[12:]


# Selectors of Solidity's Error(string) and Panic(uint256).
_ERROR, _PANIC = bytes.fromhex("08c379a0"), bytes.fromhex("4e487b71")

# geth's accounts/abi has these texts for Solidity's panic codes.
_PANICS = {
    0x00: "generic panic",
    0x01: "assert(false)",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
    0x21: "enum overflow",
    0x22: "invalid encoded storage byte array accessed",
    0x31: "out-of-bounds array access; popping on an empty array",
    0x32: "out-of-bounds access of an array or bytesN",
    0x41: "out of memory",
    0x51: "uninitialized function",
}


def reason(output: bytes) -> str:
    """Return the revert reason in the output of a reverted call; empty for other data."""
    kind, body = output[:4], output[4:]
    if kind == _PANIC and len(body) >= 32:
        code = int.from_bytes(body[:32])
        return _PANICS.get(code, f"unknown panic code: {code:#x}")
    if kind == _ERROR and len(body) >= 64:
        start = int.from_bytes(body[:32])
        size = int.from_bytes(body[start : start + 32])
        text = body[start + 32 : start + 32 + size]
        if len(text) == size:
            return text.decode("utf-8", "replace")
    return ""
