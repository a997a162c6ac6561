"""A chain as Ethereum's clients see it: transactions, receipts, logs, headers and blocks.

Addresses have 20 bytes and hashes 32; amounts are in wei, times in seconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass

ETHER = 10**18
"""Wei."""

ZERO_HASH = bytes(32)
ZERO_ADDRESS = bytes(20)
EMPTY_BLOOM = bytes(256)

# keccak(rlp([])): what a block without uncles has in its header.
NO_UNCLES = bytes.fromhex("1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347")

# EIP-2718 and the EIPs that took a number of it.
LEGACY, ACCESS_LIST, DYNAMIC_FEE, BLOB, SET_CODE = range(5)

# EIP-4844: what one blob takes.
GAS_PER_BLOB = 1 << 17
# geth: eth/gasprice/feehistory.go, where a header does not count blobs; no node's does.
NO_BLOB_FEE = 0


@dataclass(frozen=True, slots=True)
class AccessListEntry:
    """EIP-2930: an address, and slots of its storage, that a transaction will touch."""

    address: bytes
    storage_keys: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Authorization:
    """EIP-7702: an account lets the code at an address act for it; chain id 0 is any chain."""

    chain_id: int
    address: bytes
    nonce: int
    y_parity: int
    r: int
    s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A signed transaction of any type, with what follows from its bytes.

    ``None`` stands where a type has no such field: ``chain_id`` of an unprotected legacy
    transaction, ``gas_price`` from type 2 on, the fees before.
    """

    type: int
    chain_id: int | None = None
    nonce: int
    gas_price: int | None = None
    max_priority_fee_per_gas: int | None = None
    max_fee_per_gas: int | None = None
    gas: int
    """The limit."""
    to: bytes | None
    """``None`` creates a contract."""
    value: int
    data: bytes
    access_list: tuple[AccessListEntry, ...] = ()
    max_fee_per_blob_gas: int | None = None
    blob_versioned_hashes: tuple[bytes, ...] = ()
    authorizations: tuple[Authorization, ...] = ()
    v: int
    """As in the bytes: the parity from type 1 on, before that with the chain id or 27."""
    r: int
    s: int
    raw: bytes
    """The canonical bytes, the type in front from type 1 on."""
    hash: bytes
    sender: bytes

    @property
    def is_signed(self) -> bool:
        """Whether its sender has signed it; no signature has an S of 0."""
        return self.s != 0

    @property
    def fee_cap(self) -> int:
        """The most that a unit of gas may cost its sender."""
        return (self.max_fee_per_gas if self.gas_price is None else self.gas_price) or 0

    @property
    def tip_cap(self) -> int:
        """The most of that beyond the base fee; all of it where there is one price."""
        return (
            self.max_priority_fee_per_gas if self.gas_price is None else self.gas_price
        ) or 0

    @property
    def blob_gas(self) -> int | None:
        """What the blobs take; ``None`` for a type without any."""
        return GAS_PER_BLOB * len(self.blob_versioned_hashes) if self.type == BLOB else None

    def gas_price_at(self, base_fee: int | None) -> int:
        """What a unit of gas costs at a base fee: ``effectiveGasPrice``.

        EIP-1559: the tip on top of the base fee, and never more than the sender's maximum.
        """
        if self.gas_price is not None:
            return self.gas_price
        tip, most = self.max_priority_fee_per_gas or 0, self.max_fee_per_gas or 0
        return min(tip + (base_fee or 0), most)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a transaction is: its block, and its index among the block's Ethereum ones."""

    block_hash: bytes
    block_number: int
    block_time: int
    index: int


@dataclass(frozen=True, slots=True)
class PlacedTransaction:
    """A transaction and its place; ``None`` while it waits for one."""

    transaction: Transaction
    place: Place | None
    gas_price: int
    """In a block the effective one; before that the most that the sender pays."""


@dataclass(frozen=True, slots=True)
class Log:
    """Something a contract reported; ``index`` counts the logs of the whole block."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    index: int
    transaction_hash: bytes
    place: Place


@dataclass(frozen=True, slots=True)
class LogSearch:
    """Logs between two heights, both included, of some addresses with some topics.

    Any of the addresses, and at each position any of its topics; none is every one.
    """

    addresses: tuple[bytes, ...]
    topics: tuple[tuple[bytes, ...], ...]
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """What executing a transaction gave."""

    transaction: Transaction
    place: Place
    succeeded: bool
    gas_used: int
    cumulative_gas_used: int
    """Of the block's Ethereum transactions up to this one."""
    effective_gas_price: int
    contract_address: bytes | None
    """Of the contract that was to be created, failed or not."""
    logs: tuple[Log, ...]
    bloom: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A block's header; ``hash``, ``nonce`` and ``miner`` are ``None`` while it is pending."""

    number: int
    hash: bytes | None
    """The node's own block hash, and not the one of this header's RLP."""
    parent_hash: bytes
    nonce: bytes | None = bytes(8)
    uncles_hash: bytes = NO_UNCLES
    bloom: bytes = EMPTY_BLOOM
    transactions_root: bytes
    state_root: bytes
    receipts_root: bytes
    miner: bytes | None
    difficulty: int = 0
    extra_data: bytes = b""
    gas_limit: int
    gas_used: int = 0
    timestamp: int
    mix_hash: bytes = ZERO_HASH
    base_fee: int | None = None
    """``None`` on a chain without a fee market."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block with its Ethereum transactions and their receipts, in order."""

    header: Header
    size: int
    """Bytes of its RLP."""
    transactions: tuple[PlacedTransaction, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    """None while it is pending."""
