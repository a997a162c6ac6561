"""Handler of ``eth_simulateV1``: simulated blocks of calls on top of an existing block.

execution-apis: src/eth/execute.yaml; geth: internal/ethapi/simulate.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .... import jsoncodec
from ....concurrency import in_turns
from ....errors import ExecutionTimedOut, InvalidTransaction
from ....jsonrpc.context import Context
from ....jsonrpc.params import Params, param
from ....wire.params import ParamField
from ...domain.execution import BlockChanges, CallArgs
from ...domain.records import Header, Inclusion, Log
from ...engine.simulation import CallBlock, CallOutcome, Rules, Simulate, SimulatedBlock
from ...protocol.blocks import Block, BlockView
from ...settings import EthereumSettings
from ..codec.call_objects import BlockOverride, CallObject, StateOverride
from ..codec.params import ByHash, Height, MemberNames, Tag, mismatch
from ..errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LIMIT_EXCEEDED,
    NUMBER_INVALID,
    REVERTED,
    TIME_INVALID,
    VM_ERROR,
    EvmError,
)
from ..reader import chain_id_of
from .calls import revert_error, run_job
from .state import evm_state, header_and_root, state_block

# geth: internal/ethapi, maxSimulateBlocks and other limits; error codes from errors.go.
_MAX_BLOCKS, _MAX_CALLS, _MAX_TOTAL_CALLS = 256, 5_000, 10_000
_SECONDS = 12
_REFUSALS = {
    "nonce too low": -38010,
    "nonce too high": -38011,
    "intrinsic gas too low": -38013,
    "insufficient gas for floor": -38013,
    "insufficient funds": -38014,
    "block gas limit reached": -38015,
    "max initcode size exceeded": -38025,
    "max fee per gas less than": -38012,
}


@dataclass(frozen=True, slots=True)
class Simulation:
    """Options of ``eth_simulateV1``."""

    blocks: tuple[CallBlock, ...]
    trace_transfers: bool
    validation: bool
    full_transactions: bool


_OPTIONS = "blockStateCalls", "traceTransfers", "validation", "returnFullTransactions"
_PAYLOAD = MemberNames(*_OPTIONS)
_BLOCK = MemberNames("blockOverrides", "stateOverrides", "calls")


class SimulationPayload(ParamField):
    """Payload of ``eth_simulateV1``: blocks of calls; unknown members are ignored."""

    json_type = "object"

    def from_json(self, value: Any) -> Simulation:
        """Return blocks and options; raise :exc:`ValueError` with geth's text."""
        if not isinstance(value, dict):
            raise mismatch(value, "ethapi.simOpts")
        value = _PAYLOAD.of(value)
        blocks = _list(value.get("blockStateCalls"), "[]ethapi.simBlock")
        if len(blocks) > _MAX_BLOCKS:
            raise EvmError("too many blocks", code=LIMIT_EXCEEDED)
        _check_counts(blocks)
        return Simulation(
            tuple(map(_block, blocks)),
            trace_transfers=_switch(value.get("traceTransfers")),
            validation=_switch(value.get("validation")),
            full_transactions=_switch(value.get("returnFullTransactions")),
        )


def _list(value: Any, go_type: str) -> list[Any]:
    if not isinstance(value, list | None):
        raise mismatch(value, go_type)
    return value or []


def _switch(value: Any) -> bool:
    if not isinstance(value, bool | None):
        raise mismatch(value, "bool")
    return bool(value)


def _check_counts(blocks: Sequence[Any]) -> None:
    """Raise :exc:`.errors.EvmError` for too many calls, before they are parsed, as parsing a
    million takes long."""
    total = 0
    for block in blocks:
        calls = _BLOCK.of(block).get("calls") if isinstance(block, dict) else None
        count = len(calls) if isinstance(calls, list) else 0
        total += count
        if count > _MAX_CALLS:
            text = f"too many calls in block: {count} > {_MAX_CALLS}"
            raise EvmError(text, code=LIMIT_EXCEEDED)
        if total > _MAX_TOTAL_CALLS:
            raise EvmError(f"too many calls: {total} > {_MAX_TOTAL_CALLS}", code=LIMIT_EXCEEDED)


def _block(value: Any) -> CallBlock:
    if not isinstance(value, dict):
        raise mismatch(value, "ethapi.simBlock")
    value = _BLOCK.of(value)
    changes, overrides = value.get("blockOverrides"), value.get("stateOverrides")
    given = _list(value.get("calls"), "[]ethapi.TransactionArgs")
    calls: tuple[CallArgs, ...] = tuple(map(CallObject().from_json, in_turns(given)))
    return CallBlock(
        BlockChanges() if changes is None else BlockOverride().from_json(changes),
        {} if overrides is None else StateOverride().from_json(overrides),
        calls,
    )


