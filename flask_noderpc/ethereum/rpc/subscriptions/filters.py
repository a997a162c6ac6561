"""Polled filters: create, poll, uninstall, and the changes since the last poll.

A poll returns a limited number of blocks, logs or transactions, and the next poll continues
after them. A client that has not polled for long needs several polls, but misses nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ....domain.search import FilterKind, PolledFilter
from ....errors import FilterNotFound, SearchTooCostly
from ....jsonrpc.context import Context
from ....jsonrpc.params import NoParams, Params, param
from ...domain.records import Log, RPCTransaction
from ...protocol.blocks import pending_transaction
from ...settings import EthereumSettings
from ..codec.log_filter import LogFilter, criteria_of, criteria_text
from ..codec.params import Bool, Id
from ..queries.logs import LogFilterParams, logs_by_height, logs_of, refuse_range, scan_slot
from ..reader import reader

Changes = tuple[tuple[Any, ...], int]
"""Hashes, logs or transactions that are new, and the filter's cursor after them."""

# Maximum number of blocks and of transactions per poll; transactions are read in slices, and
# their total size in bytes is also limited.
_MAX_BLOCKS = 1_000
_MAX_PENDING = 1_000
_PENDING_SLICE = 100


def changes(ctx: Context, polled: PolledFilter) -> Changes:
    """Return what is new since the filter's cursor, and the cursor after it."""
    return _BY_KIND[polled.kind](ctx, polled)


def _new_heights(ctx: Context, polled: PolledFilter) -> range:
    latest = reader(ctx).latest
    first = max(polled.cursor + 1, ctx.backend.reads.base_height())
    return range(first, min(latest, first + _MAX_BLOCKS - 1) + 1)


def _blocks(ctx: Context, polled: PolledFilter) -> Changes:
    span = _new_heights(ctx, polled)
    if not span:
        return (), span.start - 1
    metas = ctx.backend.reads.block_metas(span[0], span[-1])
    return tuple(meta.block_id.hash for meta in reversed(metas)), span[-1]


def _logs(ctx: Context, polled: PolledFilter) -> Changes:
    span = _new_heights(ctx, polled)
    if not span:
        return (), span.start - 1
    log_filter = criteria_of(polled.criteria)
    # geth returns only new logs in the filter's own range of blocks.
    low = max(span[0], log_filter.first) if isinstance(log_filter.first, int) else span[0]
    high = min(span[-1], log_filter.last) if isinstance(log_filter.last, int) else span[-1]
    if low > high:
        return (), span[-1]
    span_in_range = range(low, high + 1)
    with scan_slot(ctx, span_in_range):
        found, delivered = _page(ctx, log_filter, span_in_range, polled.cursor)
    # Blocks after the end of its range can't match.
    return found, span[-1] if delivered == high else delivered


def _page(ctx: Context, log_filter: LogFilter, span: range, cursor: int) -> Changes:
    """Return logs up to NODERPC_EVM_LOGS_CAP, and the height of the last block searched."""
    found: list[Log] = []
    delivered = cursor
    try:
        for height, logs in logs_by_height(ctx, log_filter, span):
            found += logs
            delivered = height
            if len(found) >= ctx.settings.of(EthereumSettings).evm_logs_cap:
                return tuple(found), delivered
    except SearchTooCostly:
        if delivered == cursor:
            raise
        return tuple(found), delivered
    return tuple(found), span[-1]


def _pending_hashes(ctx: Context, polled: PolledFilter) -> Changes:
    found, cursor = _pending(ctx, polled)
    return tuple(placed.transaction.hash for placed in found), cursor


def _pending(ctx: Context, polled: PolledFilter) -> tuple[tuple[RPCTransaction, ...], int]:
    """Return the Ethereum transactions that arrived after the cursor, including those already
    in a block."""
    found: list[RPCTransaction] = []
    cursor, left = polled.cursor, ctx.settings.of(EthereumSettings).evm_max_body_bytes
    while len(found) < _MAX_PENDING and left > 0:
        arrived = ctx.backend.mempool.arrived_after(cursor, _PENDING_SLICE)
        if not arrived:
            break
        for _, raw in arrived:
            found += map(pending_transaction, reader(ctx).decode_pending(raw))
            left -= len(raw)
        cursor, _ = arrived[-1]
    return tuple(found), cursor


_BY_KIND: Mapping[FilterKind, Callable[[Context, PolledFilter], Changes]] = {
    FilterKind.LOGS: _logs,
    FilterKind.BLOCKS: _blocks,
    FilterKind.PENDING_HASHES: _pending_hashes,
    FilterKind.PENDING_TRANSACTIONS: _pending,
}


# Maximum attempts of a poll when concurrent polls change the cursor first.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class FilterIdParams(Params):
    """Parameters of the methods that take a filter."""

    id: str = param(Id(), doc="ID of the filter.")


@dataclass(frozen=True, slots=True)
class PendingFilterParams(Params):
    """Parameters of ``eth_newPendingTransactionFilter``."""

    full_transactions: bool = param(
        Bool(), default=False, doc="Return complete transactions instead of hashes."
    )


def new_filter(ctx: Context, params: LogFilterParams) -> str:
    """Create a filter for new logs; return its ID."""
    refuse_range(ctx, params.filter)
    return _add(ctx, FilterKind.LOGS, reader(ctx).latest, criteria_text(params.filter))


def new_block_filter(ctx: Context, params: NoParams) -> str:
    """Create a filter for the hashes of new blocks; return its ID."""
    return _add(ctx, FilterKind.BLOCKS, reader(ctx).latest)


def new_pending_filter(ctx: Context, params: PendingFilterParams) -> str:
    """Create a filter for pending transactions; return its ID."""
    kind = (
        FilterKind.PENDING_TRANSACTIONS
        if params.full_transactions
        else FilterKind.PENDING_HASHES
    )
    return _add(ctx, kind, ctx.backend.mempool.latest_pending())


def _add(ctx: Context, kind: FilterKind, cursor: int, criteria: str = "") -> str:
    # geth: 16 random bytes in hex, without leading zeros.
    filter_id = hex(secrets.randbits(128))
    added = PolledFilter(filter_id, kind, cursor, criteria, ctx.client)
    ctx.backend.filters.add(added, ctx.settings.of(EthereumSettings).evm_filter_cap)
    return filter_id


def filter_changes(ctx: Context, params: FilterIdParams) -> tuple[Any, ...]:
    """Return the changes since the filter was created or last polled."""
    filters = ctx.backend.filters
    for _ in range(_TRIES):
        polled = filters.get(params.id)
        found, cursor = changes(ctx, polled)
        if filters.move(polled, cursor):
            return found
    # Concurrent polls have returned all changes meanwhile.
    return ()


def filter_logs(ctx: Context, params: FilterIdParams) -> tuple[Log, ...]:
    """Return all logs that match a filter, new or not, as ``eth_getLogs`` does."""
    polled = ctx.backend.filters.get(params.id)
    if polled.kind is not FilterKind.LOGS:
        raise FilterNotFound
    return logs_of(ctx, criteria_of(polled.criteria))


def uninstall(ctx: Context, params: FilterIdParams) -> bool:
    """Remove a filter; return true if it existed."""
    return ctx.backend.filters.drop(params.id)
