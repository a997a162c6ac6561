"""Instructions that only need the stack or the memory, faster than py-evm's.

py-evm stores numbers as the bytes that were pushed, validates each again, and calls a method
for every step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from eth.exceptions import FullStack, Halt, InsufficientStack, OutOfGas
from eth.vm.logic.invalid import InvalidOpcode
from eth.vm.stack import Stack

from ..protocol.validity import MAX_INITCODE
from .base import OPCODES, name_of

_WORD = (1 << 256) - 1
_SIGN = 1 << 255
_MAX_STACK = 1024
_PUSH0 = OPCODES["PUSH0"]


class IntStack(Stack):
    """A stack of integers."""

    values: list[int]  # type: ignore[assignment]

    def push_int(self, value: int) -> None:
        """Push a word."""
        if len(self.values) >= _MAX_STACK:
            raise FullStack("Stack limit reached")
        self._append(value)

    def push_bytes(self, value: bytes) -> None:
        """Push a word."""
        self.push_int(int.from_bytes(value))

    def pop1_int(self) -> int:
        """Pop a word."""
        try:
            return self.values.pop()
        except IndexError:
            raise InsufficientStack("Stack underflow") from None

    def pop_ints(self, num_items: int) -> tuple[int, ...]:
        """Pop several words; the first one was the top."""
        values = self.values
        if num_items > len(values):
            raise InsufficientStack("Stack underflow")
        popped = tuple(values[: -num_items - 1 : -1])
        del values[-num_items:]
        return popped


def _divided(left: int, right: int) -> int:
    return left // right if right else 0


def _remainder(left: int, right: int) -> int:
    return left % right if right else 0


def _shifted_left(bits: int, value: int) -> int:
    return value << bits & _WORD if bits < 256 else 0


def _shifted_right(bits: int, value: int) -> int:
    return value >> bits if bits < 256 else 0


def _byte(index: int, value: int) -> int:
    return value >> 248 - 8 * index & 0xFF if index < 32 else 0


def _dup(depth: int) -> Callable[[list[int]], None]:
    def dup(stack: list[int]) -> None:
        if len(stack) >= _MAX_STACK:
            raise FullStack("Stack limit reached")
        stack.append(stack[-depth])

    return dup


def _swap(depth: int) -> Callable[[list[int]], None]:
    def swap(stack: list[int]) -> None:
        stack[-1], stack[-depth] = stack[-depth], stack[-1]

    return swap


# The top of the stack is the left operand. Flipping the sign bit of two's complement gives
# words with the order of the signed numbers.
_OF_STACK: dict[str, Callable[[list[int]], object]] = {
    "ADD": lambda stack: stack.append(stack.pop() + stack.pop() & _WORD),
    "MUL": lambda stack: stack.append(stack.pop() * stack.pop() & _WORD),
    "SUB": lambda stack: stack.append(stack.pop() - stack.pop() & _WORD),
    "DIV": lambda stack: stack.append(_divided(stack.pop(), stack.pop())),
    "MOD": lambda stack: stack.append(_remainder(stack.pop(), stack.pop())),
    "ADDMOD": lambda stack: stack.append(_remainder(stack.pop() + stack.pop(), stack.pop())),
    "MULMOD": lambda stack: stack.append(_remainder(stack.pop() * stack.pop(), stack.pop())),
    "LT": lambda stack: stack.append(1 if stack.pop() < stack.pop() else 0),
    "GT": lambda stack: stack.append(1 if stack.pop() > stack.pop() else 0),
    "SLT": lambda stack: stack.append(1 if stack.pop() ^ _SIGN < stack.pop() ^ _SIGN else 0),
    "SGT": lambda stack: stack.append(1 if stack.pop() ^ _SIGN > stack.pop() ^ _SIGN else 0),
    "EQ": lambda stack: stack.append(1 if stack.pop() == stack.pop() else 0),
    "ISZERO": lambda stack: stack.append(0 if stack.pop() else 1),
    "AND": lambda stack: stack.append(stack.pop() & stack.pop()),
    "OR": lambda stack: stack.append(stack.pop() | stack.pop()),
    "XOR": lambda stack: stack.append(stack.pop() ^ stack.pop()),
    "NOT": lambda stack: stack.append(stack.pop() ^ _WORD),
    "BYTE": lambda stack: stack.append(_byte(stack.pop(), stack.pop())),
    "SHL": lambda stack: stack.append(_shifted_left(stack.pop(), stack.pop())),
    "SHR": lambda stack: stack.append(_shifted_right(stack.pop(), stack.pop())),
    "POP": lambda stack: stack.pop(),
    "JUMPDEST": lambda stack: None,
    **{f"DUP{depth}": _dup(depth) for depth in range(1, 17)},
    **{f"SWAP{depth}": _swap(depth + 1) for depth in range(1, 17)},
}


def _mload(computation: Any) -> None:
    stack = computation._stack.values
    start = stack.pop()
    computation.extend_memory(start, 32)
    stack.append(int.from_bytes(computation._memory._bytes[start : start + 32]))


def _mstore(computation: Any) -> None:
    stack = computation._stack.values
    start, word = stack.pop(), stack.pop()
    computation.extend_memory(start, 32)
    computation._memory._bytes[start : start + 32] = word.to_bytes(32)


_OF_MEMORY: dict[str, Callable[[Any], None]] = {"MLOAD": _mload, "MSTORE": _mstore}


class Instruction(NamedTuple):
    """Gas and function of an instruction, which works on the stack or the computation; a PUSH
    has no function."""

    gas: int = 0
    of_stack: Callable[[list[int]], object] | None = None
    run: Callable[[Any], object] | None = None


def table(opcodes: dict[int, Any]) -> list[Instruction]:
    """Return the instruction of each opcode; py-evm's own instructions charge their gas
    themselves."""
    return [_instruction(code, opcodes.get(code)) for code in range(256)]


def _instruction(code: int, opcode: Any) -> Instruction:
    if opcode is None:
        return Instruction(run=InvalidOpcode(code))
    name = name_of(code)
    if name in _OF_STACK:
        return Instruction(opcode.gas_cost, of_stack=_OF_STACK[name])
    if name in _OF_MEMORY:
        return Instruction(opcode.gas_cost, run=_OF_MEMORY[name])
    if name.startswith("PUSH"):
        return Instruction(opcode.gas_cost)
    return Instruction(run=opcode)


@lru_cache(64)
def _analysed(code: bytes) -> tuple[bytes, set[int], set[int]]:
    """Return padded code, and the positions that are known to be instructions, or data, which
    grow later.

    A PUSH reads zeros after the end, and then there is a STOP.
    """
    return code + bytes(33), set(), set()


def execute(computation: Any, instructions: list[Instruction]) -> None:
    """Run the code of a computation to its end."""
    stream, meter, stack = computation.code, computation._gas_meter, computation._stack.values
    # Only overrides have longer code, and caching a few would fill the memory.
    kept = len(stream) <= MAX_INITCODE
    found = (_analysed if kept else _analysed.__wrapped__)(computation.msg.code)
    code, stream.valid_positions, stream.invalid_positions = found
    at, gas = 0, meter.gas_remaining
    try:
        while True:
            opcode = code[at]
            cost, of_stack, run = instructions[opcode]
            at += 1
            gas -= cost
            if gas < 0:
                raise OutOfGas("Out of gas")
            if of_stack is not None:
                of_stack(stack)
            elif run is not None:
                stream.program_counter, meter.gas_remaining = at, gas
                run(computation)
                at, gas = stream.program_counter, meter.gas_remaining
            else:
                if len(stack) >= _MAX_STACK:
                    raise FullStack("Stack limit reached")
                end = at + opcode - _PUSH0
                stack.append(int.from_bytes(code[at:end]))
                at = end
    except IndexError:
        raise InsufficientStack("Stack underflow") from None
    except Halt:
        return
