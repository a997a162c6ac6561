"""Handler of ``eth_getLogs``, with limits on blocks, results and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from ....errors import InvalidParams, ResultNotFound
from ....jsonrpc.context import Context
from ....jsonrpc.params import Params, param
from ... import index
from ...domain.records import Log, LogSearch
from ...protocol.blocks import Block
from ...settings import EthereumSettings
from ..codec.log_filter import FilterObject, LogFilter
from ..codec.params import Tag
from ..errors import EvmError, PrunedHistory
from ..reader import Reader, SearchBudget, reader

_REVERSED = "invalid block range params"


@dataclass(frozen=True, slots=True)
class LogFilterParams(Params):
    """Parameters of ``eth_getLogs`` and ``eth_newFilter``."""

    filter: LogFilter = param(FilterObject(), doc="Addresses, topics, and blocks.")


def get_logs(ctx: Context, params: LogFilterParams) -> tuple[Log, ...]:
    """The logs that match a filter, in the order of their emission."""
    return logs_of(ctx, params.filter)


def logs_of(ctx: Context, log_filter: LogFilter) -> tuple[Log, ...]:
    """Return all logs that match a filter; raise :exc:`.errors.EvmError` if there are more
    than NODERPC_EVM_LOGS_CAP."""
    chain = reader(ctx)
    if log_filter.block_hash is not None:
        block = chain.by_hash(log_filter.block_hash)
        if block is None:
            raise EvmError("unknown block")
        return _capped(ctx, [_matching(block, log_filter)])
    span = heights(ctx, chain, log_filter)
    if not span:
        return ()
    with scan_slot(ctx, span):
        return _capped(ctx, (logs for _, logs in logs_by_height(ctx, log_filter, span)))


def scan_slot(ctx: Context, span: range) -> AbstractContextManager[None]:
    """Return a context that limits concurrent searches; a single block is not limited."""
    return ctx.scans.acquire() if len(span) > 1 else nullcontext()


def logs_by_height(
    ctx: Context, log_filter: LogFilter, span: range
) -> Iterator[tuple[int, tuple[Log, ...]]]:
    """Yield height and matching logs of each block that may have any; raise
    :exc:`~flask_noderpc.errors.SearchTooCostly`."""
    chain, budget = reader(ctx), SearchBudget(ctx.settings)
    search = LogSearch(log_filter.addresses, log_filter.topics, span[0], span[-1])
    for height in index.log_heights(ctx.backend, search, budget.limits):
        block = chain.block_at(height)
        if block is None and height < ctx.backend.reads.base_height():
            raise PrunedHistory
        if block is None:
            # Raise an error, as a client that gets no logs would not ask for this block again.
            raise ResultNotFound(f"the block at height {height} can't be read yet; try again")
        budget.spend(1 + len(block.receipts))
        yield height, _matching(block, log_filter)


def _matching(block: Block, log_filter: LogFilter) -> tuple[Log, ...]:
    return tuple(filter(log_filter.matches, block.logs))


def _capped(ctx: Context, blocks: Iterable[tuple[Log, ...]]) -> tuple[Log, ...]:
    limit = ctx.settings.of(EthereumSettings).evm_logs_cap
    found: list[Log] = []
    for logs in blocks:
        found += logs
        if len(found) > limit:
            raise EvmError(
                f"query returned more than {limit} results; search fewer blocks or raise"
                " NODERPC_EVM_LOGS_CAP"
            )
    return tuple(found)


def heights(ctx: Context, chain: Reader, log_filter: LogFilter) -> range:
    """Return the heights that a filter selects; raise
    :exc:`~flask_noderpc.errors.InvalidParams` for an invalid range."""
    _refuse_pending(log_filter)
    first, last = chain.height(log_filter.first), chain.height(log_filter.last)
    lowest = ctx.backend.reads.lowest_readable()
    if log_filter.first is Tag.EARLIEST and first > chain.first:
        # Start at the lowest height that the store or an upstream node can read now, as the
        # store may have pruned blocks meanwhile.
        first = lowest
    if first > last:
        raise InvalidParams(_REVERSED)
    if last > chain.latest:
        raise InvalidParams("block range extends beyond current head block")
    _refuse_long(ctx, first, last)
    # Block 0 has no logs.
    first = max(first, chain.first)
    if first < lowest:
        raise PrunedHistory
    return range(first, last + 1)


def refuse_range(ctx: Context, log_filter: LogFilter) -> None:
    """Raise ``InvalidParams`` for a range in which no new logs can appear.

    geth: eth/filters/filter_system.go. The end of the range may be in the future.
    """
    _refuse_pending(log_filter)
    first = 0 if log_filter.first is Tag.EARLIEST else log_filter.first
    match first, log_filter.last:
        case int(), int(last):
            if first > last:
                raise InvalidParams(_REVERSED)
            _refuse_long(ctx, first, last)
        case Tag(), int() | Tag.EARLIEST:
            # New logs appear after the latest block, but the range ends before it.
            raise InvalidParams(_REVERSED)


def _refuse_pending(log_filter: LogFilter) -> None:
    if Tag.PENDING in (log_filter.first, log_filter.last):
        raise InvalidParams("pending logs are not supported")


def _refuse_long(ctx: Context, first: int, last: int) -> None:
    limit = ctx.settings.of(EthereumSettings).evm_block_range_cap
    # Block 0 directly precedes the first block, even if that has another height than 1.
    if last - max(first, reader(ctx).first - 1) > limit:
        raise InvalidParams(
            f"exceed maximum block range {limit}",
            "search fewer blocks or raise NODERPC_EVM_BLOCK_RANGE_CAP",
        )
