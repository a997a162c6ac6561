"""``erc7562Tracer``, which shows bundlers what the validation of a user operation accesses.

geth: eth/tracers/native/erc7562.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ...domain.execution import CODE_OUT_OF_GAS, OUT_OF_GAS, Environment, Message, Outcome
from ..base import CALLS, OPCODES, SLOAD, World, address_of
from ..frames import Frame, Step
from .base import OutputLimit, Recorder, TracerConfig, data, word
from .call_tracer import CallRecorder, CallTracer

_FRAME_BYTES, _ENTRY_BYTES = 512, 128
# geth: eth/tracers/internal/util.go, memoryPadLimit.
_MAX_PADDING = 1 << 20
_MAX_INT64 = (1 << 63) - 1
_UINT64_MASK = (1 << 64) - 1


def _opcodes(names: str) -> list[int]:
    return [OPCODES[name] for name in names.split()]


_EXTCODESIZE, _GAS, _ISZERO, _KECCAK256 = _opcodes("EXTCODESIZE GAS ISZERO KECCAK256")
_OF_CODE = frozenset(_opcodes("EXTCODESIZE EXTCODECOPY EXTCODEHASH"))
_RETURNS = frozenset(_opcodes("RETURN REVERT"))
_MEMBERS = "reads", "writes", "transientReads", "transientWrites"
_OF_SLOT = dict(zip(_opcodes("SLOAD SSTORE TLOAD TSTORE"), _MEMBERS, strict=True))
"""Instructions with a slot on top of the stack, with their members of ``accessedSlots``."""

_HARMLESS = _opcodes("POP ADD SUB MUL DIV EQ LT GT SLT SGT SHL SHR AND OR NOT ISZERO")
DEFAULT_IGNORED: Final = frozenset(
    (*_HARMLESS, *range(OPCODES["PUSH0"], OPCODES["SWAP16"] + 1))
)
"""Opcodes that ``usedOpcodes`` leaves out by default."""


@dataclass(frozen=True, slots=True)
class Erc7562(TracerConfig):
    """``erc7562Tracer`` with its options: opcodes that are not counted, and include logs."""

    ignored: frozenset[int] = DEFAULT_IGNORED
    with_log: bool = False

    def recorder(self, output_limit: OutputLimit) -> Recorder:
        return _Erc7562(self, output_limit)


class _Erc7562(CallRecorder):
    """Recorder of the call tree with the slots, codes and opcodes that each frame uses."""

    def __init__(self, show: Erc7562, output_limit: OutputLimit) -> None:
        super().__init__(CallTracer(with_log=show.with_log), output_limit)
        self._ignored = show.ignored | {_GAS}
        self._preimages: set[bytes] = set()
        self._last: tuple[int, int | None] = (0, None)
        """Opcode of the previous instruction of any frame, and the top of the stack before
        it."""

    def begin(self, world: World, environment: Environment, message: Message) -> None:
        super().begin(world, environment, message)
        self._top |= _accesses()

    def enter(self, frame: Frame) -> None:
        super().enter(frame)
        self._add_accesses(self._open[-1])

    def selfdestruct(self, address: bytes, beneficiary: bytes, balance: int) -> None:
        super().selfdestruct(address, beneficiary, balance)
        self._add_accesses(self._open[-1]["calls"][-1])

    def _add_accesses(self, made: dict[str, Any]) -> None:
        self._output_limit.take(_FRAME_BYTES)
        made |= _accesses()

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        # geth never sets the member in the outermost frame.
        if frame.depth and error.startswith((OUT_OF_GAS, CODE_OUT_OF_GAS)):
            self._open[-1]["outOfGas"] = True
        super().exit(frame, output, gas_used, error)

    def step(self, step: Step) -> None:
        op, stack, made = step.op, step.frame.stack, self._open[-1]
        # Whether an access counts depends on the next instruction, which may be of another
        # frame, but not on one that ends a frame.
        if op not in _RETURNS:
            self._settle_last(op, made)
        self._last = op, stack[-1] if stack else None
        if op not in self._ignored:
            self._count(made["usedOpcodes"], hex(op))
        # An instruction that fails for lack of words on the stack is reported, too.
        if op in _OF_CODE and stack:
            self._add_size(step, address_of(stack[-1]), made)
        elif op in CALLS and len(stack) > 1:
            self._add_size(step, address_of(stack[-2]), made)
        elif op in _OF_SLOT and stack:
            self._add_slot(step, stack[-1], made["accessedSlots"])
        elif op == _KECCAK256 and len(stack) > 1:
            self._add_preimage(step.frame.memory, stack[-1], stack[-2])

    def _settle_last(self, op: int, made: dict[str, Any]) -> None:
        """Record what the previous instruction reads, unless ``op`` makes it harmless: a test
        whether an account has code, and passing all gas to a call."""
        last, top = self._last
        if last == _GAS and op not in CALLS:
            self._count(made["usedOpcodes"], hex(_GAS))
        elif last in _OF_CODE and top is not None and (last, op) != (_EXTCODESIZE, _ISZERO):
            self._output_limit.take(_ENTRY_BYTES)
            made["extCodeAccessInfo"].append(data(address_of(top)))

    def _add_size(self, step: Step, address: bytes, made: dict[str, Any]) -> None:
        sizes, name = made["contractSize"], data(address)
        if name not in sizes:
            self._output_limit.take(_ENTRY_BYTES)
            size = len(step.frame.execution.state.code(address))
            sizes[name] = {"contractSize": size, "opcode": step.op}

    def _add_slot(self, step: Step, slot: int, slots: dict[str, Any]) -> None:
        name = word(slot)
        if step.op != SLOAD:
            self._count(slots[_OF_SLOT[step.op]], name)
        elif name not in slots["reads"] and name not in slots["writes"]:
            self._output_limit.take(2 * _ENTRY_BYTES)
            slots["reads"][name] = [word(step.storage(step.frame.to, slot))]

    def _add_preimage(self, memory: bytearray, start: int, size: int) -> None:
        start, size = start & _UINT64_MASK, size & _UINT64_MASK
        if max(start, size) > _MAX_INT64 or start + size - len(memory) > _MAX_PADDING:
            return
        # The memory has not been extended yet.
        preimage = bytes(memory[start : start + size]).ljust(size, b"\0")
        if preimage not in self._preimages:
            self._output_limit.take(_ENTRY_BYTES + 2 * size)
            self._preimages.add(preimage)

    def _count(self, counts: dict[str, int], name: str) -> None:
        if name not in counts:
            self._output_limit.take(_ENTRY_BYTES)
        counts[name] = counts.get(name, 0) + 1

    def tree(self, outcome: Outcome) -> dict[str, Any]:
        top = super().tree(outcome)
        if self._preimages:
            top["keccak"] = [data(preimage) for preimage in sorted(self._preimages)]
        return top


def _accesses() -> dict[str, Any]:
    """Return the members of a frame that has not accessed anything."""
    return {
        "accessedSlots": {name: {} for name in _MEMBERS},
        "extCodeAccessInfo": [],
        "usedOpcodes": {},
        "contractSize": {},
        "outOfGas": False,
    }
