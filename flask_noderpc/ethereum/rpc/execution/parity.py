"""Handlers of the ``trace`` namespace: the calls of transactions as flat lists.

OpenEthereum's JSONRPC-trace-module, which anvil, reth and erigon also have. The traces are
made with geth's flatCallTracer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from .... import jsoncodec
from ....jsonrpc.context import Context
from ....jsonrpc.params import Params, param
from ....wire.params import ParamField
from ...domain.forks import fork_at
from ...protocol.blocks import Block
from ...protocol.execution import Receipt
from ...protocol.validity import intrinsic_gas
from ..codec.params import Address, BlockId, ByHash, Hash, Height, Index, Tag, Uint64, mismatch
from ..codec.trace_config import TraceConfig
from ..errors import INVALID_PARAMS, EvmError
from ..queries.blocks import BlockParams, TransactionParams, find
from ..reader import SearchBudget, reader
from . import debug
from .state import evm_state

Trace = dict[str, Any]

_FLAT = TraceConfig(tracer="flatCallTracer", tracer_config={"convertParityErrors": True})
# Maximum number of blocks of a trace_filter, as each is executed again; anvil's limit.
_MAX_BLOCKS = 300
# An upper bound for ``after`` and ``count``, more than the traces of any response.
_MOST = 1 << 32
# Members that say where a trace's transaction is; traces of a replay don't have them.
_PLACE = "blockHash", "blockNumber", "transactionHash", "transactionPosition"


def _of_block(ctx: Context, found: Block | None) -> list[Trace]:
    """Return the traces of all transactions of a block."""
    if found is None or not found.header.number:
        return []
    evm_state(ctx)
    traces = debug.traces(ctx, found, _FLAT)
    pairs = zip(found.receipts, traces, strict=True)
    return [trace for receipt, raw in pairs for trace in _decoded(ctx, receipt, raw)]


def _of_transaction(ctx: Context, tx_hash: bytes) -> list[Trace]:
    """Return the traces of a transaction; empty if it is not in a block."""
    receipt = find(ctx, tx_hash)
    if receipt is None:
        return []
    raw = debug.transaction(ctx, debug.TraceTransactionParams(tx_hash, _FLAT))
    return _decoded(ctx, receipt, raw)


def _decoded(ctx: Context, receipt: Receipt, raw: jsoncodec.Raw) -> list[Trace]:
    """Return the traces in the JSON that geth's tracer made for a transaction.

    The intrinsic gas is subtracted from the first call: geth includes it, OpenEthereum does
    not.
    """
    found: list[Trace] = jsoncodec.decode(bytes(raw))
    tx, schedule = receipt.transaction, evm_state(ctx).forks()
    fork = fork_at(schedule, receipt.inclusion.block_number)
    intrinsic = intrinsic_gas(fork, tx.data, tx.to is None, tx.access_list, tx.authorizations)
    first = found[0]
    for members, name in ((first["action"], "gas"), (first.get("result") or {}, "gasUsed")):
        if name in members:
            members[name] = hex(max(0, int(members[name], 16) - intrinsic))
    return found


def _encoded(traces: object) -> jsoncodec.Raw:
    # Return encoded JSON: heights and indexes are JSON numbers in this namespace, and the
    # dialect would encode them as hex.
    return jsoncodec.Raw(jsoncodec.encode(traces))


def block(ctx: Context, params: BlockParams) -> jsoncodec.Raw:
    """The calls of all transactions of a block; empty for a block that does not exist."""
    return _encoded(_of_block(ctx, reader(ctx).block(params.block)))


def transaction(ctx: Context, params: TransactionParams) -> jsoncodec.Raw:
    """The calls of a transaction; empty if it is not in a block."""
    return _encoded(_of_transaction(ctx, params.hash))


class TraceAddress(ParamField):
    """A list with one index, as alloy sends it."""

    json_type = "array"

    def from_json(self, value: Any) -> int:
        """Return the index; raise :exc:`ValueError` for another list."""
        if not isinstance(value, list) or len(value) != 1:
            raise ValueError('expected a list with one index, such as ["0x0"]')
        index: int = Index().from_json(value[0])
        return index


@dataclass(frozen=True, slots=True)
class TraceGetParams(TransactionParams):
    """Parameters of ``trace_get``."""

    indices: int = param(TraceAddress(), doc="List with the index of the call, counted from 0.")


def get_trace(ctx: Context, params: TraceGetParams) -> jsoncodec.Raw:
    """One call of a transaction; null if the index is too large."""
    return _encoded(next(iter(_of_transaction(ctx, params.hash)[params.indices :]), None))


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Calls in a range of blocks, by sender and recipient."""

    first: Height = 0
    last: Height = Tag.LATEST
    senders: frozenset[str] = frozenset()
    recipients: frozenset[str] = frozenset()
    needs_both: bool = False
    after: int = 0
    count: int | None = None

    def matches(self, trace: Trace) -> bool:
        """Return true if a call has one of the senders or one of the recipients; with
        ``needs_both`` it must have both."""
        action, result = trace["action"], trace.get("result") or {}
        sender = action.get("from") or action.get("address")
        recipient = action.get("to") or action.get("refundAddress") or result.get("address")
        if self.needs_both or not (self.senders and self.recipients):
            return (not self.senders or sender in self.senders) and (
                not self.recipients or recipient in self.recipients
            )
        return sender in self.senders or recipient in self.recipients


