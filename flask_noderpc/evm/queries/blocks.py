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
class AtNumber(Params):
    """For methods about a block by its number."""

    block: Height = param(BlockNumber(), doc="Height or tag of the block.")


@dataclass(frozen=True, slots=True)
class BlockByNumberParams(AtNumber):
    """Of ``eth_getBlockByNumber``."""

    whole: bool = param(Bool(), doc="Whether transactions are whole, or hashes.")


@dataclass(frozen=True, slots=True)
class WithHash(Params):
    """For methods about a block by its hash."""

    hash: bytes = param(Hash(), doc="Hash of the block.")


@dataclass(frozen=True, slots=True)
class HashAndWhole(WithHash):
    """Of ``eth_getBlockByHash``."""

    whole: bool = param(Bool(), doc="Whether transactions are whole, or hashes.")


@dataclass(frozen=True, slots=True)
class OfBlock(Params):
    """For methods about a block by whatever names it."""

    block: Height | ByHash = param(BlockId(), doc="Height, tag or hash of the block.")


@dataclass(frozen=True, slots=True)
class NumberAndIndex(AtNumber):
    """For methods about something in a block."""

    index: int = param(Index(), doc="Place in the block, from 0.")


@dataclass(frozen=True, slots=True)
class HashAndIndex(WithHash):
    """For methods about something in a block."""

    index: int = param(Index(), doc="Place in the block, from 0.")


def is_committed(ctx: Context, params: AtNumber | OfBlock) -> bool:
    """True if the block is in the chain, and not the pending one."""
    return params.block is not Tag.PENDING


def by_number(ctx: Context, params: BlockByNumberParams) -> BlockView | None:
    """A block by its height or tag."""
    return _view(reader(ctx).block(params.block), params.whole)


def by_hash(ctx: Context, params: HashAndWhole) -> BlockView | None:
    """A block by its hash."""
    return _view(reader(ctx).by_hash(params.hash), params.whole)


def _view(block: Block | None, whole: bool) -> BlockView | None:
    return None if block is None else BlockView(block, whole)


def header_by_number(ctx: Context, params: AtNumber) -> Header | None:
    """A header by its block's height or tag."""
    return _header(reader(ctx).block(params.block))


def header_by_hash(ctx: Context, params: WithHash) -> Header | None:
    """A header by its block's hash."""
    return _header(reader(ctx).by_hash(params.hash))


def _header(block: Block | None) -> Header | None:
    return None if block is None else block.header


def count_by_number(ctx: Context, params: AtNumber) -> int | None:
    """How many transactions a block has, by its height or tag."""
    return _count(reader(ctx).block(params.block))


def count_by_hash(ctx: Context, params: WithHash) -> int | None:
    """How many transactions a block has, by its hash."""
    return _count(reader(ctx).by_hash(params.hash))


def _count(block: Block | None) -> int | None:
    return None if block is None else len(block.transactions)


def receipts(ctx: Context, params: OfBlock) -> tuple[Receipt, ...] | None:
    """The receipts of all of a block's transactions."""
    block = reader(ctx).block(params.block)
    return None if block is None else block.receipts


def uncles_by_number(ctx: Context, params: AtNumber) -> int | None:
    """No block has uncles."""
    return None if reader(ctx).block(params.block) is None else 0


def uncles_by_hash(ctx: Context, params: WithHash) -> int | None:
    """No block has uncles."""
    return None if reader(ctx).by_hash(params.hash) is None else 0


def uncle_by_number(ctx: Context, params: NumberAndIndex) -> None:
    """No block has uncles."""


def uncle_by_hash(ctx: Context, params: HashAndIndex) -> None:
    """No block has uncles."""
