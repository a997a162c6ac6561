"""py-evm as the engine: its Prague rules on records that the chain keeps.

Of py-evm only the state and what runs on it is used; it knows nothing of our blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eth.db.atomic import AtomicDB
from eth.db.backends.base import BaseDB
from eth.exceptions import VMError
from eth.vm.execution_context import ExecutionContext
from eth.vm.forks.prague.state import PragueState, PragueTransactionExecutor
from eth_typing import Address, BlockNumber, Hash32
from trie.hexary import HexaryTrie

from ..domain.ethereum import NO_BLOB_FEE, ZERO_HASH, Authorization
from ..domain.evm import (
    Account,
    AccountOverride,
    EmittedLog,
    Environment,
    Message,
    Outcome,
    Overrides,
    StateChange,
)
from ..protocol.ethereum.crypto import ORDER
from ..protocol.ethereum.validity import floor_gas, initcode_gas, intrinsic_gas
from .base import EvmEngine, NodeStore, Tracer, World
from .pyevm_code import Computation
from .pyevm_precompiles import error_text

_CREATES = Address(b"")
_ANCESTORS = 256
_NONCES = 1 << 64
_BALANCES = 1 << 256


class PyEvm(EvmEngine):
    """Runs messages by the rules of Prague."""

    def __init__(self, records: NodeStore) -> None:
        self._records = records

    def world(self, root: bytes) -> World:
        # trie 3.1: an lru_cache of 4,096 nodes, which with each holds on to a trie and all that
        # was written to it. No node of one trie is found for another.
        HexaryTrie._cached_create_node_to_db_mapping.cache_clear()
        return _PyEvmWorld(self._records, root)


class _Store(BaseDB):
    """The chain's records below, and above them those that are new."""

    def __init__(self, records: NodeStore) -> None:
        self._records = records
        self.written: dict[bytes, bytes] = {}

    def __getitem__(self, key: bytes) -> bytes:
        found = self.written.get(key) or self._records.record(key)
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self.written[key] = value

    def _exists(self, key: bytes) -> bool:
        return key in self.written or self._records.record(key) is not None

    def __delitem__(self, key: bytes) -> None:
        # Older states share what is stored already.
        self.written.pop(key, None)


class _State(PragueState):
    """py-evm's state, whose code is watched and whose environment changes."""

    computation_class = Computation
    tracer: Tracer | None = None
    blob_fee = NO_BLOB_FEE
    # Where precompiled contracts stand that were moved.
    precompiles: dict[Address, Any] | None = None

    @property
    def blob_base_fee(self) -> int:
        """Return the block context of an environment."""
        return self.blob_fee

    def increment_nonce(self, address: Address) -> None:
        # geth: the last one is followed by the first; py-evm raises.
        self.set_nonce(address, (self.get_nonce(address) + 1) % _NONCES)

    def delta_balance(self, address: Address, delta: int) -> None:
        # geth: core/state, AddBalance goes on from zero; py-evm raises.
        total = self.get_balance(address) + delta
        self.set_balance(address, total % _BALANCES if total > 0 else total)

    def is_address_warm(self, address: Address) -> bool:
        # The base class looks at those of the class alone.
        moved = self.precompiles
        return bool(super().is_address_warm(address)) or (
            moved is not None and address in moved
        )


class _Authorization:
    """EIP-7702's tuple as py-evm wants it."""

    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization
        self.chain_id, self.address, self.nonce = (
            authorization.chain_id,
            authorization.address,
            authorization.nonce,
        )
        self.y_parity, self.r, self.s = authorization.y_parity, authorization.r, authorization.s

    def validate(self, chain_id: int) -> None:
        """True if it is for this chain and its signature has a low s."""
        if self.chain_id not in (0, chain_id) or self.nonce >= (1 << 64) - 1:
            raise ValueError("of another chain")
        if self.y_parity > 1 or self.s > ORDER // 2:
            raise ValueError("not signed")


