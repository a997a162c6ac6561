"""The accounts and slots that a message touches, for EIP-2930.

geth: eth/tracers/logger/access_list_tracer.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...domain.ethereum import AccessListEntry
from .. import base
from ..base import Step, Tracer


class AccessListTracer(Tracer):
    """Gathers what is touched; ``excluded`` are there anyway, but for their slots."""

    def __init__(self, excluded: frozenset[bytes], known: Iterable[AccessListEntry]) -> None:
        self._excluded = excluded
        self._slots: dict[bytes, set[bytes]] = {}
        for entry in known:
            self._touch(entry.address)
            if entry.storage_keys:
                self._slots.setdefault(entry.address, set()).update(entry.storage_keys)

    def _touch(self, address: bytes) -> None:
        if address not in self._excluded:
            self._slots.setdefault(address, set())

    def step(self, step: Step) -> None:
        op = step.op
        if op in base.OF_STORAGE and (stack := step.stack()):
            self._slots.setdefault(step.frame.to, set()).add(stack[-1].to_bytes(32))
        elif op in base.OF_ACCOUNT and (stack := step.stack()):
            self._touch(base.address_of(stack[-1]))
        elif op in base.OF_CALL and len(stack := step.stack()) > 1:
            self._touch(base.address_of(stack[-2]))

    @property
    def entries(self) -> tuple[AccessListEntry, ...]:
        """The list, in order."""
        return tuple(
            AccessListEntry(address, tuple(sorted(slots)))
            for address, slots in sorted(self._slots.items())
        )
