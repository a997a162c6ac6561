"""Handlers of the ``trace`` namespace: calls, changes of the state, and instructions of
transactions and calls.

OpenEthereum's JSONRPC-trace-module, which anvil, reth and erigon also have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from .... import jsoncodec
from ....concurrency import in_turns
from ....jsonrpc.context import Context
from ....jsonrpc.params import Params, param
from ....wire.params import ParamField
from ...domain.execution import BlockChanges, CallArgs, Overrides
from ...domain.records import ZERO_HASH
from ...engine.jobs import TraceBlock, TraceCalls, TracedCall
from ...engine.tracers.parity import CALLS, KINDS, Replay
from ...protocol.blocks import Block
from ..codec import hex
from ..codec.call_objects import BlockOverride, CallObject, StateOverride
from ..codec.params import (
    Address,
    BlockId,
    ByHash,
    Data,
    Hash,
    Height,
    Index,
    Tag,
    Uint64,
    mismatch,
)
from ..codec.trace_config import TraceConfig
from ..errors import INVALID_PARAMS, EvmError, PrunedHistory
from ..queries.blocks import BlockParams, TransactionParams, find
from ..queries.history import heights_of
from ..reader import SearchBudget, reader
from . import debug
from .calls import capped_call, environment_of
from .sending import RawTransaction, read_raw
from .state import evm_state, header_and_root, state_block

Trace = dict[str, Any]

_CALLS = TraceConfig(logger=CALLS)
_UNCHANGED = BlockChanges()
# Maximum number of blocks of a trace_filter, as each is executed again, and of addresses;
# anvil's limit of blocks.
_MAX_BLOCKS = _MAX_ADDRESSES = 300
# Maximum number of calls of a trace_callMany.
_MAX_CALLS = 1_000
# An upper bound for ``after`` and ``count``, more than the traces of any response.
_MOST = 1 << 32


def _of_block(ctx: Context, found: Block | None) -> Iterator[jsoncodec.Raw]:
    """Yield the calls of all transactions of a block."""
    for traces in _traces(ctx, found, _CALLS):
        yield from jsoncodec.decode(bytes(traces), list[jsoncodec.Raw])


def _traces(ctx: Context, found: Block | None, config: TraceConfig) -> list[jsoncodec.Raw]:
    """Return a trace of each transaction of a block; empty if there is no block."""
    evm_state(ctx)
    is_traceable = found is not None and found.header.number
    return debug.traces(ctx, found, config) if found and is_traceable else []


def _encoded(traces: object) -> jsoncodec.Raw:
    # Return encoded JSON: heights and indexes are JSON numbers in this namespace, and the
    # dialect would encode them as hex.
    return jsoncodec.Raw(jsoncodec.encode(traces))


def block(ctx: Context, params: BlockParams) -> jsoncodec.Raw:
    """The calls of all transactions of a block; empty for a block that does not exist."""
    return _encoded(list(_of_block(ctx, reader(ctx).block(params.block))))


def transaction(ctx: Context, params: TransactionParams) -> jsoncodec.Raw:
    """The calls of a transaction; empty if it is not in a block."""
    if find(ctx, params.hash) is None:
        return _encoded([])
    return debug.transaction(ctx, debug.TraceTransactionParams(params.hash, _CALLS))


class TraceAddress(ParamField):
    """A list of indexes: one index of a call, or the ``traceAddress`` of a call."""

    json_type = "array"

    def from_json(self, value: Any) -> list[int]:
        """Return the indexes; raise :exc:`ValueError` for something else."""
        if not isinstance(value, list):
            raise ValueError('expected a list of indexes, such as ["0x0"]')
        return [Index().from_json(each) for each in value]


@dataclass(frozen=True, slots=True)
class TraceGetParams(TransactionParams):
    """Parameters of ``trace_get``."""

    indices: list[int] = param(
        TraceAddress(),
        doc="List with the index of the call, counted from 0, or its traceAddress if that has"
        " no index or several.",
    )


def get_trace(ctx: Context, params: TraceGetParams) -> jsoncodec.Raw:
    """One call of a transaction; null if it does not exist."""
    calls: list[Trace] = jsoncodec.decode(bytes(transaction(ctx, params)))
    path = params.indices
    if len(path) == 1:
        # As in reth 2.6, call 0 is the transaction itself. With OpenEthereum's rule, alloy
        # would get null for a plain transfer, which its type does not allow.
        return _encoded(next(iter(calls[path[0] :]), None))
    return _encoded(next((call for call in calls if call["traceAddress"] == path), None))


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Calls in a range of blocks, by sender and recipient."""

    first: Height = Tag.EARLIEST
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
        first, last = given.get("fromBlock", "earliest"), given.get("toBlock", "latest")
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
    if len(value) > _MAX_ADDRESSES:
        raise ValueError(
            f"expected at most {_MAX_ADDRESSES} addresses, got {len(value)}; send several calls"
        )
    return frozenset(f"0x{Address().from_json(each).hex()}" for each in value)


