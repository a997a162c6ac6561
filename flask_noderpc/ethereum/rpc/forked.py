"""Routes of a forked chain: calls about blocks before the fork are sent to a node of the other
chain, and its results are returned unchanged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ... import jsoncodec
from ...errors import InvalidParams
from ...jsonrpc.context import Context
from ...jsonrpc.params import Params, ParamSpec, specs
from ...jsonrpc.route import NEVER, Route, RouteTable
from ..application.forked import ForkedChain
from ..state import EVM_STATE
from .codec import hex
from .codec.log_filter import LogFilter
from .codec.params import ByHash, Tag
from .forward import forwarded_result, params_with_json
from .queries import blocks, fees, logs
from .reader import reader

# Methods that this chain can answer for the block of the fork, too, such as those that read
# the state of a block.
_OF_STATE = frozenset(
    {
        "eth_getBalance", "eth_getTransactionCount", "eth_getCode", "eth_getStorageAt",
        "eth_getStorageValues", "eth_getProof", "eth_getAccount", "eth_getAccountInfo",
        "eth_call", "eth_estimateGas", "eth_createAccessList", "eth_simulateV1",
        "debug_traceCall", "trace_call", "trace_callMany", "eth_feeHistory",
    }
)  # fmt: skip
# Methods that show a block, by number, tag or hash.
_OF_BLOCK = frozenset(
    {
        "eth_getBlockByNumber", "eth_getHeaderByNumber", "eth_getBlockReceipts",
        "eth_getBlockTransactionCountByNumber", "eth_getUncleCountByBlockNumber",
        "eth_getTransactionByBlockNumberAndIndex",
        "eth_getRawTransactionByBlockNumberAndIndex", "eth_getUncleByBlockNumberAndIndex",
        "debug_traceBlockByNumber", "debug_getRawBlock", "debug_getRawHeader",
        "debug_getRawReceipts", "trace_block", "trace_replayBlockTransactions",
    }
)  # fmt: skip
# Methods that name a block or a transaction by its hash.
_OF_HASH = frozenset(
    {
        "eth_getBlockByHash", "eth_getHeaderByHash", "eth_getTransactionByHash",
        "eth_getTransactionReceipt", "eth_getTransactionByBlockHashAndIndex",
        "eth_getBlockTransactionCountByHash", "eth_getUncleCountByBlockHash",
        "eth_getUncleByBlockHashAndIndex", "eth_getRawTransactionByHash",
        "eth_getRawTransactionByBlockHashAndIndex", "eth_getTransactionLogs",
        "debug_traceTransaction", "debug_traceBlockByHash", "debug_getRawTransaction",
        "trace_transaction", "trace_get", "trace_replayTransaction",
    }
)  # fmt: skip
_BY_BLOCK = _OF_STATE | _OF_BLOCK
_LOGS = "eth_getLogs"


def with_fork(table: RouteTable, ctx: Context) -> RouteTable:
    """Return the table with routes that ask the other chain, if the chain is forked."""
    evm = EVM_STATE.find(ctx.backend)
    fork = evm.fork if evm else None
    if fork is None:
        return table
    return RouteTable(_served(row, fork) for row in table)


def _served(row: Route[Any], fork: ForkedChain) -> Route[Any]:
    if row.name not in _BY_BLOCK | _OF_HASH | {_LOGS}:
        return row
    names = [spec.name for spec in specs(row.params)]

    def handler(ctx: Context, params: Params) -> Any:
        given = [getattr(params, name) for name in names]
        own = row.params(**{name: each.value for name, each in zip(names, given, strict=True)})
        values = [each.json for each in given]
        if row.name == _LOGS:
            return _logs(ctx, own, values[0], fork)
        if not _is_of_other(ctx, row.name, own, fork):
            return row.call(ctx, own)
        return _asked(ctx, fork, row.name, own, values)

    handler.__doc__ = row.doc
    # Results of the other chain are not cached: the keys of caches are versions of this one.
    return replace(
        row,
        call=handler,
        params=params_with_json(row.params, _Given, _default),
        result=object,
        cache=NEVER,
        chain_only=False,
        is_immutable=False,
    )


def _is_of_other(ctx: Context, name: str, params: Any, fork: ForkedChain) -> bool:
    """Return true if the call is about a block or a transaction of the other chain."""
    if name in _OF_HASH:
        digest = params.hash
        if ("Transaction" in name and "Block" not in name) or name.startswith("trace_"):
            return blocks.transaction_by_hash(ctx, blocks.TransactionParams(digest)) is None
        # The block of the fork is known here, but without its transactions.
        return _is_other_hash(ctx, digest, fork)
    height, latest = fork.block.header.number, Tag.LATEST
    block = getattr(params, _block_name(params), latest)
    if isinstance(block, ByHash):
        if name in _OF_STATE:
            return reader(ctx).by_hash(block.hash) is None
        return _is_other_hash(ctx, block.hash, fork)
    if block is Tag.PENDING:
        return False
    return reader(ctx).height(block) < height + (name not in _OF_STATE)


def _block_name(params: Params) -> str:
    return "newest" if isinstance(params, fees.FeeHistory) else "block"


def _is_other_hash(ctx: Context, digest: bytes, fork: ForkedChain) -> bool:
    return digest == fork.block.header.hash or reader(ctx).by_hash(digest) is None


def _asked(
    ctx: Context, fork: ForkedChain, name: str, params: Any, values: list[Any]
) -> jsoncodec.Raw:
    """Return the result of the other chain's node."""
    name_of_block = _block_name(params)
    block = getattr(params, name_of_block, None)
    if isinstance(block, Tag) and block is not Tag.EARLIEST:
        # Tags mean a block of this chain, here the one of the fork.
        at = [spec.name for spec in specs(type(params))].index(name_of_block)
        values[at] = hex.quantity(reader(ctx).height(block))
    is_fork = values[:1] == [hex.quantity(fork.block.header.number)]
    if is_fork and name == "eth_getBlockByNumber" and not params.full_transactions:
        # Clients ask for the latest block all the time, also without a network.
        return jsoncodec.Raw(fork.block.json)
    while values and values[-1] is None:
        values.pop()
    return forwarded_result(fork, name, jsoncodec.encode(values))


