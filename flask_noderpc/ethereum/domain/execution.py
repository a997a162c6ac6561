"""Input and output of the EVM: accounts, block environments, messages and outcomes.

Addresses have 20 bytes, hashes and words 32; amounts are in wei.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .forks import HISTORY_ADDRESS, HISTORY_BLOCKS, OSAKA, Fork
from .records import (
    ACCESS_LIST,
    BLOB,
    DYNAMIC_FEE,
    EMPTY_ROOT,
    LEGACY,
    MIN_BLOB_FEE,
    SET_CODE,
    ZERO_ADDRESS,
    ZERO_HASH,
    AccessListEntry,
    Authorization,
    Transaction,
)

# Code hash and storage root of an account without code and storage: the Keccak-256 hash of no
# bytes, and the root of an empty trie.
NO_CODE = bytes.fromhex("c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")
NO_STORAGE = EMPTY_ROOT

CODE_SIZE_LIMIT = 24_576
"""EIP-170: maximum bytes of a contract's code, unless a chain has another limit."""

CONSOLE = bytes.fromhex("000000000000000000636f6e736f6c652e6c6f67")
"""Address of hardhat's console library, without code: a call to it prints a message."""
MAX_CONSOLE, MAX_CONSOLE_BYTES = 100, 2_048
"""Maximum number of console messages of a message, and bytes of each that are kept."""

# EIP-7702: the code of a delegating account is this prefix and the delegate's address.
DELEGATION = bytes.fromhex("ef0100")


@dataclass(frozen=True, slots=True)
class Account:
    """Account record in the state trie."""

    nonce: int = 0
    balance: int = 0
    storage_root: bytes = NO_STORAGE
    code_hash: bytes = NO_CODE


@dataclass(frozen=True, slots=True)
class AccountProof:
    """Merkle proof of an account and of storage slots (EIP-1186): the encoded trie nodes from
    the root down."""

    address: bytes
    account: Account
    proof: tuple[bytes, ...]
    slots: tuple[SlotProof, ...]


@dataclass(frozen=True, slots=True)
class SlotProof:
    """Merkle proof of one storage slot."""

    slot: bytes
    value: int
    proof: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Block environment of an execution."""

    chain_id: int
    number: int
    timestamp: int
    coinbase: bytes = ZERO_ADDRESS
    gas_limit: int
    base_fee: int = 0
    prev_randao: bytes = ZERO_HASH
    difficulty: int = 0
    parent_hash: bytes = ZERO_HASH
    blob_base_fee: int = MIN_BLOB_FEE
    fork: Fork = OSAKA
    caps_tx_gas: bool = False
    """True if the fork's maximum of a transaction's gas limit applies (EIP-7825)."""
    code_size_limit: int = CODE_SIZE_LIMIT
    """Maximum bytes of a contract's code; init code may have twice as many."""
    keeps_console: bool = False
    """True if :attr:`Outcome.console` has the messages that contracts print."""
    hashes: Mapping[int, bytes] = field(default_factory=dict)
    """Hashes, by number, of earlier blocks of a simulation, which are not in the store."""

    @property
    def randao_or_difficulty(self) -> int:
        """Value of instruction 0x44: ``prev_randao`` from Paris on (EIP-4399), ``difficulty``
        before."""
        return int.from_bytes(self.prev_randao) if self.fork.has_randao else self.difficulty


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Message to execute: a transaction, or an unsigned call."""

    sender: bytes = ZERO_ADDRESS
    to: bytes | None = None
    """``None`` creates a contract."""
    nonce: int | None = None
    """``None`` uses the sender's next nonce."""
    gas: int
    gas_price: int = 0
    """Effective price in wei; 0 charges nothing."""
    value: int = 0
    data: bytes = b""
    type: int = LEGACY
    access_list: tuple[AccessListEntry, ...] = ()
    authorizations: tuple[Authorization, ...] = ()
    blob_versioned_hashes: tuple[bytes, ...] = ()


def environment_for_call(
    message: Message, max_fee_per_blob_gas: int | None, environment: Environment
) -> Environment:
    """Return the block environment of a call: the base fee is 0 if the call has no gas price,
    and the blob base fee is 0 if it has blobs but no fee for them.

    geth: core/vm/evm.go, NewEVM.
    """
    if message.gas_price == 0:
        environment = replace(environment, base_fee=0)
    if message.blob_versioned_hashes and not max_fee_per_blob_gas:
        environment = replace(environment, blob_base_fee=0)
    return environment


def message_of(tx: Transaction, base_fee: int) -> Message:
    """Return the message of a transaction in a block with this base fee."""
    return Message(
        sender=tx.sender,
        to=tx.to,
        nonce=tx.nonce,
        gas=tx.gas,
        gas_price=tx.gas_price_at(base_fee),
        value=tx.value,
        data=tx.data,
        type=tx.type,
        access_list=tx.access_list,
        authorizations=tx.authorizations,
        blob_versioned_hashes=tx.blob_versioned_hashes,
    )