class TraceFilterObject(ParamField):
    """The filter object of ``trace_filter``."""

    json_type = "object"

    def from_json(self, value: Any) -> TraceFilter:
        """Return the filter; raise :exc:`ValueError` if it is invalid."""
        if not isinstance(value, dict):
            raise mismatch(value, "TraceFilter")
        given = {name: each for name, each in value.items() if each is not None}
        mode = given.get("mode", "union")
        if mode not in ("union", "intersection"):
            raise ValueError(f"mode: expected union or intersection, got {str(mode)[:50]!r}")
        number, count = BlockId(), Uint64()
        first, last = given.get("fromBlock", "0x0"), given.get("toBlock", "latest")
        return TraceFilter(
            first=_height(number.from_json(first)),
            last=_height(number.from_json(last)),
            senders=_addresses(given.get("fromAddress", [])),
            recipients=_addresses(given.get("toAddress", [])),
            needs_both=mode == "intersection",
            after=count.from_json(given.get("after", 0)),
            count=count.from_json(given["count"]) if "count" in given else None,
        )


def _height(block_id: Height | ByHash) -> Height:
    if isinstance(block_id, ByHash):
        raise ValueError("expected the number of a block, got a hash")
    return block_id


def _addresses(value: Any) -> frozenset[str]:
    if not isinstance(value, list):
        raise mismatch(value, "[]common.Address")
    return frozenset(f"0x{Address().from_json(each).hex()}" for each in value)


@dataclass(frozen=True, slots=True)
class TraceFilterParams(Params):
    """Parameters of ``trace_filter``."""

    filter: TraceFilter = param(
        TraceFilterObject(), doc="Range of blocks, senders, recipients, mode, after and count."
    )


def filter_traces(ctx: Context, params: TraceFilterParams) -> jsoncodec.Raw:
    """The calls in at most 300 blocks that match a filter."""
    wanted, chain = params.filter, reader(ctx)
    first, last = chain.height(wanted.first), min(chain.height(wanted.last), chain.latest)
    if last - first > _MAX_BLOCKS:
        raise EvmError(
            f"block range too large, currently limited to {_MAX_BLOCKS}", code=INVALID_PARAMS
        )
    matching = filter(wanted.matches, _of_range(ctx, range(first, last + 1)))
    start = min(wanted.after, _MOST)
    count = _MOST if wanted.count is None else min(wanted.count, _MOST)
    return _encoded(list(islice(matching, start, start + count)))


def _of_range(ctx: Context, heights: Iterable[int]) -> Iterator[Trace]:
    budget, left = SearchBudget(ctx.settings), ctx.settings.max_response_bytes
    for height in heights:
        budget.spend(1)
        for trace in _of_block(ctx, reader(ctx).block_at(height)):
            left -= len(jsoncodec.encode(trace))
            if left < 0:
                raise EvmError(
                    "the traces are too large for one response; request fewer blocks or raise"
                    " NODERPC_MAX_RESPONSE_BYTES"
                )
            yield trace


class TraceTypes(ParamField):
    """The kinds of traces to make in a replay; only ``trace``, the calls, is supported."""

    json_type = "array"

    def from_json(self, value: Any) -> None:
        """Return ``None`` if the requested traces are only of the kind ``trace``; raise
        :exc:`ValueError` for other kinds."""
        if not isinstance(value, list):
            raise mismatch(value, "[]string")
        for each in value:
            if each != "trace":
                raise ValueError(
                    f'expected "trace", the only supported kind, got "{each}"'[:200]
                )


@dataclass(frozen=True, slots=True)
class ReplayParams(BlockParams):
    """Parameters of ``trace_replayBlockTransactions``."""

    types: None = param(TraceTypes(), doc='Kinds of traces: ["trace"].')


@dataclass(frozen=True, slots=True)
class ReplayTransactionParams(Params):
    """Parameters of ``trace_replayTransaction``."""

    hash: bytes = param(Hash(), doc="Ethereum hash of the transaction.")
    types: None = param(TraceTypes(), doc='Kinds of traces: ["trace"].')


def replay_block(ctx: Context, params: ReplayParams) -> jsoncodec.Raw:
    """The calls of each transaction of a block, with its output."""
    by_hash: dict[str, list[Trace]] = {}
    for trace in _of_block(ctx, reader(ctx).block(params.block)):
        by_hash.setdefault(trace["transactionHash"], []).append(trace)
    return _encoded(
        [{**_replayed(traces), "transactionHash": each} for each, traces in by_hash.items()]
    )


def replay_transaction(ctx: Context, params: ReplayTransactionParams) -> jsoncodec.Raw:
    """The calls of a transaction, with its output."""
    traces = _of_transaction(ctx, params.hash)
    if not traces:
        raise EvmError("transaction not found")
    return _encoded(_replayed(traces))


def _replayed(traces: Iterable[Trace]) -> Trace:
    bare = [{k: v for k, v in trace.items() if k not in _PLACE} for trace in traces]
    # The first call is the transaction itself.
    result = bare[0].get("result") or {}
    output = result.get("output") or result.get("code") or "0x"
    return {"output": output, "stateDiff": None, "trace": bare, "vmTrace": None}