@dataclass(frozen=True, slots=True)
class SimulationParams(Params):
    """Parameters of ``eth_simulateV1``."""

    payload: Simulation = param(SimulationPayload(), doc="Blocks of calls, and options.")
    block: Height | ByHash = state_block()


def simulate(ctx: Context, params: SimulationParams) -> tuple[jsoncodec.Raw, ...]:
    """Simulated blocks on top of an existing block, with the result of each call."""
    evm_state(ctx)
    payload = params.payload
    if not payload.blocks:
        raise EvmError("empty input", code=INVALID_PARAMS)
    # The state after pending transactions is not computed, so use the latest block.
    number_or_hash = Tag.LATEST if params.block is Tag.PENDING else params.block
    base, root = header_and_root(ctx, number_or_hash)
    settings = ctx.settings
    rules = Rules(
        chain_id=chain_id_of(ctx, base.number),
        code_size_limit=settings.of(EthereumSettings).evm_code_size_limit,
        forks=evm_state(ctx).forks(),
        gas_cap=settings.of(EthereumSettings).evm_gas_cap,
        validation=payload.validation,
        trace_transfers=payload.trace_transfers,
        max_bytes=settings.max_response_bytes,
    )
    blocks = tuple(_chained(base, payload.blocks))
    made = _run(ctx, Simulate(root, base, blocks, rules))
    return tuple(
        _encode_block(ctx, each, full_transactions=payload.full_transactions) for each in made
    )


def _chained(base: Header, blocks: Sequence[CallBlock]) -> Iterator[CallBlock]:
    """Yield the blocks with their numbers and times, and empty blocks for omitted numbers."""
    number, timestamp = base.number, base.timestamp
    for block in blocks:
        block_number = number + 1 if block.changes.number is None else block.changes.number
        if block_number <= number:
            text = f"block numbers must be in order: {block_number} <= {number}"
            raise EvmError(text, code=NUMBER_INVALID)
        if block_number - base.number > _MAX_BLOCKS:
            raise EvmError("too many blocks", code=LIMIT_EXCEEDED)
        for between in range(number + 1, block_number):
            timestamp += _SECONDS
            yield CallBlock(BlockChanges(number=between, timestamp=timestamp), {}, ())
        given = block.changes.timestamp
        if given is not None and given <= timestamp:
            text = f"block timestamps must be in order: {given} <= {timestamp}"
            raise EvmError(text, code=TIME_INVALID)
        number, timestamp = block_number, timestamp + _SECONDS if given is None else given
        changes = replace(block.changes, number=number, timestamp=timestamp)
        yield replace(block, changes=changes)


def _run(ctx: Context, job: Simulate) -> tuple[SimulatedBlock, ...]:
    try:
        return run_job(ctx, job)
    except ExecutionTimedOut as error:
        seconds = f"{ctx.settings.of(EthereumSettings).evm_timeout:g}s"
        raise EvmError(f"execution aborted (timeout = {seconds}) ({error.hint})") from None
    except InvalidTransaction as error:
        text = str(error)
        codes = (code for start, code in _REFUSALS.items() if text.startswith(start))
        raise EvmError(text, code=next(codes, INTERNAL_ERROR)) from None


def _encode_block(
    ctx: Context, simulated: SimulatedBlock, *, full_transactions: bool
) -> jsoncodec.Raw:
    block = jsoncodec.decode(ctx.encode(BlockView(simulated.block, full_transactions)))
    calls = tuple(_calls(simulated.block, simulated.calls))
    block["calls"] = jsoncodec.Raw(ctx.encode(calls))
    return jsoncodec.Raw(jsoncodec.encode(block))


def _calls(block: Block, calls: Sequence[CallOutcome]) -> Iterator[dict[str, Any]]:
    log_index = 0
    for receipt, called in zip(block.receipts, calls, strict=True):
        outcome = called.outcome
        logs = _logs(called, receipt.transaction.hash, receipt.inclusion, log_index)
        log_index += len(logs)
        shown: dict[str, Any] = {
            "returnData": b"" if outcome.error else outcome.output,
            "logs": logs,
            "gasUsed": outcome.gas_used,
            "maxUsedGas": outcome.max_used_gas,
            "status": int(not outcome.error),
        }
        if outcome.error:
            shown["error"] = _error(called)
        yield shown


def _logs(
    called: CallOutcome, tx_hash: bytes, inclusion: Inclusion, start: int
) -> tuple[Log, ...]:
    return tuple(
        Log(log.address, log.topics, log.data, index, tx_hash, inclusion)
        for index, log in enumerate(called.logs, start)
    )


def _error(called: CallOutcome) -> dict[str, Any]:
    outcome = called.outcome
    if not outcome.reverted:
        return {"code": jsoncodec.Raw(b"%d" % VM_ERROR), "message": outcome.error}
    error = revert_error(outcome.output)
    return {
        "code": jsoncodec.Raw(b"%d" % REVERTED),
        "message": error.text_with_hint,
        "data": error.data,
    }
