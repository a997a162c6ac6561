"""SDK services that a node serves without the application, from blocks and their index.

SDK: x/auth/tx/service.go, client/grpc/cmtservice and client/grpc/node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..cometbft import consensus, search
from ..cometbft.blocks import block_height, next_height
from ..cometbft.consensus import PageAtHeight
from ..cometbft.search import TxQuery
from ..domain.abci import QueryResult
from ..domain.block import Block, BlockID
from ..domain.network import NodeInfo
from ..domain.responses import ResultValidators
from ..domain.search import TxResult
from ..errors import NotFound, QuerySyntaxError, ResultNotFound, TxNotFound, ValueNotAllowed
from ..jsonrpc.context import Context
from ..protocol.protobuf import Malformed, Message, int64, integer, message
from .protocol import responses
from .protocol.fields import hex_bytes
from .protocol.responses import FoundTx

ORDERS = ("", "asc", "desc")
"""Orders of a search, indexed by the number of ``OrderBy``."""

_LIMIT = 100
_TOO_HIGH = "requested block height is bigger then the chain length"
# SDK: baseapp/abci.go.
_QUERY_PATHS = ("app", "store", "p2p", "custom")
_UNREADABLE = 2


class GrpcError(Exception):
    """gRPC error by name; an empty name is an error that the SDK returns without a code."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        super().__init__(f"rpc error: code = {name} desc = {text}" if name else text)


# SDK: codes and texts by the name of a gRPC error; baseapp/grpcrouter_helpers.go.
_CODES = {
    "NotFound": (22, "key not found"),
    "InvalidArgument": (18, "invalid request"),
    "": (18, "invalid request"),
}
_OTHER = (6, "unknown request")
# SDK: baseapp/abci.go, CreateQueryContext.
_NO_HEIGHT = "cannot query with height {}; please provide a valid height: {}"
_NEGATIVE = (18, _NO_HEIGHT.format("< 0", "invalid request"))
_IN_THE_FUTURE = (26, _NO_HEIGHT.format("in the future", "invalid height"))


def find_tx(ctx: Context, text: str) -> FoundTx:
    """Return the transaction with a hash, given in hex; raise :exc:`GrpcError`."""
    if not text:
        raise GrpcError("InvalidArgument", "tx hash cannot be empty")
    try:
        record = ctx.backend.reads.tx(_hash(text))
    except TxNotFound:
        raise GrpcError("NotFound", f"tx not found: {text}") from None
    if _is_unreadable(record):
        raise GrpcError("", record.result.log)
    return _found(ctx, record)


def _hash(text: str) -> bytes:
    try:
        return hex_bytes(text)
    except ValueError as error:
        raise GrpcError("", str(error)) from None


def _is_unreadable(record: TxResult) -> bool:
    return (record.result.codespace, record.result.code) == ("sdk", _UNREADABLE)


def _found(ctx: Context, record: TxResult) -> FoundTx:
    return FoundTx(record, ctx.backend.reads.block_meta(record.height).header.time)


def find_txs(
    ctx: Context, query: str, page: int = 0, limit: int = 0, order: str = ""
) -> tuple[int, tuple[FoundTx, ...]]:
    """Return the number of transactions that match a query, and a page of them; raise
    :exc:`GrpcError`."""
    if not query:
        raise GrpcError("Internal", "query cannot be empty")
    size = limit if limit > 0 else _LIMIT
    wanted = TxQuery(query, prove=False, page=max(page, 1), per_page=size, order_by=order)
    try:
        found = search.tx_search(ctx, wanted)
    except (QuerySyntaxError, ValueNotAllowed) as error:
        raise GrpcError("Internal", f"failed to search for txs: {error}") from None
    records = [TxResult(each.height, each.index, each.tx, each.tx_result) for each in found.txs]
    for record in records:
        if _is_unreadable(record):
            raise GrpcError("Internal", record.result.log)
    return found.total, tuple(_found(ctx, record) for record in records)


