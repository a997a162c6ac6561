"""Ethereum's executable specification (EELS) as an engine: slow, and right by definition.

It keeps every state in memory, by its root.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any
from unittest.mock import patch

from ethereum_rlp import rlp
from ethereum_types.bytes import Bytes0, Bytes32
from ethereum_types.numeric import U8, U64, U256, Uint

from flask_noderpc.ethereum.domain.execution import (
    NO_STORAGE,
    REVERTED,
    Account,
    EmittedLog,
    Environment,
    Message,
    Outcome,
    Overrides,
    StateChange,
)
from flask_noderpc.ethereum.domain.forks import Fork
from flask_noderpc.ethereum.engine.base import EvmEngine, World
from flask_noderpc.ethereum.engine.frames import Tracer
from flask_noderpc.ethereum.protocol.validity import floor_gas
from flask_noderpc.protocol.secp256k1eth import keccak

BlockHash = Callable[[int], bytes | None]


class Spec:
    """The specification's modules of a fork."""

    def __init__(self, name: str) -> None:
        def module(path: str) -> Any:
            return import_module(f"ethereum.forks.{name}.{path}")

        self.fork, self.vm, self.state = module("fork"), module("vm"), module("state")
        self.types, self.transactions = module("fork_types"), module("transactions")
        self.address, self.exceptions = module("utils.address"), module("vm.exceptions")


class Eels(EvmEngine):
    """An engine that runs messages by the specification of a fork."""

    def __init__(self, fork: Fork, block_hash: BlockHash) -> None:
        self._spec, self._block_hash = Spec(fork.name), block_hash
        self._states: dict[bytes, Any] = {NO_STORAGE: self._spec.state.State()}

    def world(self, root: bytes) -> EelsWorld:
        state = _copied(self._spec.state, self._states[root])
        return EelsWorld(self._spec, state, self._block_hash, self._states)


def _copied(states: Any, state: Any) -> Any:
    tries = {address: states.copy_trie(trie) for address, trie in state._storage_tries.items()}
    return states.State(states.copy_trie(state._main_trie), tries)


