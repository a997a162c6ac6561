"""Call frames, what the frames of a message share, and what tracers see of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from ..domain.execution import (
    CODE_SIZE_LIMIT,
    DELEGATION,
    OUT_OF_GAS,
    REVERTED,
    EmittedLog,
    Environment,
    Message,
)
from ..domain.records import ZERO_HASH

if TYPE_CHECKING:
    # A server builds jobs and does not need the libraries of precompiled contracts.
    from .precompiles import Precompile
    from .state import State

# EIP-2929: gas of an account that the transaction uses for the first time, and of another.
COLD_ACCOUNT, WARM = 2_600, 100

_ANCESTORS = 256

WORD = (1 << 256) - 1
MAX_STACK = 1024
_JUMPDEST, _PUSH0 = 0x5B, 0x5F

# Texts of geth's core/vm/errors.go.
UNDERFLOW = "stack underflow"
OVERFLOW = "stack limit reached 1024 (1023)"
WRITE_PROTECTION = "write protection"


class Failure(Exception):
    """A failed call frame, with geth's text; unless it reverted, its gas is used up."""

    missing = 0
    """Gas that an instruction would have taken."""

    @property
    def text(self) -> str:
        """Error text of geth."""
        return str(self.args[0])


class Reverted(Failure):
    """A call frame that ended with REVERT and keeps its gas."""

    def __init__(self) -> None:
        super().__init__(REVERTED)


class OutOfGas(Failure):
    """An instruction that takes more gas than is left."""

    def __init__(self, missing: int, text: str = OUT_OF_GAS) -> None:
        super().__init__(text)
        self.missing = missing


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
        """Gas that the transaction gets back so far."""
        self.logs: list[EmittedLog] = []

    def code_to_run(self, address: bytes) -> tuple[bytes, bytes, int]:
        """Return the account whose code runs in a call, its code, and the gas of a delegation.

        EIP-7702: a delegated account runs the code of another one.
        """
        code = self.state.code(address)
        if not is_delegation(code):
            return address, code, 0
        target = code.removeprefix(DELEGATION)
        gas = WARM if self.state.warm(target) else COLD_ACCOUNT
        return target, self.state.code(target), gas

    def block_hash(self, number: int) -> bytes:
        """Return the hash of one of the 256 blocks before this one; zeros for another one."""
        if not 0 < self.environment.number - number <= _ANCESTORS:
            return ZERO_HASH
        simulated = self.environment.hashes.get(number)
        return simulated or self._stored_hash(number) or ZERO_HASH

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        """Record a log."""
        self.logs.append(EmittedLog(address, topics, data))
        if self.tracer is not None:
            self.tracer.log(address, topics, data)

    def destroy(self, address: bytes, beneficiary: bytes) -> None:
        """Move the balance of a contract to the beneficiary, and delete the contract if the
        fork says so."""
        state = self.state
        balance = state.account(address).balance
        is_deleted = not self.environment.fork.keeps_destroyed or state.is_new(address)
        state.add_balance(address, -balance)
        if not (is_deleted and beneficiary == address):
            state.add_balance(beneficiary, balance)
        if is_deleted:
            state.destroy(address)


def is_delegation(code: bytes) -> bool:
    """Return true if code only names the account whose code runs (EIP-7702)."""
    return len(code) == 23 and code.startswith(DELEGATION)


