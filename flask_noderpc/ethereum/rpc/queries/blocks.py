"""Handlers for blocks, headers, transactions and receipts, by hash, height or index."""

from __future__ import annotations

from dataclasses import dataclass

from ....jsonrpc.context import Context
from ....jsonrpc.params import NoParams, Params, param
from ... import index
from ...domain.records import Header, Log, RPCTransaction
from ...protocol.blocks import Block, BlockView, pending_transaction
from ...protocol.execution import Receipt, transaction_hashes
from ..codec.params import BlockId, BlockNumber, Bool, ByHash, Hash, Height, Index, Tag
from ..reader import SearchBudget, reader


@dataclass(frozen=True, slots=True)
class AtNumberParams(Params):
    """Parameters of methods that take a block by its number."""

    block: Height = param(BlockNumber(), doc="Height or tag of the block.")


@dataclass(frozen=True, slots=True)
class BlockByNumberParams(AtNumberParams):
    """Parameters of ``eth_getBlockByNumber``."""

    full_transactions: bool = param(
        Bool(), doc="Return complete transactions instead of hashes."
    )


@dataclass(frozen=True, slots=True)
class HeightParams(Params):
    """Parameters of ``erigon_blockNumber``."""

    block: Height = param(
        BlockNumber(), default=Tag.LATEST, doc="Tag of the block; the latest when omitted."
    )


@dataclass(frozen=True, slots=True)
class BlockHashParams(Params):
    """Parameters of methods that take a block by its hash."""

    hash: bytes = param(Hash(), doc="Hash of the block.")


@dataclass(frozen=True, slots=True)
class BlockByHashParams(BlockHashParams):
    """Parameters of ``eth_getBlockByHash``."""

    full_transactions: bool = param(
        Bool(), doc="Return complete transactions instead of hashes."
    )


@dataclass(frozen=True, slots=True)
class BlockParams(Params):
    """Parameters of methods that take a block by number, tag or hash."""

    block: Height | ByHash = param(BlockId(), doc="Height, tag or hash of the block.")


@dataclass(frozen=True, slots=True)
class NumberAndIndexParams(AtNumberParams):
    """Parameters of methods that take a block's number and an index in the block."""

    index: int = param(Index(), doc="Index in the block, counted from 0.")


@dataclass(frozen=True, slots=True)
class HashAndIndexParams(BlockHashParams):
    """Parameters of methods that take a block's hash and an index in the block."""

    index: int = param(Index(), doc="Index in the block, counted from 0.")


def is_committed(ctx: Context, params: AtNumberParams | BlockParams) -> bool:
    """Return true unless the parameters select the pending block."""
    return params.block is not Tag.PENDING


def by_number(ctx: Context, params: BlockByNumberParams) -> BlockView | None:
    """A block by its height or tag."""
    return _view(reader(ctx).block(params.block), params.full_transactions)


def by_hash(ctx: Context, params: BlockByHashParams) -> BlockView | None:
    """A block by its hash."""
    return _view(reader(ctx).by_hash(params.hash), params.full_transactions)


def _view(block: Block | None, full_transactions: bool) -> BlockView | None:
    return None if block is None else BlockView(block, full_transactions)


def header_by_number(ctx: Context, params: AtNumberParams) -> Header | None:
    """A header by its block's height or tag."""
    return _header(reader(ctx).block(params.block))


def header_by_hash(ctx: Context, params: BlockHashParams) -> Header | None:
    """A header by its block's hash."""
    return _header(reader(ctx).by_hash(params.hash))


def height(ctx: Context, params: HeightParams) -> int:
    """The height of a block by its tag; as in erigon, the latest one for a height."""
    return reader(ctx).height(params.block if isinstance(params.block, Tag) else Tag.LATEST)


def _header(block: Block | None) -> Header | None:
    return None if block is None else block.header


def count_by_number(ctx: Context, params: AtNumberParams) -> int | None:
    """Number of transactions in a block, by the block's height or tag."""
    return _count(reader(ctx).block(params.block))


def count_by_hash(ctx: Context, params: BlockHashParams) -> int | None:
    """Number of transactions in a block, by the block's hash."""
    return _count(reader(ctx).by_hash(params.hash))


def _count(block: Block | None) -> int | None:
    return None if block is None else len(block.encoded)


def receipts(ctx: Context, params: BlockParams) -> tuple[Receipt, ...] | None:
    """The receipts of a block's transactions; null for the pending block, which is not yet
    executed."""
    if params.block is Tag.PENDING:
        return None
    block = reader(ctx).block(params.block)
    return None if block is None else block.receipts


