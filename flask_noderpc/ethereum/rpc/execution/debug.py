"""Handlers of geth's ``debug`` namespace: raw blocks, and traces.

geth: eth/tracers/api.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .... import jsoncodec
from ....errors import ExecutionTimedOut, InvalidTransaction, TracerFailed
from ....jsonrpc.context import Context
from ....jsonrpc.params import NoParams, Params, param
from ....protocol.secp256k1eth import keccak
from ...domain.execution import CallArgs, Overrides
from ...domain.records import Header
from ...engine.base import Job
from ...engine.jobs import Trace, TraceBlock, TraceCalls, TracedCall, Tracing
from ...protocol.blocks import Block, BlockView, decode_block, raw_block
from ...protocol.consensus import encode_header
from ...protocol.execution import encode_receipt
from ...protocol.rlp import Malformed
from ..codec.call_objects import CallObject
from ..codec.params import BlockId, BlockNumber, ByHash, Data, Hash, Height, Tag, Uint64
from ..codec.trace_config import CallConfig, Config, TraceConfig
from ..errors import EvmError, PrunedHistory
from ..queries.blocks import BlockParams, TransactionParams, find, raw_transaction_by_hash
from ..reader import reader
from .calls import capped_call, environment_of, run_job
from .state import evm_state, root_of


@dataclass(frozen=True, slots=True)
class PreimageParams(Params):
    """Parameters of ``debug_preimage``."""

    hash: bytes = param(Hash(), doc="Keccak-256 hash of the bytes.")


def header_bytes(ctx: Context, params: BlockParams) -> bytes:
    """A header's RLP; its Keccak-256 hash differs from the block hash, which is CometBFT's."""
    return encode_header(_required_block(ctx, params).header)


def block_bytes(ctx: Context, params: BlockParams) -> bytes:
    """A block's RLP."""
    return raw_block(_required_block(ctx, params))


def receipt_bytes(ctx: Context, params: BlockParams) -> tuple[bytes, ...]:
    """The canonical bytes of each receipt of a block."""
    return tuple(map(encode_receipt, _required_block(ctx, params).receipts))


def transactions_bytes(ctx: Context, params: BlockParams) -> tuple[bytes, ...]:
    """The canonical bytes of each transaction of a block."""
    return tuple(_required_block(ctx, params).raws)


def preimage(ctx: Context, params: PreimageParams) -> bytes:
    """The bytes with a Keccak-256 hash, if the state has them: a code or a trie node, and on a
    development chain an address or a storage slot."""
    found = evm_state(ctx).record(params.hash)
    if found is None or keccak(found) != params.hash:
        # geth: eth/api_debug.go.
        raise EvmError("unknown preimage")
    return found


def transaction_bytes(ctx: Context, params: TransactionParams) -> bytes:
    """A transaction's canonical bytes; empty if the transaction is unknown."""
    return raw_transaction_by_hash(ctx, params) or b""


@dataclass(frozen=True, slots=True)
class BlockNumberParams(Params):
    """Parameters of methods that take a block's height as a JSON number."""

    height: int = param(Uint64(), doc="Height of the block.")


def header_at(ctx: Context, params: BlockNumberParams) -> bytes:
    """A header's RLP; this method name is Ethermint's."""
    return encode_header(_at(ctx, params).header)


def block_at(ctx: Context, params: BlockNumberParams) -> bytes:
    """A block's RLP; this method name is Ethermint's."""
    return raw_block(_at(ctx, params))


def print_block(ctx: Context, params: BlockNumberParams) -> str:
    """A block with complete transactions, as indented JSON."""
    return jsoncodec.pretty(
        jsoncodec.decode(ctx.encode(BlockView(_at(ctx, params), True)))
    ).decode()


def bad_blocks(ctx: Context, params: NoParams) -> tuple[Block, ...]:
    """Always empty: invalid blocks are never stored."""
    return ()


def _at(ctx: Context, params: BlockNumberParams) -> Block:
    found = reader(ctx).block(params.height)
    if found is None:
        # geth: internal/ethapi.
        raise EvmError(f"block #{params.height} not found")
    return found


def _required_block(ctx: Context, params: BlockParams) -> Block:
    found = reader(ctx).block(params.block)
    if found is None:
        # geth: eth/api_debug.go.
        raise EvmError("block not found")
    return found


