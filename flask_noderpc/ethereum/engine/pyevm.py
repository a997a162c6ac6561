"""py-evm as the engine: its Prague rules on records that the chain stores.

Only py-evm's state, and the code that runs on it, is used; it does not know this package's
blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

from eth.exceptions import VMError
from eth.vm.execution_context import ExecutionContext
from eth_typing import Address, BlockNumber, Hash32

from ..domain.execution import (
    Account,
    AccountOverride,
    EmittedLog,
    Environment,
    Message,
    Outcome,
    Overrides,
    StateChange,
)
from ..domain.records import ZERO_HASH
from ..protocol.validity import floor_gas, intrinsic_gas
from .base import EvmEngine, NodeStore, Tracer, World
from .pyevm_code import Computation, computation_class
from .pyevm_precompiles import error_text
from .pyevm_state import State
from .pyevm_transaction import Executor, MessageTransaction
from .stored import StoredState

_ANCESTORS = 256
_NONCES = 1 << 64
_KEPT_STATES = 2


class PyEvm(EvmEngine):
    """Runs messages by the rules of Prague.

    With ``keeps_names``, the records of new states include addresses and slots by their hashes.
    """

    def __init__(self, records: NodeStore, *, keeps_names: bool = False) -> None:
        self._records, self._keeps_names = records, keeps_names
        # Most calls are for the latest block, or the one before.
        self._stored = lru_cache(_KEPT_STATES)(partial(StoredState, records.record))

    def world(self, root: bytes) -> World:
        return _PyEvmWorld(self._records, self._stored(root), keeps_names=self._keeps_names)


class _PyEvmWorld(World):
    """A state of py-evm, on which messages run one after another."""

    def __init__(self, records: NodeStore, stored: StoredState, *, keeps_names: bool) -> None:
        self._records = records
        nowhere = Environment(chain_id=1, number=0, timestamp=0, gas_limit=0)
        self._state = State(stored, self._context(nowhere), keeps_names=keeps_names)

    def account(self, address: bytes) -> Account:
        return self._state.account(Address(address))

    def code(self, address: bytes) -> bytes:
        return self._state.get_code(Address(address))

    def storage(self, address: bytes, slot: int) -> int:
        return self._state.get_storage(Address(address), slot)

    def patch(self, overrides: Overrides) -> None:
        # In geth overrides of precompiled contracts only last for a block.
        self._state.precompiles = None
        for address, override in overrides.items():
            self._displace(Address(address), override.precompile_to)
            self._patch(Address(address), override)
        # Overrides are the state that the next message begins with, and not its changes.
        self._state.lock_changes()

    def _displace(self, address: Address, target: bytes | None) -> None:
        """Replace a precompiled contract; in geth an overridden account is not one any
        longer."""
        precompiles = dict(self._state.precompiles or Computation.get_precompiles())
        found = precompiles.pop(address, None)
        if found is not None:
            if target is not None:
                precompiles[Address(target)] = found
            self._state.precompiles = precompiles

    def _patch(self, address: Address, override: AccountOverride) -> None:
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
            state.set_storage(address, int.from_bytes(slot), int.from_bytes(word))

    def run(
        self, environment: Environment, message: Message, tracer: Tracer | None = None
    ) -> Outcome:
        state = self._state
        state.execution_context = self._context(environment)
        state.tracer, state.blob_fee = tracer, environment.blob_base_fee
        state.computation_class = computation_class(environment.code_size_limit)
        nonce = message.nonce
        if nonce is None:
            nonce = state.get_nonce(Address(message.sender))
        else:
            state.set_nonce(Address(message.sender), nonce)
        if message.to is None and nonce == _NONCES - 1:
            # geth: core/vm, ErrNonceUintOverflow.
            return _began(message, "nonce uint64 overflow")
        signed = MessageTransaction(message, nonce, environment.base_fee)
        try:
            return self._run(signed, message)
        finally:
            state.clear_transient_storage()
            state.lock_changes()
            state.tracer = None

    def _run(self, signed: Any, message: Message) -> Outcome:
        executor = Executor(self._state)
        built = executor.build_evm_message(signed)
        created = built.storage_address if message.to is None else None
        before = self._state.snapshot()
        try:
            done = executor.build_computation(built, signed)
        except VMError as error:
            # The value exceeded the sender's balance.
            self._state.revert(before)
            used = message.gas - built.gas
            return Outcome(gas_used=used, max_used_gas=used, error=error_text(error))
        gas_used = message.gas - done.get_gas_remaining()
        floor = floor_gas(message.data)
        used = max(gas_used - executor.calculate_gas_refund(done, gas_used), floor)
        executor.settle(signed, done, used)
        return Outcome(
            gas_used=used,
            max_used_gas=max(gas_used, floor),
            output=bytes(done.output),
            error=error_text(done.error) if done.is_error else "",
            logs=tuple(_log(*entry) for entry in done.get_log_entries()),
            created=bytes(created) if created else None,
        )

    def root(self) -> bytes:
        self._state.persist()
        return bytes(self._state.state_root)

    def commit(self) -> StateChange:
        return StateChange(self.root(), self._state.written())

    def _context(self, environment: Environment) -> ExecutionContext:
        return ExecutionContext(
            coinbase=Address(environment.coinbase),
            timestamp=environment.timestamp,
            block_number=BlockNumber(environment.number),
            difficulty=0,
            mix_hash=Hash32(environment.prev_randao),
            gas_limit=environment.gas_limit,
            prev_hashes=self._ancestors(environment),
            chain_id=environment.chain_id,
            base_fee_per_gas=environment.base_fee,
            excess_blob_gas=0,
        )

    def _ancestors(self, environment: Environment) -> Iterator[Hash32]:
        """Yield the hashes of the blocks before an environment's, nearest first, read on
        demand."""
        number, simulated = environment.number, environment.hashes
        for height in range(number - 1, max(-1, number - 1 - _ANCESTORS), -1):
            found = simulated.get(height) or self._records.block_hash(height)
            yield Hash32(found or ZERO_HASH)


def _began(message: Message, error: str) -> Outcome:
    """Return the outcome of a message that failed before its code ran."""
    lists = message.access_list, message.authorizations
    used = intrinsic_gas(message.data, message.to is None, *lists)
    return Outcome(gas_used=used, max_used_gas=used, error=error)


def _log(address: bytes, topics: tuple[int, ...], data: bytes) -> EmittedLog:
    return EmittedLog(bytes(address), tuple(t.to_bytes(32) for t in topics), bytes(data))
