"""Blocks and headers; what is not there is null."""

from __future__ import annotations

from dataclasses import dataclass

from ...domain.ethereum import Block, Header, Receipt
from ...jsonrpc.context import Context
from ...jsonrpc.params import Params, param
from ..codec.params import BlockId, BlockNumber, Bool, ByHash, Hash, Height, Index, Tag
from ..codec.views import BlockView
from ..reader import reader


@dataclass(frozen=True, slots=True)
class AtNumberParams(Params):
    """For methods about a block by its number."""

    block: Height = param(BlockNumber(), doc="Height or tag of the block.")


@dataclass(frozen=True, slots=True)
class BlockByNumberParams(AtNumberParams):
    """Parameters of ``eth_getBlockByNumber``."""

    full_transactions: bool = param(
        Bool(), doc="Return complete transactions instead of hashes."
    )


@dataclass(frozen=True, slots=True)
class BlockHashParams(Params):
    """For methods about a block by its hash."""

    hash: bytes = param(Hash(), doc="Hash of the block.")


@dataclass(frozen=True, slots=True)
class BlockByHashParams(BlockHashParams):
    """Parameters of ``eth_getBlockByHash``."""

    full_transactions: bool = param(
        Bool(), doc="Return complete transactions instead of hashes."
    )


@dataclass(frozen=True, slots=True)
class BlockParams(Params):
    """For methods about a block by whatever names it."""

    block: Height | ByHash = param(BlockId(), doc="Height, tag or hash of the block.")


@dataclass(frozen=True, slots=True)
class NumberAndIndexParams(AtNumberParams):
    """For methods about something in a block."""

    index: int = param(Index(), doc="Place in the block, from 0.")


@dataclass(frozen=True, slots=True)
class HashAndIndexParams(BlockHashParams):
    """For methods about something in a block."""

    index: int = param(Index(), doc="Place in the block, from 0.")


def is_committed(ctx: Context, params: AtNumberParams | BlockParams) -> bool:
    """True if the block is in the chain, and not the pending one."""
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


def _header(block: Block | None) -> Header | None:
    return None if block is None else block.header


def count_by_number(ctx: Context, params: AtNumberParams) -> int | None:
    """How many transactions a block has, by its height or tag."""
    return _count(reader(ctx).block(params.block))


def count_by_hash(ctx: Context, params: BlockHashParams) -> int | None:
    """How many transactions a block has, by its hash."""
    return _count(reader(ctx).by_hash(params.hash))


def _count(block: Block | None) -> int | None:
    return None if block is None else len(block.transactions)


def receipts(ctx: Context, params: BlockParams) -> tuple[Receipt, ...] | None:
    """The receipts of all of a block's transactions."""
    block = reader(ctx).block(params.block)
    return None if block is None else block.receipts


def uncles_by_number(ctx: Context, params: AtNumberParams) -> int | None:
    """No block has uncles."""
    return None if reader(ctx).block(params.block) is None else 0


def uncles_by_hash(ctx: Context, params: BlockHashParams) -> int | None:
    """No block has uncles."""
    return None if reader(ctx).by_hash(params.hash) is None else 0


def uncle_by_number(ctx: Context, params: NumberAndIndexParams) -> None:
    """No block has uncles."""


def uncle_by_hash(ctx: Context, params: HashAndIndexParams) -> None:
    """No block has uncles."""