_ON_PENDING = "tracing on top of pending is not supported"
_PLAIN = TraceConfig()


@dataclass(frozen=True, slots=True)
class TraceTransactionParams(Params):
    """Parameters of ``debug_traceTransaction``."""

    hash: bytes = param(Hash(), doc="Ethereum hash of the transaction.")
    config: TraceConfig = param(Config(), default=_PLAIN, doc="Tracer and its options.")


@dataclass(frozen=True, slots=True)
class TraceNumberParams(Params):
    """Parameters of ``debug_traceBlockByNumber``."""

    block: Height = param(BlockNumber(), doc="Height or tag of the block.")
    config: TraceConfig = param(Config(), default=_PLAIN, doc="Tracer and its options.")


@dataclass(frozen=True, slots=True)
class TraceHashParams(Params):
    """Parameters of ``debug_traceBlockByHash``."""

    hash: bytes = param(Hash(), doc="Hash of the block.")
    config: TraceConfig = param(Config(), default=_PLAIN, doc="Tracer and its options.")


@dataclass(frozen=True, slots=True)
class TraceBytesParams(Params):
    """Parameters of ``debug_traceBlock``."""

    block: bytes = param(Data(), doc="The block's RLP.")
    config: TraceConfig = param(Config(), default=_PLAIN, doc="Tracer and its options.")


@dataclass(frozen=True, slots=True)
class TraceCallParams(Params):
    """Parameters of ``debug_traceCall``."""

    call: CallArgs = param(CallObject(), doc="Sender, recipient, value, data, gas and fees.")
    block: Height | ByHash = param(BlockId(), doc="Block after which the call is executed.")
    config: TraceConfig = param(
        CallConfig(), default=_PLAIN, doc="Tracer, its options, and overrides."
    )


def transaction(ctx: Context, params: TraceTransactionParams) -> jsoncodec.Raw:
    """A trace of a committed transaction."""
    evm_state(ctx)
    receipt = find(ctx, params.hash)
    if receipt is None:
        raise EvmError("transaction not found")
    block = reader(ctx).block_at(receipt.inclusion.block_number)
    if block is None:
        raise PrunedHistory
    last = receipt.inclusion.index
    return _traced(ctx, block.header, _raws(block)[: last + 1], last, params.config)[0]


def block_by_number(ctx: Context, params: TraceNumberParams) -> tuple[dict[str, Any], ...]:
    """Traces of all transactions of a block, by its height or tag."""
    evm_state(ctx)
    return _block(ctx, _numbered(ctx, params.block), params.config)


def _numbered(ctx: Context, number: Height) -> Block:
    if number is Tag.PENDING:
        raise EvmError(_ON_PENDING)
    found = reader(ctx).block(number)
    if found is None:
        raise EvmError(f"block #{number} not found")
    return found


def block_by_hash(ctx: Context, params: TraceHashParams) -> tuple[dict[str, Any], ...]:
    """Traces of all transactions of a block, by its hash."""
    evm_state(ctx)
    return _block(ctx, _hashed(ctx, params.hash), params.config)


def _hashed(ctx: Context, block_hash: bytes) -> Block:
    found = reader(ctx).by_hash(block_hash)
    if found is None:
        raise EvmError(f"block 0x{block_hash.hex()} not found")
    return found


def _block(ctx: Context, block: Block, config: TraceConfig) -> tuple[dict[str, Any], ...]:
    return _listed(ctx, block.header, _raws(block), config)


def block_of_bytes(ctx: Context, params: TraceBytesParams) -> tuple[dict[str, Any], ...]:
    """Traces of the transactions of a block that the caller sends as RLP."""
    evm_state(ctx)
    try:
        header, txs = decode_block(params.block)
    except Malformed as error:
        raise EvmError(f"could not decode block: {error}") from None
    if header.number:
        _check_parent(ctx, header)
    return _listed(ctx, header, txs, params.config)


def _check_parent(ctx: Context, header: Header) -> None:
    chain = reader(ctx)
    parent = chain.block_at(header.number - 1) if header.number <= chain.latest + 1 else None
    if parent is None or parent.header.hash != header.parent_hash:
        raise EvmError(f"block 0x{header.parent_hash.hex()} not found")


def traces(ctx: Context, block: Block, config: TraceConfig) -> list[jsoncodec.Raw]:
    """Return a trace of each transaction of a block."""
    return _traced(ctx, block.header, _raws(block), 0, config)


