"""The logs of a message, with one more for each transfer of ether in it.

geth: internal/ethapi/logtracer.go.
"""

from __future__ import annotations

from ...domain.evm import EmittedLog
from ...protocol.ethereum.crypto import keccak
from ..base import Frame, Tracer
from .call_tracer import callee

# ERC-7528's address of ether, and ERC-20's event.
_ETHER = b"\xee" * 20
_TRANSFER = keccak(b"Transfer(address,address,uint256)")


class TransferTracer(Tracer):
    """Gathers the logs; those of messages that fail are dropped with them."""

    def __init__(self) -> None:
        self._open: list[list[EmittedLog]] = [[]]

    @property
    def logs(self) -> tuple[EmittedLog, ...]:
        """Logs and transfers, in order."""
        return tuple(self._open[0])

    def enter(self, frame: Frame) -> None:
        self._open.append([])
        if frame.kind != "DELEGATECALL":
            self._transfer(frame.sender, callee(frame), frame.value)

    def _transfer(self, sender: bytes, to: bytes, value: int) -> None:
        if value:
            parties = (party.rjust(32, b"\0") for party in (sender, to))
            self.log(_ETHER, (_TRANSFER, *parties), value.to_bytes(32))

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        self._open[-1].append(EmittedLog(address, topics, data))

    def selfdestruct(self, address: bytes, beneficiary: bytes, balance: int) -> None:
        self._transfer(address, beneficiary, balance)

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        logs = self._open.pop()
        if not error:
            self._open[-1] += logs