@dataclass(slots=True, eq=False, kw_only=True)
class Frame:
    """A call frame: a message, and the state of its execution."""

    execution: Execution
    kind: str
    """``CALL``, ``STATICCALL``, ``DELEGATECALL``, ``CALLCODE``, ``CREATE``, ``CREATE2``."""
    depth: int = 0
    sender: bytes
    to: bytes
    """Account whose storage the code uses."""
    code_address: bytes = b""
    value: int
    gas: int
    """Gas at the beginning."""
    data: bytes = b""
    """Calldata."""
    code: bytes
    """Code, with the zeros that follow it."""
    is_static: bool = False
    is_delegated: bool = False
    """True if the code is another account's (EIP-7702)."""
    return_place: tuple[int, int] = (0, 0)
    """Start and size of the caller's memory that gets the output."""
    code_size: int = field(init=False)
    marks: bytearray = field(init=False)
    """Result of :func:`is_jump_destination` for each position of the code."""
    stack: list[int] = field(default_factory=list)
    memory: bytearray = field(default_factory=bytearray)
    pc: int = 0
    gas_left: int = field(init=False)
    output: bytes = b""
    return_data: bytes = b""
    """Output of the last subcall."""
    failure: Failure | None = None
    subframe: Frame | None = None
    """The subcall to run next."""
    snapshot: int = 0
    """Number of changes of the state before the frame."""
    logs: int = 0
    """Number of logs before the frame."""
    refund: int = 0
    """Gas that the transaction got back before the frame."""

    def __post_init__(self) -> None:
        self.gas_left, self.code_size = self.gas, len(self.code)
        # Code above the limit only comes from overrides, and a few would fill the cache.
        is_cached = self.code_size <= 2 * CODE_SIZE_LIMIT
        prepare = _prepared if is_cached else _prepared.__wrapped__
        self.code, self.marks = prepare(self.code)

    @property
    def input(self) -> bytes:
        """Calldata, or the code that creates a contract."""
        return self.code[: self.code_size] if self.creates else self.data

    @property
    def creates(self) -> bool:
        """True if the frame creates a contract."""
        return self.kind.startswith("CREATE")

    def fail(self, failure: Failure) -> None:
        """End the frame with a failure."""
        # A traceback would keep every Python frame alive.
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

    def growth(self, *places: tuple[int, int]) -> tuple[int, int]:
        """Return the size of a memory that includes places of start and size, and its gas."""
        size = len(self.memory)
        end = max((start + length for start, length in places if length), default=0)
        if end <= size:
            return size, 0
        words, before = (end + 31) // 32, size // 32
        return words * 32, 3 * (words - before) + words * words // 512 - before * before // 512

    def grow(self, size: int) -> None:
        """Extend the memory to a size."""
        self.memory += bytes(size - len(self.memory))

    def charge_memory(self, gas: int, *places: tuple[int, int]) -> None:
        """Charge gas and the growth of the memory, and extend it."""
        size, cost = self.growth(*places)
        self.charge(gas + cost)
        self.memory += bytes(size - len(self.memory))

    def read(self, start: int, size: int) -> bytes:
        """Return bytes of the memory, which includes them."""
        return bytes(self.memory[start : start + size]) if size else b""

    def fail_if_static(self) -> None:
        """Raise :exc:`Failure` if the frame may not change the state."""
        if self.is_static:
            raise Failure(WRITE_PROTECTION)


class Step:
    """An instruction that is about to run, as tracers see it."""

    __slots__ = ("frame", "gas", "op", "pc")

    def __init__(self, frame: Frame, pc: int, op: int, gas: int) -> None:
        self.frame, self.pc, self.op, self.gas = frame, pc, op, gas

    @property
    def refund(self) -> int:
        """Gas that the transaction gets back so far."""
        return self.frame.execution.refund

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


# Instructions but for long PUSHes, which are rare, each with its data.
_SHORT_PUSHES = "|".join(rf"\x{_PUSH0 + size:x}.{{{size}}}" for size in range(1, 9))
_INSTRUCTIONS = re.compile(rf"(?:[^\x60-\x7f]++|{_SHORT_PUSHES})*+".encode(), re.DOTALL)
_VALID, _INVALID = 1, 2


def is_jump_destination(frame: Frame, target: int) -> bool:
    """Return true if a JUMPDEST is at a position of a frame's code, and not data of a PUSH."""
    marks = frame.marks
    if target >= frame.code_size:
        return False
    if not marks[target]:
        marks[target] = _VALID if _is_jumpdest(frame.code, marks, target) else _INVALID
    return marks[target] == _VALID


def _is_jumpdest(code: bytes, marks: bytearray, target: int) -> bool:
    if code[target] != _JUMPDEST:
        return False
    # Read instructions from the nearest JUMPDEST that is known.
    at = max(0, marks.rfind(_VALID, 0, target))
    while at < target:
        found = _INSTRUCTIONS.match(code, at, target)
        at = found.end() if found else at
        if at < target:
            # A long PUSH, or one whose data includes the target.
            at += 1 + code[at] - _PUSH0
    return at == target


@lru_cache(64)
def _prepared(code: bytes) -> tuple[bytes, bytearray]:
    """Return code with the zeros that follow it, and a mark for each position, which is 0 until
    a jump leads there.

    A PUSH at the end reads zeros, and then there is a STOP.
    """
    return code + bytes(33), bytearray(len(code))


class Tracer:
    """Observes the execution of a message; this class does nothing.

    ``step`` is called before an instruction, and ``stepped`` after it, or before the call frame
    that it begins; ``cost`` includes the gas that is passed to a called frame, and not the gas
    that is passed to a new contract's.
    """

    def enter(self, frame: Frame) -> None:
        """Handle the beginning of a call frame."""

    def step(self, step: Step) -> None:
        """Handle an instruction that is about to run."""

    def stepped(self, step: Step, cost: int, error: str) -> None:
        """Handle an instruction that has run, has failed, or begins a call frame."""

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        """Handle a log that a contract emits."""

    def selfdestruct(self, address: bytes, beneficiary: bytes, balance: int) -> None:
        """Handle the self-destruction of a contract."""

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        """Handle the end of a call frame."""