def _logs(ctx: Context, params: Any, value: Any, fork: ForkedChain) -> Any:
    """Return the logs of the range, of the other chain and of this one."""
    query, height = params.query, fork.block.header.number
    wanted: LogFilter = query.filter
    if wanted.block_hash is not None:
        if _is_other_hash(ctx, wanted.block_hash, fork):
            return forwarded_result(fork, _LOGS, jsoncodec.encode([value]))
        return logs.get_logs(ctx, params)
    pending = Tag.PENDING in (wanted.first, wanted.last)
    first = 0 if pending else reader(ctx).height(wanted.first)
    if pending or first > height:
        return logs.get_logs(ctx, params)
    if query.is_paged:
        raise InvalidParams(
            f"fromBlock: expected a height above {height}, after which the chain is forked, for"
            f" a page of logs, got {first}"
        )
    last = reader(ctx).height(wanted.last)
    asked = {
        **value,
        "fromBlock": hex.quantity(first),
        "toBlock": hex.quantity(min(last, height)),
    }
    found = forwarded_result(fork, _LOGS, jsoncodec.encode([asked]))
    if last <= height:
        return found
    own = logs.logs_of(ctx, replace(wanted, first=height + 1, last=last))
    return (*fork.decoded(bytes(found), list[jsoncodec.Raw]), *own)


@dataclass(frozen=True, slots=True)
class _Given:
    """A parameter's value, and its JSON."""

    value: Any
    json: Any


def _default(spec: ParamSpec) -> _Given:
    return _Given(spec.default, None)