def latest_block(ctx: Context) -> tuple[BlockID, Block]:
    """Return the ID and the contents of the latest block; raise :exc:`GrpcError`."""
    try:
        return ctx.backend.reads.block(block_height(ctx.backend, None))
    except ResultNotFound as error:
        raise GrpcError("", str(error)) from None


def block_at(ctx: Context, height: int) -> tuple[BlockID, Block]:
    """Return the ID and the contents of the block at a height; raise :exc:`GrpcError`."""
    if height > ctx.backend.reads.latest_height():
        raise GrpcError("InvalidArgument", _TOO_HIGH)
    try:
        return ctx.backend.reads.block(block_height(ctx.backend, height))
    except (NotFound, ValueNotAllowed) as error:
        raise GrpcError("", str(error)) from None


@dataclass(frozen=True, slots=True)
class BlockTxs:
    """A block, and a page of its transactions."""

    block_id: BlockID
    block: Block
    txs: Sequence[bytes]


def block_with_txs(
    ctx: Context, height: int, offset: int = 0, limit: int | None = None
) -> BlockTxs:
    """Return a block, and at most ``limit`` of its transactions from an offset on; raise
    :exc:`GrpcError`."""
    latest = ctx.backend.reads.latest_height()
    if not 1 <= height <= latest:
        raise GrpcError(
            "",
            f"requested height {height} but height must not be less than 1 or greater than"
            f" the current height {latest}: invalid height",
        )
    block_id, block = block_at(ctx, height)
    count = min(_LIMIT if limit is None else limit, len(block.txs))
    if block.txs and offset >= len(block.txs):
        raise GrpcError(
            "",
            f"out of range: cannot paginate {len(block.txs)} txs with offset {offset} and"
            f" limit {count}: invalid request",
        )
    return BlockTxs(block_id, block, block.txs[offset : offset + count])