Slots = Mapping[bytes, bytes]
"""Storage values by slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountOverride:
    """State override of an account; ``None`` leaves a field unchanged."""

    nonce: int | None = None
    balance: int | None = None
    code: bytes | None = None
    state: Slots | None = None
    """New storage of the account, which replaces all slots."""
    state_diff: Slots | None = None
    """New values of single slots; other slots are unchanged."""
    precompile_to: bytes | None = None
    """New address of the precompiled contract at this address."""


Overrides = Mapping[bytes, AccountOverride]
"""State overrides by address."""


def history_slot(number: int) -> int:
    """Return the slot where a block stores its parent's hash in the history contract
    (EIP-2935)."""
    return (number - 1) % HISTORY_BLOCKS


def history_override(environment: Environment) -> Overrides:
    """Return the change of the history contract at the beginning of a block."""
    slot = history_slot(environment.number).to_bytes(32)
    return {HISTORY_ADDRESS: AccountOverride(state_diff={slot: environment.parent_hash})}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallArgs:
    """Arguments of a call as the client sent them; ``None`` if omitted."""

    sender: bytes | None = None
    to: bytes | None = None
    gas: int | None = None
    gas_price: int | None = None
    max_fee_per_gas: int | None = None
    max_priority_fee_per_gas: int | None = None
    value: int | None = None
    nonce: int | None = None
    data: bytes | None = None
    access_list: tuple[AccessListEntry, ...] | None = None
    chain_id: int | None = None
    max_fee_per_blob_gas: int | None = None
    blob_versioned_hashes: tuple[bytes, ...] | None = None
    authorizations: tuple[Authorization, ...] | None = None

    @property
    def type(self) -> int:
        """Lowest transaction type with all fields that are set; at least type 2 if no gas
        price is set."""
        if self.authorizations is not None:
            return SET_CODE
        if self.blob_versioned_hashes is not None:
            return BLOB
        if self.gas_price is None:
            return DYNAMIC_FEE
        return LEGACY if self.access_list is None else ACCESS_LIST

    def price_at(self, base_fee: int) -> int:
        """Return the price per gas at a base fee, in wei; without gas price and fee cap it is
        the tip, which is 0 by default."""
        if self.gas_price is not None:
            return self.gas_price
        fee_cap, tip = self.max_fee_per_gas, self.max_priority_fee_per_gas or 0
        return min(tip + base_fee, tip if fee_cap is None else fee_cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChanges:
    """Overrides of a block environment; ``None`` leaves a field unchanged."""

    number: int | None = None
    timestamp: int | None = None
    gas_limit: int | None = None
    coinbase: bytes | None = None
    prev_randao: bytes | None = None
    base_fee: int | None = None
    blob_base_fee: int | None = None

    def apply_to(self, environment: Environment) -> Environment:
        """Return the environment with these overrides."""
        if self == UNCHANGED:
            return environment
        names = BlockChanges.__dataclass_fields__
        values = {name: getattr(self, name) for name in names}
        return replace(environment, **{k: v for k, v in values.items() if v is not None})


UNCHANGED = BlockChanges()


@dataclass(frozen=True, slots=True)
class EmittedLog:
    """Log that a contract emitted, before its block assigns an index."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Operation:
    """Transfer of ether, creation or self-destruction of a contract inside a transaction."""

    kind: str
    """``CALL``, ``CREATE``, ``CREATE2`` or ``SELFDESTRUCT``."""
    sender: bytes
    to: bytes
    """Recipient of the ether, or the new contract."""
    value: int


@dataclass(frozen=True, slots=True)
class InternalCalls:
    """Accounts in the call frames of a transaction, besides its sender and its recipient."""

    accounts: tuple[bytes, ...] = ()
    """Callers, callees and beneficiaries of self-destructions, also of frames that failed."""
    created: tuple[bytes, ...] = ()
    """New contracts, including the one that the transaction itself creates."""
    operations: tuple[Operation, ...] = ()
    """Operations below the outermost frame, without those of frames that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of executing a message."""

    gas_used: int
    max_used_gas: int
    """Gas used before refunds, which the gas limit must cover."""
    output: bytes = b""
    """Return data, or revert data."""
    error: str = ""
    """geth's error text; empty on success."""
    logs: tuple[EmittedLog, ...] = ()
    created: bytes | None = None
    """Address of the new contract; ``None`` if the message is a call."""
    calls: InternalCalls = InternalCalls()
    """Internal calls, if they are recorded."""
    console: tuple[bytes, ...] = ()
    """Data of the calls to :data:`CONSOLE`, also of calls that failed later: at most
    :data:`MAX_CONSOLE` parts of at most :data:`MAX_CONSOLE_BYTES`."""

    @property
    def reverted(self) -> bool:
        """True if the contract reverted."""
        return self.error == REVERTED


REVERTED = "execution reverted"
OUT_OF_GAS = "out of gas"
CODE_OUT_OF_GAS = "contract creation code storage out of gas"


@dataclass(frozen=True, slots=True)
class StateChange:
    """Change of a state: the new root, and the records that the new state adds."""

    root: bytes
    written: Mapping[bytes, bytes] = field(default_factory=dict)
    """Trie nodes and codes by hash; also addresses and slots by hash, if the engine keeps
    them."""
