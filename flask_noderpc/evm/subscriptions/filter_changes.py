"""Changes that a filter has not delivered yet.

A poll tells of so many blocks, logs or transactions and says how far it went, and the next one
goes on from there: a client that was away for long polls more often, and misses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...domain.ethereum import Log, PlacedTransaction
from ...domain.search import FilterKind, PolledFilter
from ...errors import SearchTooCostly
from ...jsonrpc.context import Context
from ...protocol.ethereum.blocks import pending_transaction
from ..codec.log_filter import LogFilter, criteria_of
from ..queries.logs import logs_by_height, turn
from ..reader import reader

Changes = tuple[tuple[Any, ...], int]
"""Changes, and the cursor behind them."""

# Of one poll. Transactions are cut by their bytes as well, and read so many at a time.
_MOST_BLOCKS = 1_000
_MOST_PENDING = 1_000
_PENDING_SLICE = 100


def changes(ctx: Context, polled: PolledFilter) -> Changes:
    """Return the changes, and the cursor behind them."""
    return _BY_KIND[polled.kind](ctx, polled)


def _new_heights(ctx: Context, polled: PolledFilter) -> range:
    latest = reader(ctx).latest
    first = max(polled.cursor + 1, ctx.backend.base_height())
    return range(first, min(latest, first + _MOST_BLOCKS - 1) + 1)


def _blocks(ctx: Context, polled: PolledFilter) -> Changes:
    span = _new_heights(ctx, polled)
    if not span:
        return (), span.start - 1
    metas = ctx.backend.block_metas(span[0], span[-1])
    return tuple(meta.block_id.hash for meta in reversed(metas)), span[-1]


def _logs(ctx: Context, polled: PolledFilter) -> Changes:
    span = _new_heights(ctx, polled)
    if not span:
        return (), span.start - 1
    wanted = criteria_of(polled.criteria)
    # geth: new logs alone, and of these only those in the filter's own range.
    low = max(span[0], wanted.first) if isinstance(wanted.first, int) else span[0]
    high = min(span[-1], wanted.last) if isinstance(wanted.last, int) else span[-1]
    if low > high:
        return (), span[-1]
    own = range(low, high + 1)
    with turn(ctx, own):
        found, delivered = _page(ctx, wanted, own, polled.cursor)
    # Behind the end of its range there is nothing to tell.
    return found, span[-1] if delivered == high else delivered


def _page(ctx: Context, wanted: LogFilter, span: range, cursor: int) -> Changes:
    """Logs until there are enough, and how far that is."""
    found: list[Log] = []
    delivered = cursor
    try:
        for height, logs in logs_by_height(ctx, wanted, span):
            found += logs
            delivered = height
            if len(found) >= ctx.settings.evm_logs_cap:
                return tuple(found), delivered
    except SearchTooCostly:
        if delivered == cursor:
            raise
        return tuple(found), delivered
    return tuple(found), span[-1]


def _pending_hashes(ctx: Context, polled: PolledFilter) -> Changes:
    found, cursor = _pending(ctx, polled)
    return tuple(placed.transaction.hash for placed in found), cursor


def _pending(ctx: Context, polled: PolledFilter) -> tuple[tuple[PlacedTransaction, ...], int]:
    """The Ethereum transactions that came after the cursor, also those in a block by now."""
    found: list[PlacedTransaction] = []
    cursor, room = polled.cursor, ctx.settings.evm_max_body_bytes
    while len(found) < _MOST_PENDING and room > 0:
        arrived = ctx.backend.mempool.arrived_after(cursor, _PENDING_SLICE)
        if not arrived:
            break
        for _, raw in arrived:
            found += map(pending_transaction, reader(ctx).decoded(raw))
            room -= len(raw)
        cursor, _ = arrived[-1]
    return tuple(found), cursor


_BY_KIND: Mapping[FilterKind, Callable[[Context, PolledFilter], Changes]] = {
    FilterKind.LOGS: _logs,
    FilterKind.BLOCKS: _blocks,
    FilterKind.PENDING_HASHES: _pending_hashes,
    FilterKind.PENDING_TRANSACTIONS: _pending,
}
