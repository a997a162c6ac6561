"""Values of Ethereum: transactions, logs and headers.

Addresses have 20 bytes and hashes 32; amounts are in wei, times in seconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass

ETHER = 10**18
"""Wei in one ether."""

ZERO_HASH = bytes(32)
ZERO_ADDRESS = bytes(20)
EMPTY_BLOOM = bytes(256)

# keccak(rlp(b"")): root of an empty trie.
EMPTY_ROOT = bytes.fromhex("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421")
# keccak(rlp([])): sha3Uncles of a block without uncles.
NO_UNCLES = bytes.fromhex("1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347")

# EIP-2718: transaction types.
LEGACY, ACCESS_LIST, DYNAMIC_FEE, BLOB, SET_CODE = range(5)

# EIP-4844: blob gas of one blob.
GAS_PER_BLOB = 1 << 17
# EIP-4844, MIN_BASE_FEE_PER_BLOB_GAS: the minimum price of blob gas, in wei.
MIN_BLOB_FEE = 1


@dataclass(frozen=True, slots=True)
class AccessListEntry:
    """EIP-2930: an address and storage slots that a transaction declares to access."""

    address: bytes
    storage_keys: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Authorization:
    """EIP-7702: delegation of an account to the code at an address; chain ID 0 means any
    chain."""

    chain_id: int
    address: bytes
    nonce: int
    y_parity: int
    r: int
    s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A signed transaction of any type, with the values derived from its bytes.

    A field that the type does not have is ``None``: ``chain_id`` of an unprotected legacy
    transaction, ``gas_price`` from type 2 on, and the EIP-1559 fees of types 0 and 1.
    """

    type: int
    chain_id: int | None = None
    nonce: int
    gas_price: int | None = None
    max_priority_fee_per_gas: int | None = None
    max_fee_per_gas: int | None = None
    gas: int
    """Gas limit."""
    to: bytes | None
    """``None`` creates a contract."""
    value: int
    data: bytes
    access_list: tuple[AccessListEntry, ...] = ()
    max_fee_per_blob_gas: int | None = None
    blob_versioned_hashes: tuple[bytes, ...] = ()
    authorizations: tuple[Authorization, ...] = ()
    v: int
    """V of the signature, as encoded: the parity from type 1 on; the parity plus 27, or plus
    35 and twice the chain ID (EIP-155), for type 0."""
    r: int
    s: int
    raw: bytes
    """Canonical bytes; from type 1 on they begin with the type byte."""
    hash: bytes
    sender: bytes

    @property
    def is_signed(self) -> bool:
        """True if the transaction has a signature; a valid S is never 0."""
        return self.s != 0

    @property
    def fee_cap(self) -> int:
        """Maximum fee per gas, in wei."""
        return (self.max_fee_per_gas if self.gas_price is None else self.gas_price) or 0

    @property
    def tip_cap(self) -> int:
        """Maximum priority fee per gas, in wei; for types 0 and 1 this is the gas price."""
        return (
            self.max_priority_fee_per_gas if self.gas_price is None else self.gas_price
        ) or 0

    @property
    def blob_gas(self) -> int | None:
        """Blob gas of the transaction; ``None`` unless it has type 3, which carries blobs."""
        return GAS_PER_BLOB * len(self.blob_versioned_hashes) if self.type == BLOB else None

    def gas_price_at(self, base_fee: int | None) -> int:
        """Return the ``effectiveGasPrice`` at a base fee, in wei.

        EIP-1559: base fee plus tip, but at most the sender's maximum fee.
        """
        if self.gas_price is not None:
            return self.gas_price
        tip, fee_cap = self.max_priority_fee_per_gas or 0, self.max_fee_per_gas or 0
        return min(tip + (base_fee or 0), fee_cap)


@dataclass(frozen=True, slots=True)
class EncodedTransaction:
    """A committed transaction that is not decoded yet."""

    type: int
    raw: bytes
    hash: bytes


@dataclass(frozen=True, slots=True)
class Inclusion:
    """Inclusion of a transaction: its block, and its index among the block's Ethereum
    transactions."""

    block_hash: bytes
    block_number: int
    block_time: int
    index: int


@dataclass(frozen=True, slots=True)
class RPCTransaction:
    """Transaction and its inclusion in a block, ``None`` while it is pending (geth:
    RPCTransaction)."""

    transaction: Transaction
    inclusion: Inclusion | None
    gas_price: int
    """Effective gas price in a block; the maximum fee while pending."""


@dataclass(frozen=True, slots=True)
class Log:
    """Log of a contract; ``index`` is its index among all logs of the block."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    index: int
    transaction_hash: bytes
    inclusion: Inclusion


@dataclass(frozen=True, slots=True)
class LogSearch:
    """Search for logs by address and topics, from height ``low`` to ``high`` inclusive.

    A log matches if it has one of the addresses, and at each topic position one of the topics
    listed for it; an empty tuple matches everything.
    """

    addresses: tuple[bytes, ...]
    topics: tuple[tuple[bytes, ...], ...]
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A block's header; ``hash``, ``nonce`` and ``miner`` are ``None`` for a pending block."""

    number: int
    hash: bytes | None
    """CometBFT's block hash; of block 0 and simulated blocks, the hash of this header's RLP."""
    parent_hash: bytes
    nonce: bytes | None = bytes(8)
    uncles_hash: bytes = NO_UNCLES
    bloom: bytes = EMPTY_BLOOM
    transactions_root: bytes = EMPTY_ROOT
    state_root: bytes
    receipts_root: bytes = EMPTY_ROOT
    miner: bytes | None
    difficulty: int = 0
    extra_data: bytes = b""
    gas_limit: int
    gas_used: int = 0
    timestamp: int
    mix_hash: bytes = ZERO_HASH
    base_fee: int | None = None
    """Base fee per gas, in wei; ``None`` on a chain without a fee market."""


class PlainNumber(int):
    """A number that is encoded as a JSON number instead of a hex string."""


@dataclass(frozen=True, slots=True)
class HeadView:
    """A header to be encoded as in a ``newHeads`` event."""

    header: Header
