"""Ethereum's executable specification (EELS) as an engine: slow, and right by definition.

It keeps every state in memory, by its root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from ethereum.forks.prague import fork, vm
from ethereum.forks.prague import state as states
from ethereum.forks.prague.fork_types import Account as EelsAccount
from ethereum.forks.prague.fork_types import Address
from ethereum.forks.prague.fork_types import Authorization as EelsAuthorization
from ethereum.forks.prague.transactions import (
    Access,
    FeeMarketTransaction,
    LegacyTransaction,
    SetCodeTransaction,
    decode_transaction,
)
from ethereum.forks.prague.utils.address import compute_contract_address
from ethereum.forks.prague.vm.exceptions import Revert
from ethereum.forks.prague.vm.interpreter import MessageCallOutput
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
from flask_noderpc.ethereum.engine.base import EvmEngine, Tracer, World
from flask_noderpc.ethereum.protocol.validity import floor_gas
from flask_noderpc.protocol.secp256k1eth import keccak

BlockHash = Callable[[int], bytes | None]


class Eels(EvmEngine):
    """An engine that runs messages by the specification of Prague."""

    def __init__(self, block_hash: BlockHash) -> None:
        self._block_hash = block_hash
        self._states: dict[bytes, Any] = {NO_STORAGE: states.State()}

    def world(self, root: bytes) -> EelsWorld:
        return EelsWorld(_copied(self._states[root]), self._block_hash, self._states)


def _copied(state: Any) -> Any:
    tries = {address: states.copy_trie(trie) for address, trie in state._storage_tries.items()}
    return states.State(states.copy_trie(state._main_trie), tries)


class EelsWorld(World):
    """A state of EELS, on which messages run one after another."""

    def __init__(self, state: Any, block_hash: BlockHash, kept: dict[bytes, Any]) -> None:
        self.state, self._block_hash, self._kept = state, block_hash, kept

    def account(self, address: bytes) -> Account:
        found = states.get_account(self.state, Address(address))
        root = bytes(states.storage_root(self.state, Address(address)))
        return Account(int(found.nonce), int(found.balance), root, keccak(bytes(found.code)))

    def code(self, address: bytes) -> bytes:
        return bytes(states.get_account(self.state, Address(address)).code)

    def storage(self, address: bytes, slot: int) -> int:
        return int(states.get_storage(self.state, Address(address), Bytes32(slot.to_bytes(32))))

    def patch(self, overrides: Overrides) -> None:
        for address, expected in overrides.items():
            own, at = states.get_account(self.state, Address(address)), Address(address)
            made = EelsAccount(
                own.nonce if expected.nonce is None else Uint(expected.nonce),
                own.balance if expected.balance is None else U256(expected.balance),
                own.code if expected.code is None else expected.code,
            )
            states.set_account(self.state, at, made)
            if expected.state is not None:
                states.destroy_storage(self.state, at)
            for slot, word in (expected.state or expected.state_diff or {}).items():
                number = U256(int.from_bytes(word))
                states.set_storage(self.state, at, Bytes32(slot), number)

    def run(
        self, environment: Environment, message: Message, tracer: Tracer | None = None
    ) -> Outcome:
        block = self.block(environment)
        results: list[MessageCallOutput] = []

        def watched(eels_message: Any) -> MessageCallOutput:
            results.append(call(eels_message))
            return results[-1]

        output, call = vm.BlockOutput(), fork.process_message_call
        sender, tx = Address(message.sender), self._transaction(message, environment)
        with (
            # A message has no signature, and EELS does not return the output of a transaction.
            patch.object(fork, "recover_sender", lambda chain_id, tx: sender),
            patch.object(fork, "process_message_call", watched),
        ):
            fork.process_transaction(block, output, tx, Uint(0))
        (done,) = results
        created = None
        if message.to is None:
            created = bytes(compute_contract_address(sender, tx.nonce))
        return Outcome(
            gas_used=int(output.block_gas_used),
            max_used_gas=max(message.gas - int(done.gas_left), floor_gas(message.data)),
            output=bytes(done.return_data),
            error=_error(done.error),
            logs=tuple(_log(log) for log in done.logs),
            created=created,
        )

    def run_signed(self, environment: Environment, raw: bytes) -> None:
        """Run a transaction as it was sent; raise EELS's error."""
        tx = raw if raw[:1] < b"\x80" else rlp.decode_to(LegacyTransaction, raw)
        block, output = self.block(environment), vm.BlockOutput()
        fork.process_transaction(block, output, decode_transaction(tx), Uint(0))

    def _transaction(self, message: Message, environment: Environment) -> Any:
        nonce = self.account(message.sender).nonce if message.nonce is None else message.nonce
        tip = message.gas_price - environment.base_fee
        fields: dict[str, Any] = {
            "chain_id": U64(environment.chain_id),
            "nonce": U256(nonce),
            "max_priority_fee_per_gas": Uint(tip),
            "max_fee_per_gas": Uint(message.gas_price),
            "gas": Uint(message.gas),
            "to": Bytes0(b"") if message.to is None else Address(message.to),
            "value": U256(message.value),
            "data": message.data,
            "access_list": tuple(
                Access(Address(entry.address), tuple(map(Bytes32, entry.storage_keys)))
                for entry in message.access_list
            ),
            **dict.fromkeys(("y_parity", "r", "s"), U256(0)),
        }
        if not message.authorizations:
            return FeeMarketTransaction(**fields)
        authorizations = tuple(
            EelsAuthorization(
                U256(own.chain_id),
                Address(own.address),
                U64(own.nonce),
                U8(own.y_parity),
                U256(own.r),
                U256(own.s),
            )
            for own in message.authorizations
        )
        # EELS uses another integer type here.
        fields["nonce"] = U64(nonce)
        return SetCodeTransaction(**fields, authorizations=authorizations)

    def block(self, environment: Environment) -> Any:
        """Return the environment in EELS's form."""
        heights = range(max(0, environment.number - 256), environment.number)
        found = (self._block_hash(height) for height in heights)
        return vm.BlockEnvironment(
            chain_id=U64(environment.chain_id),
            state=self.state,
            block_gas_limit=Uint(environment.gas_limit),
            block_hashes=[Bytes32(each) for each in found if each is not None],
            coinbase=Address(environment.coinbase),
            number=Uint(environment.number),
            base_fee_per_gas=Uint(environment.base_fee),
            time=U256(environment.timestamp),
            prev_randao=Bytes32(environment.prev_randao),
            excess_blob_gas=U64(0),
            parent_beacon_block_root=Bytes32(bytes(32)),
        )

    def root(self) -> bytes:
        return bytes(states.state_root(self.state))

    def commit(self) -> StateChange:
        root = self.root()
        self._kept[root] = _copied(self.state)
        return StateChange(root)


def _error(error: Exception | None) -> str:
    if error is None:
        return ""
    return REVERTED if isinstance(error, Revert) else type(error).__name__


def _log(log: Any) -> EmittedLog:
    return EmittedLog(bytes(log.address), tuple(map(bytes, log.topics)), bytes(log.data))