@dataclass(frozen=True, slots=True)
class TraceFilterParams(Params):
    """Parameters of ``trace_filter``."""

    filter: TraceFilter = param(
        TraceFilterObject(), doc="Range of blocks, senders, recipients, mode, after and count."
    )


def filter_traces(ctx: Context, params: TraceFilterParams) -> jsoncodec.Raw:
    """The calls that match a filter, in at most 300 blocks that may have any."""
    wanted, chain = params.filter, reader(ctx)
    first, last = chain.height(wanted.first), min(chain.height(wanted.last), chain.latest)
    base = ctx.backend.reads.base_height()
    if base > chain.first and first < base:
        raise PrunedHistory
    heights = _heights_to_trace(ctx, wanted, range(first, last + 1))
    matching = filter(wanted.matches, _of_range(ctx, heights))
    start = min(wanted.after, _MOST)
    count = _MOST if wanted.count is None else min(wanted.count, _MOST)
    return _encoded(list(islice(matching, start, start + count)))


def _heights_to_trace(ctx: Context, wanted: TraceFilter, span: range) -> Iterator[int]:
    """Yield the heights of blocks that may match; raise :exc:`.errors.EvmError` for too
    many."""
    addresses = {bytes.fromhex(each[2:]) for each in wanted.senders | wanted.recipients}
    recorded = evm_state(ctx).calls_recorded_since()
    if recorded is not None and recorded <= max(span.start, reader(ctx).first) and addresses:
        heights = heights_of(ctx, addresses, span)
    elif len(span) - 1 > _MAX_BLOCKS:
        # anvil: text of this error.
        raise EvmError(
            f"block range too large, currently limited to {_MAX_BLOCKS}", code=INVALID_PARAMS
        )
    else:
        heights = iter(span)
    for number, height in enumerate(heights):
        if number > _MAX_BLOCKS:
            raise EvmError(
                f"the addresses have transactions in more than {_MAX_BLOCKS} blocks; pass"
                " count, or a shorter range of blocks",
                code=INVALID_PARAMS,
            )
        yield height


def _of_range(ctx: Context, heights: Iterable[int]) -> Iterator[Trace]:
    budget, left = SearchBudget(ctx.settings), ctx.settings.max_response_bytes
    for height in heights:
        budget.spend(1)
        for raw in _of_block(ctx, reader(ctx).block_at(height)):
            trace = bytes(raw)
            left -= len(trace)
            if left < 0:
                raise EvmError(
                    "the traces are too large for one response; request fewer blocks or raise"
                    " NODERPC_MAX_RESPONSE_BYTES"
                )
            yield jsoncodec.decode(trace)


class TraceKinds(ParamField):
    """The kinds of traces to make: ``trace``, ``stateDiff`` and ``vmTrace``."""

    json_type = "array"

    def from_json(self, value: Any) -> TraceConfig:
        """Return the tracer of these kinds; raise :exc:`ValueError` for an unknown kind."""
        if not isinstance(value, list):
            raise mismatch(value, "[]string")
        for each in value:
            if each not in KINDS:
                known = ", ".join(KINDS)
                raise ValueError(f"expected any of {known}, got {str(each)[:50]!r}")
        return TraceConfig(logger=Replay(frozenset(value)))


def _kinds() -> Any:
    """Return the dataclass field of a ``types`` parameter."""
    return param(TraceKinds(), doc="Kinds of traces, of trace, stateDiff and vmTrace.")


@dataclass(frozen=True, slots=True)
class ReplayParams(BlockParams):
    """Parameters of ``trace_replayBlockTransactions``."""

    types: TraceConfig = _kinds()


@dataclass(frozen=True, slots=True)
class ReplayTransactionParams(Params):
    """Parameters of ``trace_replayTransaction``."""

    hash: bytes = param(Hash(), doc="Ethereum hash of the transaction.")
    types: TraceConfig = _kinds()


