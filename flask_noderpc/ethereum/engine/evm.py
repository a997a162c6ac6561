"""The engine: an interpreter of EVM code, by the rules of each block's fork."""

from __future__ import annotations

from functools import lru_cache, partial

from ..domain.execution import (
    Account,
    AccountOverride,
    Environment,
    Message,
    Outcome,
    Overrides,
    StateChange,
)
from .base import EvmEngine, NodeStore, World
from .frames import Execution, Tracer
from .machine import Machine
from .precompiles import Precompile, precompiles
from .state import State
from .stored import StoredState

_KEPT_STATES = 2


class Evm(EvmEngine):
    """Engine for states whose trie nodes and codes are stored by hash.

    With ``keeps_names``, new states also store each address and slot under its hash.
    """

    def __init__(self, records: NodeStore, *, keeps_names: bool = False) -> None:
        self._records, self._keeps_names = records, keeps_names
        # Cache the states of two blocks: most calls are for the latest one or its parent.
        self._stored = lru_cache(_KEPT_STATES)(partial(StoredState, records.record))

    def world(self, root: bytes) -> World:
        state = State(self._stored(root), keeps_names=self._keeps_names)
        return _EvmWorld(self._records, state)


class _EvmWorld(World):
    """A state on which messages run one after another."""

    def __init__(self, records: NodeStore, state: State) -> None:
        self._records, self._state = records, state
        # Overridden addresses, with the new address of the precompiled contract at each, or
        # ``None`` if it is not moved.
        self._moved: dict[bytes, bytes | None] = {}

    def account(self, address: bytes) -> Account:
        return self._state.account(address)

    def exists(self, address: bytes) -> bool:
        return self._state.exists(address)

    def code(self, address: bytes) -> bytes:
        return self._state.code(address)

    def storage(self, address: bytes, slot: int) -> int:
        return self._state.storage(address, slot)

    def patch(self, overrides: Overrides) -> None:
        # As in geth, moved precompiled contracts only last for a block, and an address with an
        # override is no longer a precompiled contract.
        self._moved = {
            address: override.precompile_to for address, override in overrides.items()
        }
        for address, override in overrides.items():
            self._patch(address, override)
        # Overrides belong to the state before the next message, so its failure keeps them.
        self._state.keep_changes()

    def _patch(self, address: bytes, override: AccountOverride) -> None:
        state = self._state
        if override.nonce is not None:
            state.set_nonce(address, override.nonce)
        if override.balance is not None:
            state.set_balance(address, override.balance)
        if override.code is not None:
            state.set_code(address, override.code)
        if override.state is not None:
            state.delete_storage(address)
        for slot, word in (override.state or override.state_diff or {}).items():
            state.override_storage(address, int.from_bytes(slot), int.from_bytes(word))

    def run(
        self, environment: Environment, message: Message, tracer: Tracer | None = None
    ) -> Outcome:
        contracts = precompiles(environment.fork)
        if not self._moved.keys().isdisjoint(contracts):
            contracts = self._displaced(dict(contracts))
        execution = Execution(
            self._state, environment, message, contracts, self._records.block_hash, tracer
        )
        try:
            return Machine(execution).run()
        finally:
            self._state.keep_changes()

    def _displaced(self, contracts: dict[bytes, Precompile]) -> dict[bytes, Precompile]:
        for address, target in self._moved.items():
            found = contracts.pop(address, None)
            if found is not None and target is not None:
                contracts[target] = found
        return contracts

    def root(self) -> bytes:
        self._state.persist()
        return self._state.root

    def commit(self) -> StateChange:
        return StateChange(self.root(), self._state.written())
