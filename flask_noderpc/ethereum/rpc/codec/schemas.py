"""Schemas of Ethereum's blocks, transactions, receipts and logs.

geth: internal/ethapi; execution-apis: src/schemas. Members that a transaction type lacks are
omitted; members that a pending transaction lacks are null.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from operator import attrgetter
from typing import Any

from ....wire.fields import Flag, Json, WireField
from ....wire.schema import ListOf, WireSchema, compiled
from ...domain import records
from ...domain.records import (
    ACCESS_LIST,
    LEGACY,
    MIN_BLOB_FEE,
    HeadView,
    RPCTransaction,
)
from ...protocol.blocks import BlockView
from ...protocol.execution import Receipt as EthereumReceipt
from . import hex
from .hex import Data, Quantity


def _of_inclusion(name: str) -> Callable[[RPCTransaction], Any]:
    return lambda placed: None if placed.inclusion is None else getattr(placed.inclusion, name)


def _of_tx(name: str) -> Callable[[RPCTransaction], Any]:
    return lambda placed: getattr(placed.transaction, name)


def _from_type(from_type: int, name: str) -> Callable[[RPCTransaction], Any]:
    """Return a getter for a member that only transactions of ``from_type`` or later have."""

    def get(placed: RPCTransaction) -> Any:
        tx = placed.transaction
        return getattr(tx, name) if tx.type >= from_type else None

    return get


class AccessListEntry(WireSchema):
    """An entry of an access list (EIP-2930)."""

    address = Data()
    storage_keys = ListOf(Data(), data_key="storageKeys")


class Authorization(WireSchema):
    """A signed delegation of an account's code (EIP-7702)."""

    chain_id = Quantity(data_key="chainId")
    address = Data()
    nonce = Quantity()
    y_parity = Quantity(data_key="yParity")
    r = Quantity()
    s = Quantity()


class Transaction(WireSchema):
    """A transaction of any type."""

    block_hash = Data(data_key="blockHash", nullable=True, get=_of_inclusion("block_hash"))
    block_number = Quantity(
        data_key="blockNumber", nullable=True, get=_of_inclusion("block_number")
    )
    block_time = Quantity(
        data_key="blockTimestamp", nullable=True, get=_of_inclusion("block_time")
    )
    sender = Data(data_key="from", get=_of_tx("sender"))
    gas = Quantity(get=_of_tx("gas"))
    gas_price = Quantity(data_key="gasPrice")
    max_fee_per_gas = Quantity(
        data_key="maxFeePerGas", get=_of_tx("max_fee_per_gas"), omit_none=True
    )
    max_priority_fee_per_gas = Quantity(
        data_key="maxPriorityFeePerGas", get=_of_tx("max_priority_fee_per_gas"), omit_none=True
    )
    max_fee_per_blob_gas = Quantity(
        data_key="maxFeePerBlobGas", get=_of_tx("max_fee_per_blob_gas"), omit_none=True
    )
    hash = Data(get=_of_tx("hash"))
    data = Data(data_key="input", get=_of_tx("data"))
    nonce = Quantity(get=_of_tx("nonce"))
    to = Data(nullable=True, get=_of_tx("to"))
    index = Quantity(data_key="transactionIndex", nullable=True, get=_of_inclusion("index"))
    value = Quantity(get=_of_tx("value"))
    type = Quantity(get=_of_tx("type"))
    access_list = ListOf(
        AccessListEntry,
        data_key="accessList",
        get=_from_type(ACCESS_LIST, "access_list"),
        omit_none=True,
    )
    chain_id = Quantity(data_key="chainId", get=_of_tx("chain_id"), omit_none=True)
    blob_versioned_hashes = ListOf(
        Data(),
        data_key="blobVersionedHashes",
        get=_of_tx("blob_versioned_hashes"),
        omit_empty=True,
    )
    authorizations = ListOf(
        Authorization,
        data_key="authorizationList",
        get=_of_tx("authorizations"),
        omit_empty=True,
    )
    v = Quantity(get=_of_tx("v"))
    r = Quantity(get=_of_tx("r"))
    s = Quantity(get=_of_tx("s"))
    y_parity = Quantity(
        data_key="yParity",
        get=lambda p: None if p.transaction.type == LEGACY else p.transaction.v,
        omit_none=True,
    )


class FilledTransaction(WireSchema):
    """A transaction that was filled in but not sent, so it has no block, index or sender."""

    # geth: core/types/transaction_marshalling.go.
    type = Quantity()
    chain_id = Quantity(data_key="chainId", omit_none=True)
    nonce = Quantity()
    to = Data(nullable=True)
    gas = Quantity()
    gas_price = Quantity(data_key="gasPrice", nullable=True)
    max_priority_fee_per_gas = Quantity(data_key="maxPriorityFeePerGas", nullable=True)
    max_fee_per_gas = Quantity(data_key="maxFeePerGas", nullable=True)
    value = Quantity()
    data = Data(data_key="input")
    access_list = ListOf(
        AccessListEntry,
        data_key="accessList",
        get=lambda tx: tx.access_list if tx.type >= ACCESS_LIST else None,
        omit_none=True,
    )
    authorizations = ListOf(Authorization, data_key="authorizationList", omit_empty=True)
    v = Quantity()
    r = Quantity()
    s = Quantity()
    y_parity = Quantity(
        data_key="yParity", get=lambda tx: None if tx.type == LEGACY else tx.v, omit_none=True
    )
    hash = Data()


