"""Transactions as py-evm runs them: beginning and end."""

from __future__ import annotations

from typing import Any

from eth._utils.address import generate_contract_address
from eth.vm.forks.prague.state import PragueTransactionExecutor
from eth.vm.message import Message as EvmMessage
from eth_typing import Address

from ...protocol.secp256k1eth import ORDER
from ..domain.execution import Message
from ..domain.records import BLOB, Authorization
from ..protocol.validity import initcode_gas, intrinsic_gas
from .pyevm_code import touched_accounts

_CREATES = Address(b"")


class _Authorization:
    """EIP-7702's authorization in py-evm's form."""

    def __init__(self, authorization: Authorization) -> None:
        self.chain_id, self.address, self.nonce = (
            authorization.chain_id,
            authorization.address,
            authorization.nonce,
        )
        self.y_parity, self.r, self.s = authorization.y_parity, authorization.r, authorization.s

    def validate(self, chain_id: int) -> None:
        """Raise an error unless it is for this chain and its signature has a low S."""
        if self.chain_id not in (0, chain_id) or self.nonce >= (1 << 64) - 1:
            raise ValueError("of another chain")
        if self.y_parity > 1 or self.s > ORDER // 2:
            raise ValueError("not signed")


class MessageTransaction:
    """A message in py-evm's form of a transaction."""

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
            # py-evm subtracts this part from the gas that is left for the code.
            self.intrinsic_gas -= initcode_gas(message.data)


class Executor(PragueTransactionExecutor):
    """py-evm's executor without its log lines, which take as long as a short call."""

    def build_evm_message(self, transaction: Any) -> Any:
        """Buy the gas, increment the nonce, and return the message."""
        state, sender = self.vm_state, transaction.sender
        fee = transaction.gas * transaction.gas_price
        if transaction.type_id == BLOB:
            fee += self.calc_data_fee(transaction)
        if fee:
            state.delta_balance(sender, -fee)
        state.increment_nonce(sender)
        refund = self.calc_message_refund(transaction)
        gas = transaction.gas - transaction.intrinsic_gas
        address: Any = None
        if transaction.to == _CREATES:
            address = generate_contract_address(sender, transaction.nonce)
            code, data, delegate = transaction.data, b"", None
        else:
            data = transaction.data
            code, delegate = self.get_code_at_address(transaction.to)
        return EvmMessage(
            gas=gas,
            to=transaction.to,
            sender=sender,
            value=transaction.value,
            data=data,
            code=code,
            create_address=address,
            refund=refund,
            is_delegation=delegate is not None,
        )

    def settle(self, transaction: MessageTransaction, computation: Any, gas_used: int) -> None:
        """Refund the gas that is left, pay the tip, and delete accounts."""
        state = self.vm_state
        left = (transaction.gas - gas_used) * transaction.gas_price
        if left:
            state.delta_balance(transaction.sender, left)
        tip = gas_used * transaction.max_priority_fee_per_gas
        if tip:
            state.delta_balance(state.coinbase, tip)
        for address in computation.get_accounts_for_deletion():
            state.delete_account(address)
        # EIP-161: the coinbase is touched even by a tip of 0.
        for address in touched_accounts(computation):
            if state.account_exists(address) and state.account_is_empty(address):
                state.delete_account(address)
