"""Accounts that a transaction calls, and ether that it moves, below its outermost frame."""

from __future__ import annotations

from collections.abc import Collection

from ...domain.execution import REVERTED, InternalCalls, Operation
from ..frames import Frame, Tracer
from .call_tracer import callee, caller


class InternalCallsTracer(Tracer):
    """Tracer that collects the accounts and operations of a transaction.

    Calls of precompiled contracts without value are left out, as in OpenEthereum's traces.
    """

    def __init__(self, precompiled: Collection[bytes]) -> None:
        self._precompiled = precompiled
        self._top: tuple[bytes, bytes] = (b"", b"")
        self._accounts: dict[bytes, None] = {}
        self._created: list[list[bytes]] = [[]]
        self._operations: list[list[Operation]] = [[]]
        """Operations of each open frame and of its subcalls that succeeded."""

    @property
    def calls(self) -> InternalCalls:
        """Calls of the transaction, which has ended."""
        created = self._created[0]
        known = {*self._top, *created}
        accounts = tuple(each for each in self._accounts if each not in known)
        return InternalCalls(accounts, tuple(created), tuple(self._operations[0]))

    def _is_hidden(self, frame: Frame) -> bool:
        return bool(frame.depth and not frame.value and callee(frame) in self._precompiled)

    def enter(self, frame: Frame) -> None:
        self._operations.append([])
        self._created.append([])
        if self._is_hidden(frame):
            return
        if not frame.depth:
            self._top = frame.sender, b"" if frame.creates else frame.to
            return
        self._accounts[caller(frame)] = None
        if not frame.creates:
            self._accounts[callee(frame)] = None
        if frame.creates or (frame.value and frame.kind == "CALL"):
            made = Operation(frame.kind, frame.sender, frame.to, frame.value)
            self._operations[-1].append(made)

    def selfdestruct(self, address: bytes, beneficiary: bytes, balance: int) -> None:
        self._accounts |= {address: None, beneficiary: None}
        self._operations[-1].append(Operation("SELFDESTRUCT", address, beneficiary, balance))

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        operations, created = self._operations.pop(), self._created.pop()
        if error:
            # The contracts are gone, but the traces of failed frames still name them.
            self._accounts |= dict.fromkeys(created)
            if frame.creates and error == REVERTED:
                self._accounts[frame.to] = None
            return
        self._operations[-1] += operations
        self._created[-1] += created
        if frame.creates:
            self._created[-1].append(frame.to)
