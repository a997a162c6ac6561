"""Blocks and what is in them, in their canonical bytes."""

from __future__ import annotations

from dataclasses import dataclass

from ... import jsoncodec
from ...domain.ethereum import Block
from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams, Params, param
from ...protocol.ethereum.blocks import raw_block
from ...protocol.ethereum.consensus import encode_header, encode_receipt
from ..codec.params import Uint64
from ..codec.views import BlockView
from ..errors import EvmError
from ..reader import reader
from .blocks import BlockParams
from .transactions import TransactionParams, raw_by_hash


def header(ctx: Context, params: BlockParams) -> bytes:
    """A header's RLP; its hash is not that of the block, which is the node's."""
    return encode_header(_block(ctx, params).header)


def block(ctx: Context, params: BlockParams) -> bytes:
    """A block's RLP."""
    return raw_block(_block(ctx, params))


def receipts(ctx: Context, params: BlockParams) -> tuple[bytes, ...]:
    """The canonical bytes of all of a block's receipts."""
    return tuple(map(encode_receipt, _block(ctx, params).receipts))


def transaction(ctx: Context, params: TransactionParams) -> bytes:
    """A transaction's canonical bytes; none where it is not known."""
    return raw_by_hash(ctx, params) or b""


@dataclass(frozen=True, slots=True)
class BlockNumberParams(Params):
    """For methods that take a block's height as a plain number."""

    height: int = param(Uint64(), doc="Height of the block.")


def header_at(ctx: Context, params: BlockNumberParams) -> bytes:
    """A header's RLP, as Ethermint calls it."""
    return encode_header(_at(ctx, params).header)


def block_at(ctx: Context, params: BlockNumberParams) -> bytes:
    """A block's RLP, as Ethermint calls it."""
    return raw_block(_at(ctx, params))


def printed(ctx: Context, params: BlockNumberParams) -> str:
    """A block with its complete transactions as a readable text."""
    return jsoncodec.pretty(
        jsoncodec.decode(ctx.encode(BlockView(_at(ctx, params), True)))
    ).decode()


def bad_blocks(ctx: Context, params: NoParams) -> tuple[Block, ...]:
    """None: blocks that do not follow the chain are never stored."""
    return ()


def _at(ctx: Context, params: BlockNumberParams) -> Block:
    found = reader(ctx).block(params.height)
    if found is None:
        # geth: internal/ethapi.
        raise EvmError(f"block #{params.height} not found")
    return found


def _block(ctx: Context, params: BlockParams) -> Block:
    found = reader(ctx).block(params.block)
    if found is None:
        # geth: eth/api_debug.go.
        raise EvmError("block not found")
    return found