class Log(WireSchema):
    """A log; ``removed`` is always false, as blocks are final."""

    address = Data()
    topics = ListOf(Data())
    data = Data()
    block_number = Quantity(data_key="blockNumber", get=attrgetter("inclusion.block_number"))
    transaction_hash = Data(data_key="transactionHash")
    transaction_index = Quantity(data_key="transactionIndex", get=attrgetter("inclusion.index"))
    block_hash = Data(data_key="blockHash", get=attrgetter("inclusion.block_hash"))
    block_time = Quantity(data_key="blockTimestamp", get=attrgetter("inclusion.block_time"))
    index = Quantity(data_key="logIndex")
    removed = Flag(get=lambda _: False)


class Receipt(WireSchema):
    """Result of executing a transaction."""

    block_hash = Data(data_key="blockHash", get=attrgetter("inclusion.block_hash"))
    block_number = Quantity(data_key="blockNumber", get=attrgetter("inclusion.block_number"))
    transaction_hash = Data(data_key="transactionHash", get=attrgetter("encoded.hash"))
    transaction_index = Quantity(data_key="transactionIndex", get=attrgetter("inclusion.index"))
    sender = Data(data_key="from", get=attrgetter("transaction.sender"))
    to = Data(nullable=True, get=attrgetter("transaction.to"))
    gas_used = Quantity(data_key="gasUsed")
    cumulative_gas_used = Quantity(data_key="cumulativeGasUsed")
    effective_gas_price = Quantity(data_key="effectiveGasPrice")
    blob_gas_used = Quantity(
        data_key="blobGasUsed", get=attrgetter("transaction.blob_gas"), omit_none=True
    )
    # Return the minimum price, as eth_blobBaseFee does: a price is computed from the excess
    # blob gas, which this package's headers don't have.
    blob_gas_price = Quantity(
        data_key="blobGasPrice",
        get=lambda r: None if r.transaction.blob_gas is None else MIN_BLOB_FEE,
        omit_none=True,
    )
    contract_address = Data(data_key="contractAddress", nullable=True)
    logs = ListOf(Log)
    bloom = Data(data_key="logsBloom")
    type = Quantity(get=attrgetter("encoded.type"))
    status = Quantity(get=lambda r: int(r.succeeded))
    # Besu has this member with --revert-reason-enabled.
    revert_data = Data(data_key="revertReason", omit_none=True)


class Header(WireSchema):
    """A block header."""

    number = Quantity()
    hash = Data(nullable=True)
    parent_hash = Data(data_key="parentHash")
    nonce = Data(nullable=True)
    uncles_hash = Data(data_key="sha3Uncles")
    bloom = Data(data_key="logsBloom")
    transactions_root = Data(data_key="transactionsRoot")
    state_root = Data(data_key="stateRoot")
    receipts_root = Data(data_key="receiptsRoot")
    miner = Data(nullable=True)
    difficulty = Quantity()
    extra_data = Data(data_key="extraData")
    gas_limit = Quantity(data_key="gasLimit")
    gas_used = Quantity(data_key="gasUsed")
    timestamp = Quantity()
    mix_hash = Data(data_key="mixHash")
    base_fee = Quantity(data_key="baseFeePerGas", omit_none=True)


class Transactions(WireField):
    """The transactions of a block: complete objects, or only hashes."""

    json_type = "array"
    _whole = staticmethod(compiled(Transaction))

    def encode(self, value: BlockView) -> Json:
        """Return a list of objects or of hashes."""
        if value.full_transactions:
            return [self._whole(tx) for tx in value.block.transactions]
        return [hex.data(tx.hash) for tx in value.block.encoded]


def _members_of_header() -> dict[str, WireField]:
    """Return the schema fields of a header, which take their values from a block's header."""
    members = {}
    for name, field in Header().dump_fields.items():
        assert isinstance(field, WireField)
        members[name] = copy(field)
        members[name].get = _in_header(field.get or attrgetter(field.attribute or name))
    return members


def _in_header(get: Callable[[Any], Any]) -> Callable[[BlockView], Any]:
    return lambda view: get(view.header)


class _Block(WireSchema):
    """A block: its header and its transactions."""

    # Older clients still read this member, which the specification no longer has.
    total_difficulty = Quantity(data_key="totalDifficulty", get=lambda _: 0)
    size = Quantity(get=attrgetter("block.size"))
    transactions = Transactions(get=lambda view: view)
    uncles = ListOf(Data(), get=lambda _: ())


Block: type[WireSchema] = type("Block", (_Block,), _members_of_header())


def _none(view: HeadView) -> None:
    """Return ``None``, the value of members that this package's headers don't have."""


class _Head(WireSchema):
    """A header in a ``newHeads`` event: members of later forks are null instead of omitted."""

    # geth: core/types/gen_header_json.go, which differs from the result of
    # eth_getHeaderByNumber.
    withdrawals_root = Data(data_key="withdrawalsRoot", nullable=True, get=_none)
    blob_gas_used = Quantity(data_key="blobGasUsed", nullable=True, get=_none)
    excess_blob_gas = Quantity(data_key="excessBlobGas", nullable=True, get=_none)
    beacon_root = Data(data_key="parentBeaconBlockRoot", nullable=True, get=_none)
    requests_hash = Data(data_key="requestsHash", nullable=True, get=_none)


Head: type[WireSchema] = type("Head", (_Head,), _members_of_header())

SCHEMAS: dict[type, type[WireSchema]] = {
    BlockView: Block,
    HeadView: Head,
    records.AccessListEntry: AccessListEntry,
    records.Header: Header,
    records.RPCTransaction: Transaction,
    records.Transaction: FilledTransaction,
    EthereumReceipt: Receipt,
    records.Log: Log,
}
