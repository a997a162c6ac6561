"""Traces of the ``trace`` namespace: calls, changes of the state, and instructions.

OpenEthereum's JSONRPC-trace-module; erigon: rpc/jsonrpc/trace_adhoc.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .... import jsoncodec
from ...domain.execution import NO_CODE, REVERTED, Environment, Message, Outcome
from .. import base
from ..base import World
from ..frames import Frame, Step
from .base import OutputLimit, Recorder, TracerConfig, data, word
from .call_tracer import FlatCalls
from .others import MuxRecorder
from .prestate import InitialAccount, Prestate, PrestateRecorder

CALLS: Final = FlatCalls(parity_errors=True, is_parity=True)
"""Tracer of the kind ``trace``."""


class _StateDiff(PrestateRecorder):
    """Recorder of the accounts that a message changes."""

    def __init__(self, output_limit: OutputLimit) -> None:
        super().__init__(Prestate(), output_limit)

    def result(self, outcome: Outcome) -> Any:
        """Return the changes by address."""
        changes = {data(each): self._changed(each, seen) for each, seen in self._seen.items()}
        return {address: change for address, change in changes.items() if change}

    def _changed(self, address: bytes, before: InitialAccount) -> dict[str, Any] | None:
        world = self._world
        now, code = world.account(address), world.code(address)
        after = InitialAccount(now.balance, now.nonce, now.code_hash, code, {})
        if before.empty and after.empty:
            return None
        sign = "+" if before.empty else "-" if after.empty else "*"
        if after.code_hash not in (before.code_hash, NO_CODE):
            self._output_limit.take(2 * len(code))
        fields = {
            "balance": _delta(sign, hex(before.balance), hex(after.balance)),
            "code": _delta(sign, data(before.code), data(after.code)),
            "nonce": _delta(sign, hex(before.nonce), hex(after.nonce)),
        }
        words = {slot: world.storage(address, slot) for slot in before.storage}
        storage = {
            word(slot): _delta(sign, word(before.storage[slot]), word(new))
            for slot, new in words.items()
            if new != before.storage[slot]
        }
        is_changed = storage or any(field != _UNCHANGED for field in fields.values())
        return {**fields, "storage": storage} if is_changed else None


_UNCHANGED = "="


def _delta(sign: str, before: str, after: str) -> object:
    """Return a change of a value: ``+`` for a new account, ``-`` for a deleted one, ``*`` for
    an account that stays."""
    if sign == "*":
        return _UNCHANGED if before == after else {sign: {"from": before, "to": after}}
    return {sign: after if sign == "+" else before}


def _opcodes(names: str) -> frozenset[int]:
    return frozenset(base.OPCODES[name] for name in names.split())


_DUP1, _SWAP1, _LOG0 = (base.OPCODES[name] for name in ("DUP1", "SWAP1", "LOG0"))
_PUSHES_NOTHING = _opcodes(
    "STOP CALLDATACOPY CODECOPY EXTCODECOPY RETURNDATACOPY POP MSTORE MSTORE8 SSTORE JUMP JUMPI"
    " JUMPDEST TSTORE MCOPY LOG0 LOG1 LOG2 LOG3 LOG4 RETURN REVERT INVALID SELFDESTRUCT"
)
_BEGINS_FRAME = frozenset((*base.CALLS, *base.CREATES))
# Places on the stack, counted from 1 at the top, of the start and the size of the memory that
# an instruction writes.
_AREAS = {
    **dict.fromkeys(_opcodes("CALLDATACOPY CODECOPY RETURNDATACOPY MCOPY"), (1, 3)),
    **dict.fromkeys(_opcodes("EXTCODECOPY"), (2, 4)),
    **dict.fromkeys(_opcodes("CALL CALLCODE"), (6, 7)),
    **dict.fromkeys(_opcodes("DELEGATECALL STATICCALL"), (5, 6)),
}
# Sizes of the memory that starts at the top of the stack; OpenEthereum shows what MLOAD reads.
_SIZES = {
    **dict.fromkeys(_opcodes("MLOAD MSTORE"), 32),
    **dict.fromkeys(_opcodes("MSTORE8"), 1),
}


@dataclass(slots=True)
class _Instruction:
    """An instruction that has begun, and what it will write."""

    op: int
    start: int
    size: int
    store: dict[str, str] | None
    cost: int = 0


class _VmTrace(Recorder):
    """Recorder of instructions, which writes them as JSON when they begin and end.

    Subcalls are written between the beginning and the end of their instruction, so the whole
    result is written once.
    """

    def __init__(self, output_limit: OutputLimit) -> None:
        self._output_limit = output_limit
        self._written = bytearray()
        self._open: list[_Instruction | None] = []
        """Current instruction of each open call frame."""

    def _write(self, text: bytes) -> None:
        self._output_limit.take(len(text))
        self._written += text

    def enter(self, frame: Frame) -> None:
        if frame.creates and self._open and (creating := self._open[-1]):
            # OpenEthereum counts the passed gas, as for calls; the engine does not.
            creating.cost += frame.gas
        self._open.append(None)
        self._write(b'{"code":"' + data(frame.code.raw).encode() + b'","ops":[')

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        self._open.pop()
        self._write(b"]}")

    def step(self, step: Step) -> None:
        if self._open[-1] is not None:
            self._end(self._open[-1], step.frame)
        op, stack = step.op, step.frame.stack
        start = size = 0
        if op in _SIZES and stack:
            start, size = stack[-1], _SIZES[op]
        elif op in _AREAS and len(stack) >= _AREAS[op][1]:
            start, size = (stack[-place] for place in _AREAS[op])
        is_store = op == base.SSTORE and len(stack) > 1
        store = {"key": hex(stack[-1]), "val": hex(stack[-2])} if is_store else None
        self._open[-1] = _Instruction(op, start, size, store)
        if not self._written.endswith(b"["):
            self._write(b",")
        begun = jsoncodec.encode({"op": base.name_of(op), "pc": step.pc})
        self._write(begun[:-1] + b',"sub":')

    def stepped(self, step: Step, cost: int, error: str) -> None:
        instruction = self._open[-1]
        assert instruction is not None
        instruction.cost = cost
        if step.op in _BEGINS_FRAME and not error:
            # The next step of this frame writes the end, after the subcall.
            return
        self._write(b"null")
        self._end(instruction, step.frame if error in ("", REVERTED) else None)

    def _end(self, instruction: _Instruction, frame: Frame | None) -> None:
        """Write the end of an instruction; without ``frame`` the instruction failed."""
        self._open[-1] = None
        executed: dict[str, Any] | None = None
        if frame is not None:
            count = _pushed(instruction.op)
            executed = {
                "mem": None,
                "push": [hex(value) for value in frame.stack[len(frame.stack) - count :]],
                "store": instruction.store,
                "used": frame.gas_left,
            }
            start, size = instruction.start, instruction.size
            if size:
                executed["mem"] = {"data": data(frame.read(start, size)), "off": start}
        ended = jsoncodec.encode({"cost": instruction.cost, "ex": executed})
        self._write(b"," + ended[1:])

    def result(self, outcome: Outcome) -> Any:
        """Return the code of the message and its instructions."""
        return jsoncodec.Raw(bytes(self._written) or b'{"code":"0x","ops":[]}')


def _pushed(op: int) -> int:
    """Return the number of words that an instruction pushes, as OpenEthereum counts them: DUP
    and SWAP also push the words above the one that they copy or swap."""
    if _DUP1 <= op < _LOG0:
        return op - (_DUP1 if op < _SWAP1 else _SWAP1) + 2
    return int(op not in _PUSHES_NOTHING)


_RECORDERS: Mapping[str, Callable[[OutputLimit], Recorder]] = {
    "trace": CALLS.recorder,
    "stateDiff": _StateDiff,
    "vmTrace": _VmTrace,
}
KINDS: Final = tuple(_RECORDERS)
"""Kinds of traces that a caller can request."""


@dataclass(frozen=True, slots=True)
class Replay(TracerConfig):
    """Traces of the requested kinds, with the output of the message."""

    kinds: frozenset[str]

    def recorder(self, output_limit: OutputLimit) -> Recorder:
        return _Replay(self.kinds, output_limit)


class _Replay(MuxRecorder):
    def __init__(self, kinds: frozenset[str], output_limit: OutputLimit) -> None:
        super().__init__({kind: _RECORDERS[kind](output_limit) for kind in kinds})
        self._output_limit = output_limit

    def begin(self, world: World, environment: Environment, message: Message) -> None:
        # Calls of replays don't have the place of their transaction.
        self.origin = None
        super().begin(world, environment, message)

    def result(self, outcome: Outcome) -> Any:
        """Return the output and the traces; kinds that were not requested are empty."""
        self._output_limit.take(2 * len(outcome.output))
        empty = {"stateDiff": None, "trace": (), "vmTrace": None}
        return {"output": data(outcome.output), **empty, **super().result(outcome)}
