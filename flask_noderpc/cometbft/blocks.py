"""Handlers of blocks, headers, commits and block results."""

from __future__ import annotations

from dataclasses import dataclass

from ..backends.base.backend import ChainBackend
from ..domain.abci import BlockResults
from ..domain.block import NO_BLOCK
from ..domain.responses import ResultBlock, ResultBlockchainInfo, ResultCommit, ResultHeader
from ..errors import BlockNotFound, HeightNotAvailable, ResultNotFound, ValueNotAllowed
from ..jsonrpc.context import Context
from ..jsonrpc.params import Params, param
from ..wire.params import Hash, HexHash, Int64

# CometBFT: rpc/core/env.go.
DEFAULT_PER_PAGE = 30
MAX_PER_PAGE = 100


@dataclass(frozen=True, slots=True)
class AtHeight(Params):
    """Parameters of routes that read one height."""

    height: int | None = param(
        Int64(), default=None, doc="Height to read; by default the latest."
    )


def block_height(backend: ChainBackend, height: int | None) -> int:
    """Return ``height``, or the latest height if it is ``None``.

    The existence of the block is not checked: the backend raises an error when the block is
    read.
    """
    if height is not None:
        return _positive(height)
    latest = backend.reads.latest_height()
    if latest == 0:
        _check_begun(backend)
        raise ResultNotFound("the chain has no block yet")
    return latest


def _check_begun(backend: ChainBackend) -> None:
    """Raise :exc:`~flask_noderpc.errors.NotReady` while no block of the followed chain is
    known."""
    backend.reads.initial_height()


def next_height(backend: ChainBackend) -> int:
    """Return the height of the next block."""
    return (backend.reads.latest_height() or backend.reads.initial_height() - 1) + 1


def state_height(backend: ChainBackend, height: int | None) -> int:
    """Return ``height``, or by default the highest height whose validators and parameters are
    known, which is one above the latest block. Raise :exc:`HeightNotAvailable` for a height
    without known validators."""
    # CometBFT: while a node fetches blocks, the validators above its latest height are
    # unknown.
    known = next_height(backend) - (1 if backend.network.catching_up() else 0)
    if height is None:
        return known
    base = backend.reads.lowest_readable()
    if not base <= _positive(height) <= known:
        raise HeightNotAvailable(height, base, known)
    return height


def _positive(height: int) -> int:
    if height <= 0:
        raise ValueNotAllowed(f"height must be greater than 0, but got {height}")
    return height


def per_page(size: int | None) -> int:
    """Return the page size. CometBFT: a size below 1 means the default, and a size above the
    maximum means the maximum."""
    if size is None or size < 1:
        return DEFAULT_PER_PAGE
    return min(size, MAX_PER_PAGE)


def page_slice(total: int, page: int | None, size: int) -> slice:
    """Return the slice of one page; raise ``ValueNotAllowed`` for a page after the last."""
    pages = max(1, -(-total // size))
    number = 1 if page is None else page
    if not 1 <= number <= pages:
        raise ValueNotAllowed(f"page should be within [1, {pages}] range, given {number}")
    return slice((number - 1) * size, number * size)


# CometBFT: rpc/core/blocks.go.
MAX_BLOCKS = 20


@dataclass(frozen=True, slots=True)
class HeightRange(Params):
    """Parameters of ``blockchain``."""

    min_height: int | None = param(
        Int64(), default=None, wire="minHeight", doc="Lowest height to return."
    )
    max_height: int | None = param(
        Int64(), default=None, wire="maxHeight", doc="Highest height to return."
    )


def blockchain(ctx: Context, params: HeightRange) -> ResultBlockchainInfo:
    """Headers and sizes of at most 20 blocks, highest first."""
    backend = ctx.backend
    latest, base = backend.reads.latest_height(), backend.reads.base_height()
    low, high = params.min_height or 0, params.max_height or 0
    if low < 0 or high < 0:
        raise ValueNotAllowed("heights must be non-negative")
    high = min(high or latest, latest)
    low = max(low or 1, min(base, backend.reads.lowest_readable()), high - MAX_BLOCKS + 1)
    metas = backend.reads.block_metas(low, high) if low <= high else ()
    if not metas:
        low = max(low, base)
        raise ValueNotAllowed(f"min height {low} can't be greater than max height {high}")
    return ResultBlockchainInfo(latest, metas)


@dataclass(frozen=True, slots=True)
class ByHash(Params):
    """Parameters of ``block_by_hash``."""

    hash: bytes = param(Hash(), default=b"", doc="Hash of the block.")


@dataclass(frozen=True, slots=True)
class HeaderByHash(Params):
    """Parameters of ``header_by_hash``."""

    # CometBFT: this route uses HexBytes, all other routes use bytes.
    hash: bytes = param(HexHash(), default=b"", doc="Hash of the block.")


# CometBFT: result for an unknown block.
NO_RESULT = ResultBlock(NO_BLOCK, None)


def _is_latest_of_empty_chain(ctx: Context, height: int | None) -> bool:
    """Return True if the latest block is requested before the chain has a block, and the
    dialect has a result for this request instead of an error."""
    is_empty = (
        ctx.behaviours.unknown_block_is_null
        and height is None
        and ctx.backend.reads.latest_height() == 0
    )
    if is_empty:
        _check_begun(ctx.backend)
    return is_empty


def _height_of(ctx: Context, block_hash: bytes) -> int | None:
    try:
        return ctx.backend.reads.height_of(block_hash)
    except BlockNotFound:
        if ctx.behaviours.unknown_block_is_null:
            return None
        raise


def block(ctx: Context, params: AtHeight) -> ResultBlock:
    """A block with its ID."""
    if _is_latest_of_empty_chain(ctx, params.height):
        return NO_RESULT
    return result_block(ctx.backend, block_height(ctx.backend, params.height))


def block_by_hash(ctx: Context, params: ByHash) -> ResultBlock:
    """A block with its ID, found by its hash."""
    height = _height_of(ctx, params.hash)
    return NO_RESULT if height is None else result_block(ctx.backend, height)


def result_block(backend: ChainBackend, height: int) -> ResultBlock:
    """Return the block at a height with the validators that its evidence accuses."""
    block_id, found = backend.reads.block(height)
    return ResultBlock(
        block_id, found, tuple(map(backend.reads.byzantine_validators, found.evidence))
    )


def header(ctx: Context, params: AtHeight) -> ResultHeader:
    """A block's header."""
    if _is_latest_of_empty_chain(ctx, params.height):
        return ResultHeader(None)
    return _header_at(ctx, block_height(ctx.backend, params.height))


def header_by_hash(ctx: Context, params: HeaderByHash) -> ResultHeader:
    """A block's header, found by its hash."""
    height = _height_of(ctx, params.hash)
    return ResultHeader(None) if height is None else _header_at(ctx, height)


def _header_at(ctx: Context, height: int) -> ResultHeader:
    meta = ctx.backend.reads.block_meta(height)
    return ResultHeader(meta.header, meta.form)


def block_results(ctx: Context, params: AtHeight) -> BlockResults:
    """Results of executing a block."""
    if _is_latest_of_empty_chain(ctx, params.height):
        raise ResultNotFound("could not find results for height #0")
    return ctx.backend.reads.results(block_height(ctx.backend, params.height))


def commit(ctx: Context, params: AtHeight) -> ResultCommit | None:
    """A header with the precommits that finalized its block."""
    backend = ctx.backend
    if _is_latest_of_empty_chain(ctx, params.height):
        return None
    signed, canonical = backend.reads.signed_header(block_height(backend, params.height))
    return ResultCommit(signed, canonical)
