"""``prestateTracer``, and access lists.

geth: eth/tracers/native/prestate.go, eth/tracers/logger/access_list_tracer.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...domain.execution import DELEGATION, NO_CODE, Environment, Message, Outcome
from ...domain.records import AccessListEntry
from ...protocol.crypto import authority_of
from ...protocol.execution import created_address
from .. import base
from ..base import World
from ..frames import Frame, Step, Tracer
from .base import NOT_BEGUN, OutputLimit, Recorder, TracerConfig, data, word

_ACCOUNT_BYTES, _SLOT_BYTES = 512, 512


@dataclass(frozen=True, slots=True)
class Prestate(TracerConfig):
    """``prestateTracer`` with its options: fields of accounts to include. ``diff`` shows the
    accounts before and after the message."""

    diff: bool = False
    code: bool = True
    storage: bool = True
    include_empty: bool = False

    def recorder(self, output_limit: OutputLimit) -> Recorder:
        return PrestateRecorder(self, output_limit)


@dataclass(slots=True)
class InitialAccount:
    """An account as it was at the first access."""

    balance: int
    nonce: int
    code_hash: bytes
    code: bytes
    storage: dict[int, int]

    @property
    def empty(self) -> bool:
        return not (self.balance or self.nonce or self.code_hash != NO_CODE)


class PrestateRecorder(Recorder):
    """Recorder of the accounts and slots that a message accesses, as they were before it."""

    def __init__(self, show: Prestate, output_limit: OutputLimit) -> None:
        self._show, self._output_limit = show, output_limit
        self._seen: dict[bytes, InitialAccount] = {}
        self._created: set[bytes] = set()
        self._ended: list[set[bytes]] = [set()]
        """Self-destructed accounts for each open call frame; the set of a failed frame is
        dropped."""
        self._fresh: list[tuple[bytes, int | None]] = []
        """Accounts and slots that the current instruction accessed first."""
        self._world: World
        self._deletes_old = False

    def begin(self, world: World, environment: Environment, message: Message) -> None:
        self._world, self._deletes_old = world, not environment.fork.keeps_destroyed
        sender = message.sender
        self._see(sender)
        nonce = message.nonce
        if nonce is None:
            nonce = self._seen[sender].nonce
        if message.to is None:
            self._see_created(created_address(sender, nonce))
        else:
            self._see_called(message.to)
        self._see(environment.coinbase)
        for authority in filter(None, map(authority_of, message.authorizations)):
            self._see(authority)

    def _see(self, address: bytes) -> None:
        if address not in self._seen:
            found = self._world.account(address)
            code = self._world.code(address) if self._show.code else b""
            self._output_limit.take(_ACCOUNT_BYTES + 2 * len(code))
            self._seen[address] = InitialAccount(
                found.balance, found.nonce, found.code_hash, code, {}
            )
            self._fresh.append((address, None))

    def _see_called(self, address: bytes) -> None:
        """Record an account, and the account whose code it runs (EIP-7702)."""
        self._see(address)
        code = self._world.code(address)
        if code.startswith(DELEGATION):
            self._see(code.removeprefix(DELEGATION))

    def _see_created(self, address: bytes) -> None:
        self._see(address)
        self._created.add(address)

    def _see_slot(self, address: bytes, slot: int) -> None:
        self._see(address)
        storage = self._seen[address].storage
        if self._show.storage and slot not in storage:
            self._output_limit.take(_SLOT_BYTES)
            storage[slot] = self._world.storage(address, slot)
            self._fresh.append((address, slot))

    def enter(self, frame: Frame) -> None:
        self._ended.append(set())
        if frame.depth and frame.kind.startswith("CREATE"):
            self._see_created(frame.to)

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        ended = self._ended.pop()
        if not error:
            self._ended[-1] |= ended

    def step(self, step: Step) -> None:
        op = step.op
        self._fresh.clear()
        if op in base.OF_STORAGE and (stack := step.stack()):
            self._see_slot(step.frame.to, stack[-1])
        elif op in base.OF_ACCOUNT and (stack := step.stack()):
            self._see(base.address_of(stack[-1]))
        elif op in base.CALLS and len(stack := step.stack()) > 1:
            self._see_called(base.address_of(stack[-2]))

    def stepped(self, step: Step, cost: int, error: str) -> None:
        if not error.startswith(NOT_BEGUN):
            # EIP-6780: SELFDESTRUCT deletes only contracts that the transaction created.
            is_deleted = step.frame.to in self._created or self._deletes_old
            if step.op == base.SELFDESTRUCT and is_deleted:
                self._ended[-1].add(step.frame.to)
            return
        for address, slot in reversed(self._fresh):
            if slot is None:
                del self._seen[address]
            else:
                del self._seen[address].storage[slot]

    def result(self, outcome: Outcome) -> Any:
        """Return the accounts before the message; with ``diff``, the changed ones before and
        after it."""
        if self._show.diff:
            return self._changes()
        return {data(address): _account_json(seen) for address, seen in self._accounts_before()}

    def _accounts_before(self) -> list[tuple[bytes, InitialAccount]]:
        whole = self._show.include_empty
        return [each for each in self._seen.items() if whole or not each[1].empty]

    def _changes(self) -> Any:
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        for address, seen in self._seen.items():
            name = data(address)
            if address not in self._ended[0]:
                changed = self._change(address, seen)
                if changed is None:
                    continue
                after[name] = changed
            if self._show.include_empty or not seen.empty:
                before[name] = _account_json(seen)
        return {"pre": before, "post": after}

    def _change(self, address: bytes, seen: InitialAccount) -> dict[str, Any] | None:
        """Return the changed fields of an account, ``None`` if nothing changed, and remove its
        unchanged slots from ``pre``."""
        now, made = self._world.account(address), dict[str, Any]()
        if now.balance != seen.balance:
            made["balance"] = hex(now.balance)
        if now.nonce != seen.nonce:
            made["nonce"] = now.nonce
        if now.code_hash != seen.code_hash:
            made["codeHash"] = data(now.code_hash)
            if self._show.code:
                made["code"] = data(self._world.code(address))
        words = {slot: self._world.storage(address, slot) for slot in seen.storage}
        changed = {slot: new for slot, new in words.items() if new != seen.storage[slot]}
        # geth omits slots with the value 0, before as well as after.
        if any(changed.values()):
            made["storage"] = _words({slot: new for slot, new in changed.items() if new})
        seen.storage = {slot: seen.storage[slot] for slot in changed if seen.storage[slot]}
        return made if made or changed else None


def _account_json(seen: InitialAccount) -> dict[str, Any]:
    made: dict[str, Any] = {"balance": hex(seen.balance)}
    if seen.nonce:
        made["nonce"] = seen.nonce
    if seen.code:
        made["code"] = data(seen.code)
    if seen.code_hash != NO_CODE:
        made["codeHash"] = data(seen.code_hash)
    if seen.storage:
        made["storage"] = _words(seen.storage)
    return made


def _words(slots: dict[int, int]) -> dict[str, str]:
    return {word(slot): word(value) for slot, value in slots.items()}


class AccessListTracer(Tracer):
    """Tracer that collects accessed accounts and slots; accounts in ``excluded`` are listed
    only if they have slots."""

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
        elif op in base.CALLS and len(stack := step.stack()) > 1:
            self._touch(base.address_of(stack[-2]))

    @property
    def entries(self) -> tuple[AccessListEntry, ...]:
        """Access list, sorted by address and slot."""
        return tuple(
            AccessListEntry(address, tuple(sorted(slots)))
            for address, slots in sorted(self._slots.items())
        )
