"""Call frames, the execution that the frames of a message share, and the tracer interface."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from ..domain.execution import (
    DELEGATION,
    MAX_CONSOLE,
    MAX_CONSOLE_BYTES,
    OUT_OF_GAS,
    REVERTED,
    EmittedLog,
    Environment,
    Message,
)
from ..domain.records import ZERO_HASH
from ..protocol.validity import MAX_INITCODE

if TYPE_CHECKING:
    # For types only: a server builds jobs without the libraries of precompiled contracts.
    from .machine import Machine
    from .precompiles import Precompile
    from .state import State

# EIP-2929: gas for the first access of a transaction to an account, and for later accesses.
COLD_ACCOUNT, WARM = 2_600, 100

# Number of earlier blocks whose hashes BLOCKHASH can return.
_ANCESTORS = 256

WORD = (1 << 256) - 1
MAX_STACK = 1024
# geth: core/vm/gas_table.go, memoryGasCost.
_MAX_MEMORY, _UINT64 = 0x1FFFFFFFE0, 1 << 64
_JUMPDEST, _PUSH0 = 0x5B, 0x5F

# Texts of geth's core/vm/errors.go.
UNDERFLOW = "stack underflow"
OVERFLOW = "stack limit reached 1024 (1023)"
WRITE_PROTECTION = "write protection"


class Failure(Exception):
    """Failure of a call frame, with geth's text; all its gas is used up unless it reverted."""

    cost = 0
    """Cost of the instruction for which the gas did not suffice; 0 for other failures."""

    @property
    def text(self) -> str:
        """Error text of geth."""
        return str(self.args[0])


class Reverted(Failure):
    """End of a call frame with REVERT; its caller gets the remaining gas."""

    def __init__(self) -> None:
        super().__init__(REVERTED)


class OutOfGas(Failure):
    """Failure of an instruction that costs more gas than is left."""

    def __init__(self, cost: int, text: str = OUT_OF_GAS) -> None:
        super().__init__(text)
        self.cost = cost


class Execution:
    """State, block, message and results that the call frames of a message share."""

    def __init__(
        self,
        state: State,
        environment: Environment,
        message: Message,
        precompiles: Mapping[bytes, Precompile],
        stored_hash: Callable[[int], bytes | None],
        tracer: Tracer | None,
    ) -> None:
        self.state, self.environment, self.message = state, environment, message
        self.precompiles, self.tracer = precompiles, tracer
        self._stored_hash = stored_hash
        self.refund = 0
        """Refund of gas that the transaction has earned so far."""
        self.logs: list[EmittedLog] = []
        self.console: list[bytes] = []
        """Data of calls to the console, if the environment keeps it."""
        self._codes: dict[bytes, Code] = {}

    def prepared(self, code: bytes) -> Code:
        """Return code that frames can run; frames with the same code share it."""
        found = self._codes.get(code)
        if found is None:
            # A few codes above this size would fill the cache that all executions share.
            is_cached = len(code) <= MAX_INITCODE
            found = self._codes[code] = _cached_code(code) if is_cached else Code(code)
        return found

    def code_to_run(self, address: bytes) -> tuple[bytes, bytes, int]:
        """Return the account whose code a call runs, the code, and the gas to access it.

        EIP-7702: a delegated account runs the code of another one, which costs extra gas; it
        is 0 without a delegation.
        """
        code = self.state.code(address)
        if not is_delegation(code):
            return address, code, 0
        target = code.removeprefix(DELEGATION)
        gas = WARM if self.state.warm(target) else COLD_ACCOUNT
        return target, self.state.code(target), gas

    def block_hash(self, number: int) -> bytes:
        """Return the hash of one of the 256 blocks before this one; zeros for other blocks."""
        if not 0 < self.environment.number - number <= _ANCESTORS:
            return ZERO_HASH
        simulated = self.environment.hashes.get(number)
        return simulated or self._stored_hash(number) or ZERO_HASH

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        """Record a log that a contract emits, and report it to the tracer."""
        self.logs.append(EmittedLog(address, topics, data))
        if self.tracer is not None:
            self.tracer.log(address, topics, data)

    def print(self, data: bytes) -> None:
        """Keep the data of a call to the console."""
        if self.environment.keeps_console and len(self.console) < MAX_CONSOLE:
            self.console.append(data[:MAX_CONSOLE_BYTES])

    def destroy(self, address: bytes, beneficiary: bytes) -> None:
        """Move the balance of a contract to the beneficiary; delete the contract, unless the
        fork only deletes new ones (EIP-6780)."""
        state = self.state
        balance = state.account(address).balance
        if self.tracer is not None:
            self.tracer.selfdestruct(address, beneficiary, balance)
        is_deleted = not self.environment.fork.keeps_destroyed or state.is_new(address)
        state.add_balance(address, -balance)
        if not (is_deleted and beneficiary == address):
            state.add_balance(beneficiary, balance)
        if is_deleted:
            state.destroy(address)