class EelsWorld(World):
    """A state of EELS, on which messages run one after another."""

    def __init__(
        self, spec: Spec, state: Any, block_hash: BlockHash, kept: dict[bytes, Any]
    ) -> None:
        self._spec, self.state, self._block_hash, self._kept = spec, state, block_hash, kept

    def account(self, address: bytes) -> Account:
        found = self._spec.state.get_account(self.state, self._at(address))
        root = bytes(self._spec.state.storage_root(self.state, self._at(address)))
        return Account(int(found.nonce), int(found.balance), root, keccak(bytes(found.code)))

    def exists(self, address: bytes) -> bool:
        return bool(self._spec.state.account_exists(self.state, self._at(address)))

    def code(self, address: bytes) -> bytes:
        return bytes(self._spec.state.get_account(self.state, self._at(address)).code)

    def storage(self, address: bytes, slot: int) -> int:
        return int(
            self._spec.state.get_storage(
                self.state, self._at(address), Bytes32(slot.to_bytes(32))
            )
        )

    def patch(self, overrides: Overrides) -> None:
        for address, expected in overrides.items():
            own, at = (
                self._spec.state.get_account(self.state, self._at(address)),
                self._at(address),
            )
            made = self._spec.types.Account(
                own.nonce if expected.nonce is None else Uint(expected.nonce),
                own.balance if expected.balance is None else U256(expected.balance),
                own.code if expected.code is None else expected.code,
            )
            self._spec.state.set_account(self.state, at, made)
            if expected.state is not None:
                self._spec.state.destroy_storage(self.state, at)
            for slot, word in (expected.state or expected.state_diff or {}).items():
                number = U256(int.from_bytes(word))
                self._spec.state.set_storage(self.state, at, Bytes32(slot), number)

    def run(
        self, environment: Environment, message: Message, tracer: Tracer | None = None
    ) -> Outcome:
        block = self.block(environment)
        results: list[Any] = []

        def watched(eels_message: Any) -> Any:
            results.append(call(eels_message))
            return results[-1]

        fork = self._spec.fork
        output, call = self._spec.vm.BlockOutput(), fork.process_message_call
        sender, tx = self._at(message.sender), self._transaction(message, environment)
        with (
            # A message has no signature, and EELS does not return the output of a transaction.
            patch.object(fork, "recover_sender", lambda chain_id, tx: sender),
            patch.object(fork, "process_message_call", watched),
        ):
            fork.process_transaction(block, output, tx, Uint(0))
        (done,) = results
        created = None
        if message.to is None:
            created = bytes(self._spec.address.compute_contract_address(sender, tx.nonce))
        return Outcome(
            gas_used=int(output.block_gas_used),
            max_used_gas=max(
                message.gas - int(done.gas_left), floor_gas(environment.fork, message.data)
            ),
            # The specification returns it from Prague on.
            output=bytes(getattr(done, "return_data", b"")),
            error=self._error(done.error),
            logs=tuple(_log(log) for log in done.logs),
            created=created,
        )

    def run_signed(self, environment: Environment, raw: bytes) -> None:
        """Run a transaction as it was sent; raise EELS's error."""
        tx = (
            raw
            if raw[:1] < b"\x80"
            else rlp.decode_to(self._spec.transactions.LegacyTransaction, raw)
        )
        block, output = self.block(environment), self._spec.vm.BlockOutput()
        decoded = self._spec.transactions.decode_transaction(tx)
        self._spec.fork.process_transaction(block, output, decoded, Uint(0))

    def _transaction(self, message: Message, environment: Environment) -> Any:
        nonce = self.account(message.sender).nonce if message.nonce is None else message.nonce
        tip, transactions = message.gas_price - environment.base_fee, self._spec.transactions
        fields: dict[str, Any] = {
            "chain_id": U64(environment.chain_id),
            "nonce": U256(nonce),
            "max_priority_fee_per_gas": Uint(tip),
            "max_fee_per_gas": Uint(message.gas_price),
            "gas": Uint(message.gas),
            "to": Bytes0(b"") if message.to is None else self._at(message.to),
            "value": U256(message.value),
            "data": message.data,
            "access_list": tuple(
                transactions.Access(
                    self._at(entry.address), tuple(map(Bytes32, entry.storage_keys))
                )
                for entry in message.access_list
            ),
            **dict.fromkeys(("y_parity", "r", "s"), U256(0)),
        }
        if not message.authorizations:
            return transactions.FeeMarketTransaction(**fields)
        authorizations = tuple(
            self._spec.types.Authorization(
                U256(own.chain_id),
                self._at(own.address),
                U64(own.nonce),
                U8(own.y_parity),
                U256(own.r),
                U256(own.s),
            )
            for own in message.authorizations
        )
        # EELS uses another integer type here.
        fields["nonce"] = U64(nonce)
        return transactions.SetCodeTransaction(**fields, authorizations=authorizations)

    def block(self, environment: Environment) -> Any:
        """Return the environment in EELS's form."""
        heights = range(max(0, environment.number - 256), environment.number)
        found = (self._block_hash(height) for height in heights)
        values = {
            "chain_id": U64(environment.chain_id),
            "state": self.state,
            "block_gas_limit": Uint(environment.gas_limit),
            "block_hashes": [Bytes32(each) for each in found if each is not None],
            "coinbase": self._at(environment.coinbase),
            "number": Uint(environment.number),
            "base_fee_per_gas": Uint(environment.base_fee),
            "time": U256(environment.timestamp),
            "difficulty": Uint(environment.difficulty),
            "prev_randao": Bytes32(environment.prev_randao),
            "excess_blob_gas": U64(0),
            "parent_beacon_block_root": Bytes32(bytes(32)),
        }
        names = self._spec.vm.BlockEnvironment.__dataclass_fields__
        return self._spec.vm.BlockEnvironment(**{name: values[name] for name in names})

    def _at(self, address: bytes) -> Any:
        return self._spec.types.Address(address)

    def _error(self, error: Exception | None) -> str:
        if error is None:
            return ""
        reverted = isinstance(error, self._spec.exceptions.Revert)
        return REVERTED if reverted else type(error).__name__

    def root(self) -> bytes:
        return bytes(self._spec.state.state_root(self.state))

    def commit(self) -> StateChange:
        root = self.root()
        self._kept[root] = _copied(self._spec.state, self.state)
        return StateChange(root)


def _log(log: Any) -> EmittedLog:
    return EmittedLog(bytes(log.address), tuple(map(bytes, log.topics)), bytes(log.data))