def replay_block(ctx: Context, params: ReplayParams) -> jsoncodec.Raw:
    """The output and the requested traces of each transaction of a block."""
    found = reader(ctx).block(params.block)
    replays = _traces(ctx, found, params.types)
    # Add the hash to the encoded object: a decoder would refuse a vmTrace of hundreds of nested
    # calls.
    hashes = (hex.data(tx.transaction.hash) for tx in found.transactions) if found else ()
    named = (
        bytes(replay)[:-1] + f',"transactionHash":"{own}"}}'.encode()
        for own, replay in zip(hashes, replays, strict=False)
    )
    return jsoncodec.Raw(b"[" + b",".join(named) + b"]")


def replay_transaction(ctx: Context, params: ReplayTransactionParams) -> jsoncodec.Raw:
    """The output and the requested traces of a transaction."""
    return debug.transaction(ctx, debug.TraceTransactionParams(params.hash, params.types))


@dataclass(frozen=True, slots=True)
class TraceCallParams(Params):
    """Parameters of ``trace_call``."""

    call: CallArgs = param(CallObject(), doc="Sender, recipient, value, data, gas and fees.")
    types: TraceConfig = _kinds()
    block: Height | ByHash = state_block()
    overrides: Overrides | None = param(
        StateOverride(), default=None, doc="Overrides of accounts."
    )
    block_overrides: BlockChanges = param(
        BlockOverride(), default=_UNCHANGED, doc="Overrides of the block's header."
    )


def call(ctx: Context, params: TraceCallParams) -> jsoncodec.Raw:
    """The output and the requested traces of a call."""
    calls = [(params.call, params.types)]
    (trace,) = _called(ctx, calls, params.block, params.overrides, params.block_overrides)
    return trace


class TracedCalls(ParamField):
    """A list of calls, each with its kinds of traces."""

    json_type = "array"

    def from_json(self, value: Any) -> list[tuple[CallArgs, TraceConfig]]:
        """Return the calls; raise :exc:`ValueError` for something else or too many."""
        if not isinstance(value, list):
            raise mismatch(value, "[][]any")
        if len(value) > _MAX_CALLS:
            raise ValueError(f"expected at most {_MAX_CALLS} calls, got {len(value)}")
        return [_pair(each) for each in in_turns(value)]


def _pair(value: Any) -> tuple[CallArgs, TraceConfig]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError('expected a list with a call and its kinds, such as [{}, ["trace"]]')
    return CallObject().from_json(value[0]), TraceKinds().from_json(value[1])


@dataclass(frozen=True, slots=True)
class TraceCallManyParams(Params):
    """Parameters of ``trace_callMany``."""

    calls: list[tuple[CallArgs, TraceConfig]] = param(
        TracedCalls(), doc="List of up to 1,000 calls, each with its kinds of traces."
    )
    block: Height | ByHash = state_block()


def call_many(ctx: Context, params: TraceCallManyParams) -> jsoncodec.Raw:
    """The output and the requested traces of calls; each is executed on the state after the
    previous one."""
    return _encoded(_called(ctx, params.calls, params.block))


def _called(
    ctx: Context,
    calls: list[tuple[CallArgs, TraceConfig]],
    block_id: Height | ByHash,
    overrides: Overrides | None = None,
    changes: BlockChanges = _UNCHANGED,
) -> list[jsoncodec.Raw]:
    header, root = header_and_root(ctx, block_id)
    environment = environment_of(ctx, header, changes)
    traced = tuple(
        TracedCall(*capped_call(ctx, args, environment), debug.tracing_of(ctx, config))
        for args, config in calls
    )
    return debug.run_traces(ctx, TraceCalls(root, traced, overrides or {})) if traced else []


class RawBytes(Data):
    """Bytes as a hex string, or as a list of numbers, which alloy sends."""

    def from_json(self, value: Any) -> bytes:
        """Return the bytes; raise :exc:`ValueError` with geth's text."""
        if isinstance(value, list):
            try:
                return bytes(value)
            except (TypeError, ValueError):
                raise mismatch(value, self.go_type) from None
        found: bytes = super().from_json(value)
        return found


@dataclass(frozen=True, slots=True)
class TraceRawParams(RawTransaction):
    """Parameters of ``trace_rawTransaction``."""

    raw: bytes = param(RawBytes(), doc="Encoded signed transaction.")
    types: TraceConfig = _kinds()
    block: Height | ByHash = state_block()


def raw_transaction(ctx: Context, params: TraceRawParams) -> jsoncodec.Raw:
    """The output and the requested traces of a signed transaction, which is not sent."""
    tx = read_raw(ctx, params)
    header, root = header_and_root(ctx, params.block)
    environment, tracing = environment_of(ctx, header), debug.tracing_of(ctx, params.types)
    job = TraceBlock(root, environment, ZERO_HASH, (tx.raw,), 0, tracing)
    (trace,) = debug.run_traces(ctx, job)
    return trace