def _listed(
    ctx: Context, header: Header, txs: tuple[bytes, ...], config: TraceConfig
) -> tuple[dict[str, Any], ...]:
    pairs = zip(txs, _outcomes_of(ctx, header, txs, 0, config), strict=True)
    return tuple({"txHash": keccak(raw), **_result_or_error(trace)} for raw, trace in pairs)


def _result_or_error(trace: Trace) -> dict[str, Any]:
    if isinstance(trace, TracerFailed):
        return {"error": trace.text_with_hint}
    return {"result": jsoncodec.Raw(trace)}


def _raws(block: Block) -> tuple[bytes, ...]:
    return tuple(tx.transaction.raw for tx in block.transactions)


def _traced(
    ctx: Context, header: Header, txs: tuple[bytes, ...], first: int, config: TraceConfig
) -> list[jsoncodec.Raw]:
    """Return traces of a block's transactions ``txs``, from the one with index ``first``
    on."""
    return _successful(_outcomes_of(ctx, header, txs, first, config))


def _outcomes_of(
    ctx: Context, header: Header, txs: tuple[bytes, ...], first: int, config: TraceConfig
) -> tuple[Trace, ...]:
    if header.number == 0:
        raise EvmError("genesis is not traceable")
    root = _root_before(ctx, header)
    environment = environment_of(ctx, header)
    block_hash = header.hash or keccak(encode_header(header))
    job = TraceBlock(root, environment, block_hash, txs, first, tracing_of(ctx, config))
    return _outcomes(ctx, job) if txs else ()


def _root_before(ctx: Context, header: Header) -> bytes:
    """Return the state root before a block's transactions are executed."""
    first = header.number <= reader(ctx).first
    return root_of(ctx, 0 if first else header.number - 1)


def call(ctx: Context, params: TraceCallParams) -> jsoncodec.Raw:
    """A trace of a call, after a block or after some of its transactions."""
    evm_state(ctx)
    block_id, config = params.block, params.config
    block = (
        _hashed(ctx, block_id.hash)
        if isinstance(block_id, ByHash)
        else _numbered(ctx, block_id)
    )
    around = environment_of(ctx, block.header)
    root, txs = root_of(ctx, block.header.number), _raws(block)
    if config.tx_index is None:
        txs = ()
    elif block.header.number == 0:
        raise EvmError("no transaction in genesis")
    elif config.tx_index > len(txs) or not txs:
        shown = f"0x{(block.header.hash or b'').hex()}"
        raise EvmError(f"transaction index {config.tx_index} out of range for block {shown}")
    else:
        root, txs = _root_before(ctx, block.header), txs[: config.tx_index]
    environment = environment_of(ctx, block.header, config.block_overrides)
    called = TracedCall(*capped_call(ctx, params.call, environment), tracing_of(ctx, config))
    overrides: Overrides = config.overrides
    begun = None if config.tx_index is None else around
    (trace,) = run_traces(ctx, TraceCalls(root, (called,), overrides, txs, begun))
    return trace


def tracing_of(ctx: Context, config: TraceConfig) -> Tracing:
    """Return the tracer with its options and the limit of the response's size."""
    max_bytes = ctx.settings.max_response_bytes
    return Tracing(config.configured_tracer, max_bytes, config.seconds)


def run_traces(ctx: Context, job: Job[tuple[Trace, ...]]) -> list[jsoncodec.Raw]:
    """Run a job and return its traces as JSON; raise a timeout or an invalid transaction as
    :exc:`.errors.EvmError`."""
    return _successful(_outcomes(ctx, job))


def _successful(traces: Iterable[Trace]) -> list[jsoncodec.Raw]:
    """Return traces as JSON; raise the first error of a tracer's code."""
    made = list[jsoncodec.Raw]()
    for trace in traces:
        if isinstance(trace, TracerFailed):
            raise trace
        made.append(jsoncodec.Raw(trace))
    return made


def _outcomes(ctx: Context, job: Job[tuple[Trace, ...]]) -> tuple[Trace, ...]:
    try:
        return run_job(ctx, job)
    except InvalidTransaction as error:
        raise EvmError(f"tracing failed: {error}") from None
    except ExecutionTimedOut as error:
        raise EvmError(f"execution timeout ({error.hint})") from None