def validators_at(
    ctx: Context, height: int | None, offset: int = 0, limit: int | None = None
) -> ResultValidators:
    """Return a page of the validators at a height, by default the latest; raise
    :exc:`GrpcError`."""
    if height is not None and height > ctx.backend.reads.latest_height():
        raise GrpcError("InvalidArgument", _TOO_HIGH)
    for name, value in (("offset", offset), ("limit", limit or 0)):
        if value < 0:
            raise GrpcError("InvalidArgument", f"{name} must greater than 0")
    size = limit or _LIMIT
    page = PageAtHeight(height, page=offset // size + 1, per_page=size)
    try:
        return consensus.validators(ctx, page)
    except (NotFound, ValueNotAllowed) as error:
        raise GrpcError("", str(error)) from None


def application_query(ctx: Context, request: Message) -> QueryResult:
    """Return the application's result of an ``ABCIQuery`` request; raise :exc:`GrpcError`."""
    path = request.text(2)
    if not path:
        raise GrpcError("InvalidArgument", "empty query path")
    if path.removeprefix("/").split("/")[0] not in _QUERY_PATHS:
        raise GrpcError("InvalidArgument", f"unsupported ABCI query path: {path}")
    height, prove = int64(request.integer(3)), bool(request.integer(4))
    return ctx.backend.application.query(path, request.blob(1), height, prove)


def node_info(ctx: Context) -> NodeInfo:
    """Return the node info that ``status`` returns."""
    return replace(ctx.backend.network.node_info(), version=ctx.node_version)


def _get_tx(ctx: Context, request: Message, prefix: str) -> bytes:
    return responses.get_tx(find_tx(ctx, request.text(1)))


def _get_txs_event(ctx: Context, request: Message, prefix: str) -> bytes:
    order = request.integer(3)
    total, found = find_txs(
        ctx,
        request.text(6),
        int64(request.integer(4)),
        int64(request.integer(5)),
        ORDERS[order] if order < len(ORDERS) else "",
    )
    return responses.get_txs_event(found, total)


def _get_block_with_txs(ctx: Context, request: Message, prefix: str) -> bytes:
    page = Message(request.blob(2))
    limit = page.integer(3) if request.blobs(2) else None
    found = block_with_txs(ctx, int64(request.integer(1)), page.integer(2), limit)
    return responses.get_block_with_txs(
        found.block_id, found.block, found.txs, len(found.block.txs)
    )


def _get_latest_block(ctx: Context, request: Message, prefix: str) -> bytes:
    return responses.get_block(*latest_block(ctx), prefix)


def _get_block_by_height(ctx: Context, request: Message, prefix: str) -> bytes:
    return responses.get_block(*block_at(ctx, int64(request.integer(1))), prefix)


def _get_latest_validators(ctx: Context, request: Message, prefix: str) -> bytes:
    return _validators(ctx, None, Message(request.blob(1)), prefix)


def _get_validators(ctx: Context, request: Message, prefix: str) -> bytes:
    height = int64(request.integer(1))
    return _validators(ctx, height, Message(request.blob(2)), prefix)


def _validators(ctx: Context, height: int | None, page: Message, prefix: str) -> bytes:
    offset, limit = int64(page.integer(2)), int64(page.integer(3))
    found = validators_at(ctx, height, offset, limit)
    return responses.validator_set(found.block_height, found.validators, found.total, prefix)


def _abci_query(ctx: Context, request: Message, prefix: str) -> bytes:
    return responses.abci_query(application_query(ctx, request))


def _get_node_info(ctx: Context, request: Message, prefix: str) -> bytes:
    application = ctx.backend.application.info()
    return responses.node_info(node_info(ctx), application.data, application.version)


def _get_syncing(ctx: Context, request: Message, prefix: str) -> bytes:
    return integer(1, ctx.backend.network.catching_up())


def _consensus_params(ctx: Context, request: Message, prefix: str) -> bytes:
    params = ctx.backend.reads.consensus_params(next_height(ctx.backend))
    return message(1, responses.consensus_params(params))


def _status(ctx: Context, request: Message, prefix: str) -> bytes:
    return responses.node_status(latest_block(ctx)[1].header)


METHODS: dict[str, Callable[[Context, Message, str], bytes]] = {
    "/cosmos.base.node.v1beta1.Service/Status": _status,
    "/cosmos.base.tendermint.v1beta1.Service/ABCIQuery": _abci_query,
    "/cosmos.base.tendermint.v1beta1.Service/GetBlockByHeight": _get_block_by_height,
    "/cosmos.base.tendermint.v1beta1.Service/GetLatestBlock": _get_latest_block,
    "/cosmos.base.tendermint.v1beta1.Service/GetLatestValidatorSet": _get_latest_validators,
    "/cosmos.base.tendermint.v1beta1.Service/GetNodeInfo": _get_node_info,
    "/cosmos.base.tendermint.v1beta1.Service/GetSyncing": _get_syncing,
    "/cosmos.base.tendermint.v1beta1.Service/GetValidatorSetByHeight": _get_validators,
    "/cosmos.consensus.v1.Query/Params": _consensus_params,
    "/cosmos.tx.v1beta1.Service/GetBlockWithTxs": _get_block_with_txs,
    "/cosmos.tx.v1beta1.Service/GetTx": _get_tx,
    "/cosmos.tx.v1beta1.Service/GetTxsEvent": _get_txs_event,
}
"""Query methods by path; the last argument of each is the chain's address prefix."""


def answer(ctx: Context, path: str, data: bytes, height: int) -> QueryResult | None:
    """Return the result of a query method; ``None`` for other paths, and if the application is
    not of the SDK."""
    method = METHODS.get(path)
    prefix = ctx.backend.application.sdk_prefix() if method else None
    if method is None or prefix is None:
        return None
    latest = ctx.backend.reads.latest_height()
    if height < 0 or height > latest > 0:
        code, log = _NEGATIVE if height < 0 else _IN_THE_FUTURE
        return QueryResult(code=code, log=log, codespace="sdk", key=None)
    at = height or latest
    try:
        value = method(ctx, Message(data), prefix)
        return QueryResult(key=None, value=value, height=at, encodes_empty_as_string=True)
    except Malformed:
        failed = GrpcError("", "unexpected EOF")
    except GrpcError as error:
        failed = error
    code, text = _CODES.get(failed.name, _OTHER)
    return QueryResult(code=code, log=f"{failed}: {text}", codespace="sdk", key=None, height=at)
