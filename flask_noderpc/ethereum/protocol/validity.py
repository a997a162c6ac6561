"""Rules for transactions with geth's error texts: admission, intrinsic gas, base fee.

geth: core/txpool/validation.go and core/state_transition.go.
"""

from __future__ import annotations

from ...errors import InvalidTransaction
from ..domain.execution import CODE_SIZE_LIMIT, DELEGATION, Account, Environment, Message
from ..domain.forks import Fork
from ..domain.records import (
    BLOB,
    GAS_PER_BLOB,
    SET_CODE,
    AccessListEntry,
    Authorization,
    Transaction,
)

# Gas of a transaction, of creating a contract, of a zero byte and of another byte (Yellow
# Paper, EIP-2028), and of an address and a storage key in an access list (EIP-2930).
_TX, _CREATE, _ZERO, _BYTE = 21_000, 32_000, 4, 16
_ADDRESS, _KEY = 2_400, 1_900
# EIP-7702: gas of an authorization.
_AUTHORIZATION = 25_000

_MAX_NONCE = (1 << 64) - 1

MAX_INITCODE = 2 * CODE_SIZE_LIMIT
"""EIP-3860: maximum bytes of the code that creates a contract."""

# EIP-1559: a block's gas limit is twice its gas target, and the base fee changes by at most
# one eighth per block.
ELASTICITY = 2
CHANGE_DENOMINATOR = 8
INITIAL_BASE_FEE = 10**9
"""Base fee of the first block, in wei per unit of gas."""


