"""Handlers of health, status, network, genesis, and queries to the application."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from ..domain.abci import QueryResult
from ..domain.block import BlockMeta
from ..domain.genesis import GenesisChunk, GenesisSource
from ..domain.network import NetInfo
from ..domain.responses import (
    Empty,
    ResultABCIInfo,
    ResultABCIQuery,
    ResultGenesis,
    ResultStatus,
    SyncInfo,
    ValidatorInfo,
)
from ..errors import GenesisNotAvailable, GenesisTooLarge, NotFound, ValueNotAllowed
from ..feature import features, load
from ..jsoncodec import Raw
from ..jsonrpc.context import Context
from ..jsonrpc.params import NoParams, Params, param
from ..protocol.comet.key_types import address
from ..wire.params import Flag, Int64, QueryData, Text, UInt64
from .blocks import next_height

# CometBFT: genesisChunkSize.
GENESIS_CHUNK_BYTES = 16 << 20


def health(ctx: Context, params: NoParams) -> Empty:
    """An empty object, if the node serves requests."""
    return Empty()


def status(ctx: Context, params: NoParams) -> ResultStatus:
    """Information about the node, its chain and its validator key."""
    backend = ctx.backend
    pub_key = backend.network.validator_key()
    latest = backend.reads.latest_height()
    try:
        members = backend.reads.validators(next_height(backend)).by_address
    except NotFound:
        members = {}
    known = members.get(address(pub_key))
    return ResultStatus(
        replace(backend.network.node_info(), version=ctx.node_version),
        _sync_info(ctx, latest),
        ValidatorInfo(address(pub_key), pub_key, known[1].voting_power if known else 0),
    )


def _sync_info(ctx: Context, latest: int) -> SyncInfo:
    backend = ctx.backend
    if latest == 0:
        # CometBFT: a node is also "catching up" before it has the first block.
        return SyncInfo(b"", b"", 0, 0, b"", b"", 0, 0, catching_up=True)
    last: BlockMeta = backend.reads.block_meta(latest)
    first = backend.reads.base_meta()
    return SyncInfo(
        last.block_id.hash,
        last.header.app_hash,
        latest,
        last.header.time,
        first.block_id.hash,
        first.header.app_hash,
        first.header.height,
        first.header.time,
        backend.network.catching_up(),
    )


def net_info(ctx: Context, params: NoParams) -> NetInfo:
    """Peers of the node."""
    return ctx.backend.network.net_info()


def genesis(ctx: Context, params: NoParams) -> ResultGenesis | Raw:
    """The genesis document, if it fits one chunk."""
    source = _own_source(ctx)
    if source is not None:
        if source.total > 1:
            raise GenesisTooLarge(source.total * GENESIS_CHUNK_BYTES, GENESIS_CHUNK_BYTES)
        return Raw(b'{"genesis":' + ctx.backend.reads.genesis_chunk(0) + b"}")
    try:
        size = len(_encoded_genesis(ctx))
    except GenesisNotAvailable:
        # Ask the upstream node: the document is not stored yet, or it is too large for the
        # store.
        first = ctx.backend.network.genesis_chunk(0)
        if first is None:
            raise
        if first.total == 1:
            return Raw(b'{"genesis":' + first.content + b"}")
        size = first.total * GENESIS_CHUNK_BYTES
    if size > GENESIS_CHUNK_BYTES:
        raise GenesisTooLarge(size, GENESIS_CHUNK_BYTES)
    return ResultGenesis(ctx.backend.reads.genesis())


@dataclass(frozen=True, slots=True)
class ChunkParams(Params):
    """Parameters of ``genesis_chunked``."""

    chunk: int = param(UInt64(), default=0, doc="Index of the chunk, counted from 0.")


def genesis_chunked(ctx: Context, params: ChunkParams) -> GenesisChunk:
    """One chunk of the genesis document."""
    source = _own_source(ctx)
    if source is not None:
        _check_chunk(params.chunk, source.total)
        return GenesisChunk(
            params.chunk, source.total, ctx.backend.reads.genesis_chunk(params.chunk)
        )
    try:
        document, size = _encoded_genesis(ctx), GENESIS_CHUNK_BYTES
    except GenesisNotAvailable:
        chunk = ctx.backend.network.genesis_chunk(params.chunk)
        if chunk is None:
            raise
        return chunk
    total = -(-len(document) // size)
    _check_chunk(params.chunk, total)
    start = params.chunk * size
    return GenesisChunk(params.chunk, total, document[start : start + size])


def _own_source(ctx: Context) -> GenesisSource | None:
    """Return the source of a genesis document that an upstream node sent, if its text can be
    served unchanged: its dialect is the served one, or it has several chunks. Otherwise return
    ``None``."""
    found = ctx.backend.reads.genesis_source()
    is_own = found is not None and (found.dialect == ctx.settings.dialect or found.total > 1)
    return found if is_own else None


def _check_chunk(number: int, total: int) -> None:
    if number >= total:
        # CometBFT: the error text contains the number of chunks minus 1.
        raise ValueNotAllowed(f"there are {total} chunks, {number} is invalid")


def _encoded_genesis(ctx: Context) -> bytes:
    if "genesis" not in ctx.memo:
        ctx.memo["genesis"] = ctx.encode(ctx.backend.reads.genesis())
    document: bytes = ctx.memo["genesis"]
    return document


def abci_info(ctx: Context, params: NoParams) -> ResultABCIInfo:
    """Name, version and last block of the application."""
    return ResultABCIInfo(ctx.backend.application.info())


def is_chain_only(ctx: Context, params: Params) -> bool:
    """Return True if the application's responses depend only on the chain."""
    return ctx.backend.application.is_chain_only


@dataclass(frozen=True, slots=True)
class Query(Params):
    """Parameters of ``abci_query``."""

    path: str = param(Text(), default="", doc="Path to the data, defined by the application.")
    data: bytes = param(QueryData(), default=b"", doc="Data of the query, often a key.")
    height: int = param(Int64(), default=0, doc="Height of the queried state; 0 is the latest.")
    prove: bool = param(Flag(), default=False, doc="Include a proof.")


@cache
def feature_answers() -> tuple[Callable[[Context, str, bytes, int], QueryResult | None], ...]:
    """Return the functions with which features handle queries; each returns ``None`` for a
    path that is not its own."""
    return tuple(load(each.abci_query) for each in features() if each.abci_query)


def abci_query(ctx: Context, params: Query) -> ResultABCIQuery:
    """Response of the application to a query."""
    for answer in feature_answers():
        own = answer(ctx, params.path, params.data, params.height)
        if own is not None:
            return ResultABCIQuery(own)
    return ResultABCIQuery(
        ctx.backend.application.query(params.path, params.data, params.height, params.prove)
    )
