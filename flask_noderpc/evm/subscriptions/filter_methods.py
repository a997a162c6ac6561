"""Filters that are polled: made, asked for what is new, forgotten."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from ...domain.ethereum import Log
from ...domain.filters import FilterKind, PolledFilter
from ...errors import FilterNotFound
from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams, Params, param
from ..codec.filter_json import criteria_of, criteria_text
from ..codec.params import Bool, Id
from ..queries.logs import Filtered, logs_of, refuse_range
from ..reader import reader
from .filter_changes import changes

# How often a poll begins again when others were quicker.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class OfFilter(Params):
    """For methods about a filter."""

    id: str = param(Id(), doc="Id of the filter.")


@dataclass(frozen=True, slots=True)
class Whole(Params):
    """Of ``eth_newPendingTransactionFilter``."""

    whole: bool = param(Bool(), default=False, doc="Whether transactions are whole, or hashes.")


def new_filter(ctx: Context, params: Filtered) -> str:
    """Begin to tell of new logs; the id of the filter."""
    refuse_range(ctx, params.filter)
    return _add(ctx, FilterKind.LOGS, reader(ctx).latest, criteria_text(params.filter))


def new_block_filter(ctx: Context, params: NoParams) -> str:
    """Begin to tell of new blocks, by their hashes; the id of the filter."""
    return _add(ctx, FilterKind.BLOCKS, reader(ctx).latest)


def new_pending_filter(ctx: Context, params: Whole) -> str:
    """Begin to tell of transactions that wait for a block; the id of the filter."""
    kind = FilterKind.PENDING_TRANSACTIONS if params.whole else FilterKind.PENDING_HASHES
    return _add(ctx, kind, ctx.backend.latest_pending())


def _add(ctx: Context, kind: FilterKind, cursor: int, criteria: str = "") -> str:
    # geth: 16 random bytes in hex, without zeros in front.
    own = hex(secrets.randbits(128))
    added = PolledFilter(own, kind, cursor, criteria, ctx.client)
    ctx.backend.filters().add(added, ctx.settings.evm_filter_cap)
    return own


def filter_changes(ctx: Context, params: OfFilter) -> tuple[Any, ...]:
    """Return the changes since the filter was made or polled last."""
    filters = ctx.backend.filters()
    for _ in range(_TRIES):
        polled = filters.get(params.id)
        found, cursor = changes(ctx, polled)
        if filters.move(polled, cursor):
            return found
    # Polls beside this one have delivered whatever there was.
    return ()


def filter_logs(ctx: Context, params: OfFilter) -> tuple[Log, ...]:
    """All logs of a filter's range, as ``eth_getLogs`` finds them."""
    polled = ctx.backend.filters().get(params.id)
    if polled.kind is not FilterKind.LOGS:
        raise FilterNotFound
    return logs_of(ctx, criteria_of(polled.criteria))


def uninstall(ctx: Context, params: OfFilter) -> bool:
    """Forget a filter; whether it was there."""
    return ctx.backend.filters().drop(params.id)