def intrinsic_gas(
    fork: Fork,
    data: bytes,
    creates: bool,
    access_list: tuple[AccessListEntry, ...] = (),
    authorizations: tuple[Authorization, ...] = (),
) -> int:
    """Return the gas that a transaction pays before execution."""
    zeros = data.count(0)
    gas = _TX + _ZERO * zeros + _BYTE * (len(data) - zeros)
    if creates:
        gas += _CREATE + fork.initcode_word_gas * ((len(data) + 31) // 32)
    gas += sum(_ADDRESS + _KEY * len(entry.storage_keys) for entry in access_list)
    return gas + _AUTHORIZATION * len(authorizations)


def floor_gas(fork: Fork, data: bytes) -> int:
    """Return the minimum gas that a transaction with this calldata pays (EIP-7623)."""
    zeros = data.count(0)
    return _TX + fork.floor_token_gas * (zeros + 4 * (len(data) - zeros))


def next_base_fee(fee: int, gas_used: int, gas_limit: int) -> int:
    """Return the base fee of the next block by EIP-1559; 0 on a chain without base fees."""
    target = gas_limit // ELASTICITY
    if not fee or not target:
        return fee
    change = fee * abs(gas_used - target) // target // CHANGE_DENOMINATOR
    if gas_used > target:
        return fee + max(1, change)
    return fee - change if gas_used < target else fee


def fee_of_empty_block_before(fee: int) -> int:
    """Return the base fee of an empty block whose successor has the base fee ``fee``."""
    whole, rest = divmod(fee, CHANGE_DENOMINATOR - 1)
    return CHANGE_DENOMINATOR * whole + rest


MAX_BYTES = 128 * 1024
"""Maximum bytes of a transaction."""


def check_protected(tx: Transaction) -> None:
    """Refuse a transaction without chain ID, which is valid on every chain; raise
    ``InvalidTransaction``.

    geth: internal/ethapi, SubmitTransaction.
    """
    if tx.chain_id is None:
        raise InvalidTransaction(
            "only replay-protected (EIP-155) transactions allowed over RPC"
        )


def check_form(tx: Transaction, environment: Environment) -> None:
    """Refuse a transaction that is invalid in any state; raise ``InvalidTransaction``."""
    fork, chain_id = environment.fork, environment.chain_id
    if tx.type > fork.max_tx_type:
        raise InvalidTransaction(
            f"transaction type not supported: type {tx.type} rejected, as this block has the"
            f" rules of {fork.name}"
        )
    if tx.chain_id is not None and tx.chain_id != chain_id:
        raise InvalidTransaction(
            f"invalid chain id for signer: have {tx.chain_id} want {chain_id}"
        )
    # On a chain with a larger code limit, a transaction may be larger, to deploy such code.
    max_bytes = MAX_BYTES + 2 * max(0, environment.code_size_limit - CODE_SIZE_LIMIT)
    if len(tx.raw) > max_bytes:
        raise InvalidTransaction(
            f"oversized data: transaction size {len(tx.raw)}, limit {max_bytes}"
        )
    _check_initcode(tx.to, tx.data, environment)
    if environment.caps_tx_gas and fork.max_tx_gas is not None and tx.gas > fork.max_tx_gas:
        raise InvalidTransaction(
            f"transaction gas limit too high (cap: {fork.max_tx_gas}, tx: {tx.gas})"
        )
    if tx.gas > environment.gas_limit:
        raise InvalidTransaction("exceeds block gas limit")
    max_fee, tip = tx.max_fee_per_gas, tx.max_priority_fee_per_gas
    if max_fee is not None and tip is not None and tip > max_fee:
        raise InvalidTransaction(
            "max priority fee per gas higher than max fee per gas:"
            f" maxPriorityFeePerGas: {tip}, maxFeePerGas: {max_fee}"
        )
    check_last_nonce(tx)
    intrinsic = intrinsic_gas(fork, tx.data, tx.to is None, tx.access_list, tx.authorizations)
    _check_gas(tx.gas, intrinsic, fork, tx.data)
    _check_lists(tx, environment)


def _check_lists(tx: Transaction, environment: Environment) -> None:
    if tx.type == SET_CODE and not tx.authorizations:
        raise InvalidTransaction("set code tx must have at least one authorization tuple")
    check_blobs(tx, environment.fork, environment.blob_base_fee)
    for index, each in enumerate(tx.blob_versioned_hashes):
        if each[:1] != b"\x01":
            raise InvalidTransaction(f"blob {index} has invalid hash version")


def check_blobs(tx: Transaction, fork: Fork, blob_base_fee: int) -> None:
    """Refuse a blob transaction that has no blobs or too many, or a fee cap below the blob base
    fee."""
    if tx.type != BLOB:
        return
    count, fee_cap = len(tx.blob_versioned_hashes), tx.max_fee_per_blob_gas or 0
    if not count:
        raise InvalidTransaction("blobless blob transaction")
    if count > fork.max_tx_blobs:
        raise InvalidTransaction(
            f"too many blobs in transaction: have {count}, permitted {fork.max_tx_blobs}"
        )
    if fee_cap < blob_base_fee:
        raise InvalidTransaction(
            "max fee per blob gas less than block blob gas fee: address"
            f" 0x{tx.sender.hex()} blobGasFeeCap: {fee_cap}, blobBaseFee: {blob_base_fee}"
        )


def _check_initcode(to: bytes | None, data: bytes, environment: Environment) -> None:
    limit = 2 * environment.code_size_limit
    if environment.fork.initcode_word_gas and to is None and len(data) > limit:
        raise InvalidTransaction(
            f"max initcode size exceeded: code size {len(data)}, limit {limit}"
        )


def _check_gas(gas: int, intrinsic: int, fork: Fork, data: bytes) -> None:
    if gas < intrinsic:
        raise InvalidTransaction(f"intrinsic gas too low: have {gas}, want {intrinsic}")
    floor = floor_gas(fork, data)
    if gas < floor:
        raise InvalidTransaction(
            f"insufficient gas for floor data gas cost: have {gas}, want {floor}"
        )


def check_nonce(tx: Transaction, account: Account) -> None:
    """Refuse a transaction whose nonce is already used; raise ``InvalidTransaction``."""
    if tx.nonce < account.nonce:
        raise InvalidTransaction(
            f"nonce too low: next nonce {account.nonce}, tx nonce {tx.nonce}"
        )


def check_turn(tx: Transaction, account: Account) -> None:
    """Refuse a transaction whose nonce is not the sender's next one."""
    check_nonce(tx, account)
    if tx.nonce > account.nonce:
        raise InvalidTransaction(
            f"nonce too high: next nonce {account.nonce}, tx nonce {tx.nonce}"
        )


def check_last_nonce(tx: Transaction) -> None:
    """Refuse a transaction with the highest nonce, which has no successor (EIP-2681)."""
    if tx.nonce >= _MAX_NONCE:
        raise InvalidTransaction(
            f"nonce has max value: address 0x{tx.sender.hex()}, nonce: {tx.nonce}"
        )


def check_sender(tx: Transaction, code: bytes) -> None:
    """Refuse a sender whose account has code (EIP-3607) other than a delegation (EIP-7702)."""
    if code and not code.startswith(DELEGATION):
        raise InvalidTransaction(f"sender not an eoa: address 0x{tx.sender.hex()}")


def max_cost(tx: Transaction) -> int:
    """Return the maximum wei that a transaction may cost its sender."""
    blobs = (tx.blob_gas or 0) * (tx.max_fee_per_blob_gas or 0)
    return tx.gas * tx.fee_cap + tx.value + blobs


def check_funds(tx: Transaction, account: Account) -> None:
    """Refuse a transaction if its sender's balance is below the maximum cost."""
    cost = max_cost(tx)
    if account.balance < cost:
        raise InvalidTransaction(
            f"insufficient funds for gas * price + value: balance {account.balance},"
            f" tx cost {cost}, overshot {cost - account.balance}"
        )


def check_tip(tx: Transaction, base_fee: int) -> None:
    """Refuse a transaction that pays neither a tip nor the next block's base fee.

    It would be pending until the base fee falls, and even then validators would earn nothing
    from it. geth's pool refuses every transaction without a tip; anvil's accepts one that pays
    the base fee.
    """
    if not tx.tip_cap:
        check_fee(tx, base_fee)


def check_fee(tx: Transaction, base_fee: int) -> None:
    """Refuse a transaction that would pay less than the base fee."""
    if tx.fee_cap < base_fee:
        raise InvalidTransaction(
            f"max fee per gas less than block base fee: address 0x{tx.sender.hex()},"
            f" maxFeePerGas: {tx.fee_cap}, baseFee: {base_fee}"
        )


def check_message_form(message: Message, environment: Environment) -> None:
    """Refuse a call whose init code is too long or whose gas limit is too low."""
    fork, data = environment.fork, message.data
    _check_initcode(message.to, data, environment)
    lists = message.access_list, message.authorizations
    intrinsic = intrinsic_gas(fork, data, message.to is None, *lists)
    _check_gas(message.gas, intrinsic, fork, data)


def check_message_funds(message: Message, balance: int, blob_base_fee: int) -> None:
    """Refuse a call whose gas, value and blobs cost more than its sender's balance."""
    blob_gas = GAS_PER_BLOB * len(message.blob_versioned_hashes)
    cost = message.gas * message.gas_price + message.value + blob_gas * blob_base_fee
    if balance < cost:
        raise InvalidTransaction(
            f"insufficient funds for gas * price + value: address 0x{message.sender.hex()}"
            f" have {balance} want {cost}"
        )
