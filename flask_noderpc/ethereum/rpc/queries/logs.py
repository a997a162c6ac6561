"""Handler of ``eth_getLogs``, with limits on blocks, results and time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from ....errors import InvalidParams, ResultNotFound, SearchTooCostly
from ....events.history import Place
from ....jsonrpc.context import Context
from ....jsonrpc.params import Params, param
from ... import index
from ...domain.records import Log, LogSearch
from ...protocol.blocks import Block
from ...settings import EthereumSettings
from ..codec.log_filter import FilterObject, LogFilter, LogQuery, LogQueryObject
from ..codec.params import Tag
from ..errors import EvmError, PrunedHistory
from ..reader import Reader, SearchBudget, reader

_REVERSED = "invalid block range params"


@dataclass(frozen=True, slots=True)
class LogFilterParams(Params):
    """Parameters of ``eth_newFilter``."""

    filter: LogFilter = param(FilterObject(), doc="Addresses, topics, and blocks.")


@dataclass(frozen=True, slots=True)
class LogQueryParams(Params):
    """Parameters of ``eth_getLogs``."""

    query: LogQuery = param(
        LogQueryObject(),
        doc="Addresses, topics, and blocks; ``limit``, ``cursor`` and ``order`` for a page.",
    )


def is_whole(ctx: Context, params: LogQueryParams) -> bool:
    """Return true unless the client asks for a page, which also depends on the time that its
    search takes."""
    return not params.query.is_paged


def get_logs(ctx: Context, params: LogQueryParams) -> tuple[Log, ...] | dict[str, Any]:
    """The logs that match a filter, in the order of their emission; with ``limit``, ``cursor``
    or ``order`` a page of them."""
    query = params.query
    return _page_of(ctx, query) if query.is_paged else logs_of(ctx, query.filter)


def _page_of(ctx: Context, query: LogQuery) -> dict[str, Any]:
    """Return a page of logs, and the cursor of the next page.

    Slices of the range are searched until the page is full, or until half of the search
    timeout has passed, so a page may have fewer logs, or none.
    """
    own, newest_first = ctx.settings.of(EthereumSettings), query.newest_first
    limit = min(query.limit or own.evm_logs_cap, own.evm_logs_cap)
    if _is_cut(ctx, query):
        raise PrunedHistory
    span = _unread(heights(ctx, reader(ctx), query.filter, is_limited=False), query)
    deadline = time.monotonic() + ctx.settings.search_timeout / 2
    found: list[Log] = []
    searched: Place | None = None
    with scan_slot(ctx, span):
        for part in _slices(span, own.evm_block_range_cap, newest_first=newest_first):
            if searched is not None and time.monotonic() > deadline:
                return _page(found, searched)
            try:
                for height, logs in logs_by_height(
                    ctx, query.filter, part, newest_first=newest_first
                ):
                    found += (log for log in logs if _is_after(query, log))
                    if len(found) > limit:
                        return _page(found[:limit], _place(found[limit - 1]))
                    searched = _end_of(height, newest_first=newest_first)
            except SearchTooCostly:
                if searched is None:
                    raise
                return _page(found, searched)
            searched = _end_of(part[0] if newest_first else part[-1], newest_first=newest_first)
    return _page(found, None)


def _page(found: list[Log], cursor: Place | None) -> dict[str, Any]:
    return {"logs": tuple(found), "cursor": None if cursor is None else str(cursor)}


def _end_of(height: int, *, newest_first: bool) -> Place:
    """Return the place after all logs of a block."""
    return Place(height, 0 if newest_first else _LAST_LOG)


# Greater than the index of any log in a block.
_LAST_LOG = 10**9 - 1


def _is_cut(ctx: Context, query: LogQuery) -> bool:
    """Return true if logs after the cursor were pruned."""
    if query.cursor is None or query.newest_first:
        return False
    unread = query.cursor.height + (query.cursor.position == _LAST_LOG)
    return unread < ctx.backend.reads.lowest_readable()


def _unread(span: range, query: LogQuery) -> range:
    """Return the part of a range that a cursor leaves."""
    if query.cursor is None:
        return span
    height = query.cursor.height
    if query.newest_first:
        return range(span.start, min(span.stop, height + 1))
    return range(max(span.start, height), span.stop)


def _slices(span: range, size: int, *, newest_first: bool) -> Iterator[range]:
    while span:
        if newest_first:
            part, span = span[-size:], span[:-size]
        else:
            part, span = span[:size], span[size:]
        yield part


def _place(log: Log) -> Place:
    return Place(log.inclusion.block_number, log.index)


def _is_after(query: LogQuery, log: Log) -> bool:
    if query.cursor is None:
        return True
    place = _place(log)
    return place < query.cursor if query.newest_first else place > query.cursor


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
    ctx: Context, log_filter: LogFilter, span: range, *, newest_first: bool = False
) -> Iterator[tuple[int, tuple[Log, ...]]]:
    """Yield height and matching logs of each block that may have any, with ``newest_first``
    last ones first; raise :exc:`~flask_noderpc.errors.SearchTooCostly`."""
    if not span:
        return
    chain, budget = reader(ctx), SearchBudget(ctx.settings)
    search = LogSearch(log_filter.addresses, log_filter.topics, span[0], span[-1])
    found = index.log_heights(ctx.backend, search, budget.limits)
    for height in reversed(found) if newest_first else found:
        block = chain.block_at(height)
        if block is None and height < ctx.backend.reads.base_height():
            raise PrunedHistory
        if block is None:
            # Raise an error, as a client that gets no logs would not ask for this block again.
            raise ResultNotFound(f"the block at height {height} can't be read yet; try again")
        budget.spend(1 + len(block.receipts))
        logs = _matching(block, log_filter)
        yield height, logs[::-1] if newest_first else logs


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


def heights(
    ctx: Context, chain: Reader, log_filter: LogFilter, *, is_limited: bool = True
) -> range:
    """Return the heights that a filter selects; raise
    :exc:`~flask_noderpc.errors.InvalidParams` for an invalid range, or one that is too
    long."""
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
    if is_limited:
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