def is_delegation(code: bytes) -> bool:
    """Return true if code is a delegation, which only names another account (EIP-7702)."""
    return len(code) == 23 and code.startswith(DELEGATION)


@dataclass(slots=True, eq=False, kw_only=True)
class Frame:
    """A call frame: the call or creation, and the state of the code that it runs."""

    execution: Execution
    kind: str
    """``CALL``, ``STATICCALL``, ``DELEGATECALL``, ``CALLCODE``, ``CREATE``, ``CREATE2``."""
    depth: int = 0
    sender: bytes
    to: bytes
    """Account whose storage the code reads and writes."""
    code_address: bytes = b""
    value: int
    gas: int
    """Gas that the frame starts with."""
    data: bytes = b""
    """Calldata."""
    code: Code
    is_static: bool = False
    is_delegated: bool = False
    """True if the code is another account's (EIP-7702)."""
    return_place: tuple[int, int] = (0, 0)
    """Start and size of the area in the caller's memory to which the output is copied."""
    stack: list[int] = field(default_factory=list)
    memory: bytearray = field(default_factory=bytearray)
    pc: int = 0
    gas_left: int = field(init=False)
    output: bytes = b""
    return_data: bytes = b""
    """Output of the last subcall."""
    failure: Failure | None = None
    subframe: Frame | None = None
    """The subcall to run next; ``None`` if the frame has ended."""
    snapshot: int = 0
    """Length of the state's undo log before the frame."""
    logs: int = 0
    """Number of logs before the frame."""
    refund: int = 0
    """Refund of gas that the transaction had earned before the frame."""

    def __post_init__(self) -> None:
        self.gas_left = self.gas

    @property
    def input(self) -> bytes:
        """Calldata, or the code that creates a contract."""
        return self.code.raw if self.creates else self.data

    @property
    def creates(self) -> bool:
        """True if the frame creates a contract."""
        return self.kind.startswith("CREATE")

    def fail(self, failure: Failure) -> None:
        """End the frame with a failure."""
        # The call frame stores the failure; its traceback would keep every Python frame alive.
        failure.__traceback__ = failure.__context__ = None
        self.failure = failure

    def charge(self, amount: int) -> None:
        """Subtract gas; raise :exc:`OutOfGas` if too little is left."""
        if amount > self.gas_left:
            raise OutOfGas(amount)
        self.gas_left -= amount

    def push(self, word: int) -> None:
        """Push a word onto the stack."""
        if len(self.stack) >= MAX_STACK:
            raise Failure(OVERFLOW)
        self.stack.append(word)

    def growth(self, end: int) -> int:
        """Return the gas for a memory that ends at a position or later."""
        size = len(self.memory)
        if end <= size:
            return 0
        if end > _MAX_MEMORY:
            # geth: core/vm/interpreter.go and gas_table.go.
            overflow = "gas uint64 overflow"
            raise Failure(overflow if end >= _UINT64 else f"{OUT_OF_GAS}: {overflow}")
        words, before = (end + 31) // 32, size // 32
        return 3 * (words - before) + words * words // 512 - before * before // 512

    def grow(self, end: int) -> None:
        """Extend the memory with zeros to the word that ends at a position or later."""
        if end > len(self.memory):
            self.memory += bytes((end + 31) // 32 * 32 - len(self.memory))

    def charge_memory(self, gas: int, start: int, size: int) -> None:
        """Charge gas, and extend the memory to cover a place at its cost."""
        end = start + size
        if not size or end <= len(self.memory):
            self.charge(gas)
            return
        self.charge(gas + self.growth(end))
        self.grow(end)

    def read(self, start: int, size: int) -> bytes:
        """Return a part of the memory, which must have been extended to cover it."""
        return bytes(memoryview(self.memory)[start : start + size]) if size else b""

    def fail_if_static(self) -> None:
        """Raise :exc:`Failure` if the frame is in a STATICCALL: it can't change the state."""
        if self.is_static:
            raise Failure(WRITE_PROTECTION)


class Step:
    """An instruction that is about to run, as tracers see it."""

    __slots__ = ("_machine", "frame", "gas", "op", "pc")

    def __init__(self, machine: Machine, frame: Frame, pc: int, op: int, gas: int) -> None:
        self._machine = machine
        self.frame, self.pc, self.op, self.gas = frame, pc, op, gas

    @property
    def refund(self) -> int:
        """Refund of gas that the transaction has earned so far."""
        return self.frame.execution.refund

    def preview(self) -> tuple[int, int, str]:
        """Return the cost of the instruction, the refund after it, and its error."""
        return self._machine.preview(self.frame, self.op)

    def stack(self) -> list[int]:
        """Return the whole stack, with the top last."""
        return list(self.frame.stack)

    def memory(self) -> bytes:
        """Return the whole memory."""
        return bytes(self.frame.memory)

    def return_data(self) -> bytes:
        """Return the data that the last call returned."""
        return self.frame.return_data

    def storage(self, address: bytes, slot: int) -> int:
        """Return the current value of a storage slot."""
        return self.frame.execution.state.storage(address, slot)


# Matches instructions with their data, and ends before a PUSH of more than 8 bytes.
_SHORT_PUSHES = "|".join(rf"\x{_PUSH0 + size:x}.{{{size}}}" for size in range(1, 9))
_INSTRUCTIONS = re.compile(rf"(?:[^\x60-\x7f]++|{_SHORT_PUSHES})*+".encode(), re.DOTALL)
_CHUNK = 64
_VALID, _INVALID = 1, 2


class Code:
    """Code that frames run, and the positions of some of its instructions."""

    __slots__ = ("_marks", "_starts", "padded", "raw", "size")

    def __init__(self, raw: bytes) -> None:
        self.raw, self.size = raw, len(raw)
        self.padded = raw + bytes(33)
        """The code and zeros: the missing data of a PUSH at its end, and a STOP after it."""
        self._starts: array[int] | None = None
        # Known results of is_jump_destination by position; 0 if a result is not known.
        self._marks = bytearray(self.size)

    def is_jump_destination(self, target: int) -> bool:
        """Return true if a position has a JUMPDEST that is not data of a PUSH."""
        if target >= self.size:
            return False
        mark = self._marks[target]
        if not mark:
            mark = self._marks[target] = _VALID if self._is_jumpdest(target) else _INVALID
        return mark == _VALID

    def _is_jumpdest(self, target: int) -> bool:
        if self.raw[target] != _JUMPDEST:
            return False
        if self._starts is None:
            self._starts = self._found_starts()
        # Between two of these positions there is no long PUSH, so the target is at an
        # instruction if the match ends there.
        start = self._starts[bisect_right(self._starts, target) - 1]
        found = _INSTRUCTIONS.match(self.raw, start, target)
        return found is not None and found.end() == target

    def _found_starts(self) -> array[int]:
        """Return positions of instructions: one for every 64 bytes, and after each long
        PUSH."""
        starts, at = array("L", [0]), 0
        match, code, size = _INSTRUCTIONS.match, self.padded, self.size
        while at < size:
            found = match(code, at, at + _CHUNK)
            end = found.end() if found else at
            if end < size and _PUSH0 + 8 < code[end] <= _PUSH0 + 32:
                end += 1 + code[end] - _PUSH0
            at = end
            starts.append(at)
        return starts


@lru_cache(64)
def _cached_code(raw: bytes) -> Code:
    return Code(raw)


class Tracer:
    """Observer of the execution of a message; the methods of this base class do nothing.

    ``step`` is called before an instruction; ``stepped`` after it, or before the call frame
    that it begins. ``cost`` includes the gas that a call passes to its frame, but not the gas
    that CREATE passes to the frame of the new contract.
    """

    @property
    def sees_steps(self) -> bool:
        """True if the tracer handles instructions; execution is much faster if it does not."""
        cls = type(self)
        return cls.step is not Tracer.step or cls.stepped is not Tracer.stepped

    def enter(self, frame: Frame) -> None:
        """Handle the beginning of a call frame."""

    def step(self, step: Step) -> None:
        """Handle an instruction that is about to run."""

    def stepped(self, step: Step, cost: int, error: str) -> None:
        """Handle an instruction that has run, has failed, or begins a call frame."""

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        """Handle a log that a contract emits."""

    def selfdestruct(self, address: bytes, beneficiary: bytes, balance: int) -> None:
        """Handle the self-destruction of a contract, before its balance is moved."""

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        """Handle the end of a call frame."""
