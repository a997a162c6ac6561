"""Call frames and instructions of py-evm, as tracers see them."""

from __future__ import annotations

from typing import Any

from eth.vm.forks.prague.computation import PragueComputation
from eth_typing import Address

from .base import CALLS, CREATES, SSTORE

_LOOKED_AT = frozenset((*CREATES, *CALLS, SSTORE))


class Frame:
    """A running call frame."""

    depth: int
    sender: bytes
    to: bytes
    code_address: bytes
    value: int
    gas: int
    data: bytes
    kind: str
    refund = 0

    def __init__(self, message: Any, parent: Any) -> None:
        self.depth, self.refund = message.depth, int(message.refund)
        self.sender, self.to = bytes(message.sender), bytes(message.storage_address)
        self.code_address = bytes(message.code_address or b"")
        self.value, self.gas = message.value, message.gas
        self.data = bytes(message.code if message.is_create else message.data)
        self.kind = _kind(message, parent)


class RefusedFrame(Frame):
    """A call frame that can't begin, read from the stack of its instruction."""

    def __init__(self, computation: InspectableComputation, step: Step, gas: int) -> None:
        creates = step.op in CREATES
        self.kind = CREATES[step.op] if creates else CALLS[step.op]
        self.depth, self.gas = computation.msg.depth + 1, gas
        self.sender = self.to = bytes(computation.msg.storage_address)
        words = step.words[::-1]
        address = b"" if creates else words[1].to_bytes(32)[12:]
        words = words[0 if creates else 2 :]
        is_paying = self.kind not in ("DELEGATECALL", "STATICCALL")
        self.value = words.pop(0) if is_paying else 0
        self.code_address = address
        if self.kind in ("CALL", "STATICCALL"):
            self.to = address
        self.data = bytes(computation.memory_read_bytes(words[0], words[1]))


def _kind(message: Any, parent: Any) -> str:
    opcode = 0 if parent is None else parent.opcode
    if message.is_create:
        return CREATES.get(opcode, "CREATE")
    return CALLS.get(opcode, "CALL")


class Step:
    """An instruction, with the state of its computation."""

    __slots__ = ("_computation", "gas", "op", "pc", "words")

    def __init__(self, computation: InspectableComputation, opcode: int) -> None:
        self._computation, self.op = computation, opcode
        computation.opcode = opcode
        self.pc = computation.code.program_counter
        self.gas = computation._gas_meter.gas_remaining
        # Read the stack only for instructions whose operands are needed after they were popped.
        self.words = computation.words() if opcode in _LOOKED_AT else []

    @property
    def frame(self) -> Frame:
        """The call frame of the instruction."""
        return self._computation.frame

    @property
    def refund(self) -> int:
        """Gas that will be refunded."""
        return int(self._computation._gas_meter.gas_refunded)

    def stack(self) -> list[int]:
        """Return the whole stack, with the top last."""
        return self._computation.words()

    def memory(self) -> bytes:
        """Return the whole memory."""
        memory: Any = self._computation._memory
        return bytes(memory._bytes)

    def return_data(self) -> bytes:
        """Return the data that the last call returned."""
        return bytes(self._computation.return_data)

    def storage(self, address: bytes, slot: int) -> int:
        """Return the current value of a storage slot."""
        return int(self._computation.state.get_storage(Address(address), slot))


class InspectableComputation(PragueComputation):
    """py-evm's computation, with the parts that steps and frames are read from."""

    step: Step | None = None
    frame: Frame
    opcode = 0

    def words(self) -> list[int]:
        """Return the stack."""
        stack: Any = self._stack
        return list(stack.values)