class _Signed:
    """A message as py-evm wants its transactions."""

    def __init__(self, message: Message, nonce: int, base_fee: int) -> None:
        self.sender, self.nonce = Address(message.sender), nonce
        self.to = _CREATES if message.to is None else Address(message.to)
        self.gas, self.value, self.data = message.gas, message.value, message.data
        self.gas_price = self.max_fee_per_gas = message.gas_price
        self.max_priority_fee_per_gas = message.gas_price - base_fee
        self.type_id = message.type
        self.access_list = [
            (Address(entry.address), [int.from_bytes(key) for key in entry.storage_keys])
            for entry in message.access_list
        ]
        self.authorization_list = [_Authorization(each) for each in message.authorizations]
        self.blob_versioned_hashes = message.blob_versioned_hashes
        self.intrinsic_gas = intrinsic_gas(
            message.data, message.to is None, message.access_list, message.authorizations
        )
        if message.to is None:
            # py-evm takes this part from what is left for the code.
            self.intrinsic_gas -= initcode_gas(message.data)


class _PyEvmWorld(World):
    """A state of py-evm; messages follow one another on it."""

    def __init__(self, records: NodeStore, root: bytes) -> None:
        self._records = records
        self._store = _Store(records)
        nowhere = Environment(chain_id=1, number=0, timestamp=0, gas_limit=0)
        self._state = _State(AtomicDB(self._store), self._context(nowhere), Hash32(root))

    def account(self, address: bytes) -> Account:
        state, at = self._state, Address(address)
        return Account(
            state.get_nonce(at), state.get_balance(at), code_hash=self._code_hash(at)
        )

    def _code_hash(self, address: Address) -> bytes:
        return bytes(self._state.get_code_hash(address))

    def code(self, address: bytes) -> bytes:
        return bytes(self._state.get_code(Address(address)))

    def storage(self, address: bytes, slot: int) -> int:
        return int(self._state.get_storage(Address(address), slot))

    def patch(self, overrides: Overrides) -> None:
        # geth: each block has the precompiled contracts anew.
        self._state.precompiles = None
        for address, override in overrides.items():
            self._displace(Address(address), override.precompile_to)
            self._patch(Address(address), override)
        # What was set is what the next message begins with, and not its own change.
        self._state.lock_changes()

    def _displace(self, address: Address, target: bytes | None) -> None:
        """geth: an account that is overridden is no precompiled contract any more."""
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
        nonce = message.nonce
        if nonce is None:
            nonce = state.get_nonce(Address(message.sender))
        else:
            state.set_nonce(Address(message.sender), nonce)
        if message.to is None and nonce == _NONCES - 1:
            # geth: core/vm, ErrNonceUintOverflow.
            return _began(message, "nonce uint64 overflow")
        signed: Any = _Signed(message, nonce, environment.base_fee)
        try:
            return self._run(signed, message)
        finally:
            state.clear_transient_storage()
            state.lock_changes()
            state.tracer = None

    def _run(self, signed: Any, message: Message) -> Outcome:
        executor = PragueTransactionExecutor(self._state)
        built = executor.build_evm_message(signed)
        created = built.storage_address if message.to is None else None
        before = self._state.snapshot()
        try:
            done = executor.build_computation(built, signed)
        except VMError as error:
            # The value was more than the sender has.
            self._state.revert(before)
            used = message.gas - built.gas
            return Outcome(gas_used=used, max_used_gas=used, error=error_text(error))
        done = executor.finalize_computation(signed, done)
        gas_used = message.gas - done.get_gas_remaining()
        used = gas_used - executor.calculate_gas_refund(done, gas_used)
        floor = floor_gas(message.data)
        return Outcome(
            gas_used=max(used, floor),
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
        root = self.root()
        written, self._store.written = self._store.written, {}
        return StateChange(root, written)

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
        """Yield the hashes of the blocks before one, nearest first, read on demand."""
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
