"""Methods of polled filters: create, poll, uninstall."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from ...domain.ethereum import Log
from ...domain.search import FilterKind, PolledFilter
from ...errors import FilterNotFound
from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams, Params, param
from ..codec.log_filter import criteria_of, criteria_text
from ..codec.params import Bool, Id
from ..queries.logs import LogFilterParams, logs_of, refuse_range
from ..reader import reader
from .filter_changes import changes

# How often a poll begins again when others were quicker.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class FilterIdParams(Params):
    """Parameters of the methods that take a filter."""

    id: str = param(Id(), doc="Id of the filter.")


@dataclass(frozen=True, slots=True)
class PendingFilterParams(Params):
    """Parameters of ``eth_newPendingTransactionFilter``."""

    full_transactions: bool = param(
        Bool(), default=False, doc="Return complete transactions instead of hashes."
    )


def new_filter(ctx: Context, params: LogFilterParams) -> str:
    """Create a filter of new logs; return its id."""
    refuse_range(ctx, params.filter)
    return _add(ctx, FilterKind.LOGS, reader(ctx).latest, criteria_text(params.filter))


def new_block_filter(ctx: Context, params: NoParams) -> str:
    """Create a filter of the hashes of new blocks; return its id."""
    return _add(ctx, FilterKind.BLOCKS, reader(ctx).latest)


def new_pending_filter(ctx: Context, params: PendingFilterParams) -> str:
    """Create a filter of pending transactions; return its id."""
    kind = (
        FilterKind.PENDING_TRANSACTIONS
        if params.full_transactions
        else FilterKind.PENDING_HASHES
    )
    return _add(ctx, kind, ctx.backend.mempool.latest_pending())


def _add(ctx: Context, kind: FilterKind, cursor: int, criteria: str = "") -> str:
    # geth: 16 random bytes in hex, without zeros in front.
    filter_id = hex(secrets.randbits(128))
    added = PolledFilter(filter_id, kind, cursor, criteria, ctx.client)
    ctx.backend.filters.add(added, ctx.settings.evm_filter_cap)
    return filter_id


def filter_changes(ctx: Context, params: FilterIdParams) -> tuple[Any, ...]:
    """Return the changes since the filter was made or polled last."""
    filters = ctx.backend.filters
    for _ in range(_TRIES):
        polled = filters.get(params.id)
        found, cursor = changes(ctx, polled)
        if filters.move(polled, cursor):
            return found
    # Polls beside this one have delivered whatever there was.
    return ()


def filter_logs(ctx: Context, params: FilterIdParams) -> tuple[Log, ...]:
    """Return all logs of a filter's range, as ``eth_getLogs`` does."""
    polled = ctx.backend.filters.get(params.id)
    if polled.kind is not FilterKind.LOGS:
        raise FilterNotFound
    return logs_of(ctx, criteria_of(polled.criteria))


def uninstall(ctx: Context, params: FilterIdParams) -> bool:
    """Remove a filter; return True if it existed."""
    return ctx.backend.filters.drop(params.id)
