"""What the EVM runs on and what it gives: accounts, a block's environment, messages, outcomes.

Addresses have 20 bytes, hashes and words 32; amounts are in wei.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .ethereum import (
    ACCESS_LIST,
    BLOB,
    DYNAMIC_FEE,
    LEGACY,
    NO_BLOB_FEE,
    SET_CODE,
    ZERO_ADDRESS,
    ZERO_HASH,
    AccessListEntry,
    Authorization,
    Transaction,
)

# keccak of nothing, and of the RLP of nothing: an account without code, and without storage.
NO_CODE = bytes.fromhex("c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")
NO_STORAGE = bytes.fromhex("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421")

# EIP-7702: what stands where an account's code would, in front of the address it borrows from.
DELEGATION = bytes.fromhex("ef0100")


# The contracts that every chain has; EIP-2537 has the last.
PRECOMPILES = frozenset(number.to_bytes(20) for number in range(1, 0x12))


@dataclass(frozen=True, slots=True)
class Account:
    """What the state knows of an address."""

    nonce: int = 0
    balance: int = 0
    storage_root: bytes = NO_STORAGE
    code_hash: bytes = NO_CODE


@dataclass(frozen=True, slots=True)
class AccountProof:
    """An account, slots of its storage, and the nodes from the root down to each.

    EIP-1186.
    """

    address: bytes
    account: Account
    proof: tuple[bytes, ...]
    slots: tuple[SlotProof, ...]


@dataclass(frozen=True, slots=True)
class SlotProof:
    """A slot of storage with its value, and the nodes down to it."""

    slot: bytes
    value: int
    proof: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The block that code finds itself in."""

    chain_id: int
    number: int
    timestamp: int
    coinbase: bytes = ZERO_ADDRESS
    gas_limit: int
    base_fee: int = 0
    prev_randao: bytes = ZERO_HASH
    blob_base_fee: int = NO_BLOB_FEE
    hashes: Mapping[int, bytes] = field(default_factory=dict)
    """Of blocks before it that are nowhere else, by their numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is to be run: a transaction, or a call that nobody signed."""

    sender: bytes = ZERO_ADDRESS
    to: bytes | None = None
    """``None`` creates a contract."""
    nonce: int | None = None
    """``None`` is the sender's next."""
    gas: int
    gas_price: int = 0
    """What a unit costs in the end; nothing is paid where it is 0."""
    value: int = 0
    data: bytes = b""
    type: int = LEGACY
    access_list: tuple[AccessListEntry, ...] = ()
    authorizations: tuple[Authorization, ...] = ()
    blob_versioned_hashes: tuple[bytes, ...] = ()


def message_of(tx: Transaction, base_fee: int) -> Message:
    """A transaction as it runs in a block of some base fee."""
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
"""Storage: words by the words they stand at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountOverride:
    """What of an account is to be other than it is; ``None`` is as it is."""

    nonce: int | None = None
    balance: int | None = None
    code: bytes | None = None
    state: Slots | None = None
    """All of its storage."""
    state_diff: Slots | None = None
    """Some of its storage."""
    precompile_to: bytes | None = None
    """Where the precompiled contract goes that is at this address."""


Overrides = Mapping[bytes, AccountOverride]
"""By address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallArgs:
    """A call as a client says it; ``None`` is what was not said."""

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
        """The least that can say all of it; without fees it is of type 2."""
        if self.authorizations is not None:
            return SET_CODE
        if self.blob_versioned_hashes is not None:
            return BLOB
        if self.gas_price is None:
            return DYNAMIC_FEE
        return LEGACY if self.access_list is None else ACCESS_LIST

    def price_at(self, base_fee: int) -> int:
        """What a unit of gas costs it; nothing where no fee was said."""
        if self.gas_price is not None:
            return self.gas_price
        most, tip = self.max_fee_per_gas, self.max_priority_fee_per_gas or 0
        return min(tip + base_fee, tip if most is None else most)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChanges:
    """What of a block is to be otherwise; ``None`` is as it is."""

    number: int | None = None
    timestamp: int | None = None
    gas_limit: int | None = None
    coinbase: bytes | None = None
    prev_randao: bytes | None = None
    base_fee: int | None = None
    blob_base_fee: int | None = None

    def applied(self, environment: Environment) -> Environment:
        """An environment with them."""
        names = BlockChanges.__dataclass_fields__
        said = {name: getattr(self, name) for name in names}
        return replace(environment, **{k: v for k, v in said.items() if v is not None})


@dataclass(frozen=True, slots=True)
class EmittedLog:
    """Something a contract reported, before it is numbered."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What running a message gave."""

    gas_used: int
    most_gas: int
    """Before refunds: what it needs to get through."""
    output: bytes = b""
    """What it returned, or why it reverted."""
    error: str = ""
    """In geth's words; empty for success."""
    logs: tuple[EmittedLog, ...] = ()
    created: bytes | None = None
    """The address of the contract it was to create."""

    @property
    def reverted(self) -> bool:
        """Whether the contract itself gave up."""
        return self.error == REVERTED


REVERTED = "execution reverted"
OUT_OF_GAS = "out of gas"


@dataclass(frozen=True, slots=True)
class StateChange:
    """A state that follows another: its root, and the records that make it up."""

    root: bytes
    written: Mapping[bytes, bytes] = field(default_factory=dict)
    """By their hashes: nodes of trees, and code."""