def uncles_by_number(ctx: Context, params: AtNumberParams) -> int | None:
    """Number of a block's uncles: always 0."""
    return None if reader(ctx).block(params.block) is None else 0


def uncles_by_hash(ctx: Context, params: BlockHashParams) -> int | None:
    """Number of a block's uncles: always 0."""
    return None if reader(ctx).by_hash(params.hash) is None else 0


def uncle_by_number(ctx: Context, params: NumberAndIndexParams) -> None:
    """Always null: blocks have no uncles."""


def uncle_by_hash(ctx: Context, params: HashAndIndexParams) -> None:
    """Always null: blocks have no uncles."""


# Maximum number of pending transactions to search for an Ethereum hash.
_MAX_PENDING = 100


@dataclass(frozen=True, slots=True)
class TransactionParams(Params):
    """Parameters of methods that take a transaction's Ethereum hash."""

    hash: bytes = param(Hash(), doc="Ethereum hash of the transaction.")


def transaction_by_hash(ctx: Context, params: TransactionParams) -> RPCTransaction | None:
    """A transaction by its Ethereum hash, committed or pending."""
    receipt = find(ctx, params.hash)
    return _waiting_with(ctx, params.hash) if receipt is None else receipt.in_block


def _waiting_with(ctx: Context, tx_hash: bytes) -> RPCTransaction | None:
    found = ctx.backend.mempool.pending_by_other_hash(tx_hash)
    for raw in (found,) if found else ctx.backend.mempool.pending(_MAX_PENDING).txs:
        # Compare hashes before decoding, which recovers the sender and is slower: clients
        # often poll for transactions that don't exist.
        if tx_hash in transaction_hashes(raw):
            matching = (tx for tx in reader(ctx).decode_pending(raw) if tx.hash == tx_hash)
            return next(map(pending_transaction, matching), None)
    return None


def receipt(ctx: Context, params: TransactionParams) -> Receipt | None:
    """Receipt of a transaction; null while it is pending."""
    return find(ctx, params.hash)


def transaction_logs(ctx: Context, params: TransactionParams) -> tuple[Log, ...] | None:
    """The logs of a transaction."""
    found = find(ctx, params.hash)
    return None if found is None else found.logs


def find(ctx: Context, tx_hash: bytes) -> Receipt | None:
    """Return the receipt of the committed transaction with an Ethereum hash.

    A transaction may be in several blocks: one that exceeded a block's gas limit is not
    executed and can be included again. The successful receipt is returned, else the newest.
    """
    newest = None
    for height in index.tx_heights(ctx.backend, tx_hash, SearchBudget(ctx.settings).limits):
        block = reader(ctx).block_at(height)
        for each in block.receipts if block else ():
            if each.encoded.hash == tx_hash:
                if each.succeeded:
                    return each
                newest = newest or each
    return newest


def transaction_by_number_and_index(
    ctx: Context, params: NumberAndIndexParams
) -> RPCTransaction | None:
    """A transaction by its index in a block."""
    return _in(reader(ctx).block(params.block), params.index)


def transaction_by_hash_and_index(
    ctx: Context, params: HashAndIndexParams
) -> RPCTransaction | None:
    """A transaction by its index in a block."""
    return _in(reader(ctx).by_hash(params.hash), params.index)


def _in(block: Block | None, index: int) -> RPCTransaction | None:
    if block is None or index >= len(block.encoded):
        return None
    return block.receipts[index].in_block if block.receipts else block.transactions[index]


def raw_transaction_by_hash(ctx: Context, params: TransactionParams) -> bytes | None:
    """A transaction's canonical bytes, by its Ethereum hash."""
    return _raw(transaction_by_hash(ctx, params))


def raw_transaction_by_number_and_index(
    ctx: Context, params: NumberAndIndexParams
) -> bytes | None:
    """A transaction's canonical bytes, by its index in a block."""
    return _raw(transaction_by_number_and_index(ctx, params))


def raw_transaction_by_hash_and_index(ctx: Context, params: HashAndIndexParams) -> bytes | None:
    """A transaction's canonical bytes, by its index in a block."""
    return _raw(transaction_by_hash_and_index(ctx, params))


def _raw(placed: RPCTransaction | None) -> bytes | None:
    return None if placed is None else placed.transaction.raw


def pending_transactions(ctx: Context, params: NoParams) -> tuple[RPCTransaction, ...]:
    """Pending transactions, oldest first."""
    return tuple(map(pending_transaction, reader(ctx).pending_transactions()))
