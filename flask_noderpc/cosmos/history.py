"""Transactions of a Cosmos SDK account, found by the events of its modules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .. import jsoncodec
from ..cometbft.txs import result_tx
from ..domain.search import SearchLimits
from ..errors import ValueNotAllowed
from ..events.history import History, Place, lowest_searched
from ..jsonrpc.context import Context
from ..jsonrpc.params import Params, param
from ..jsonrpc.route import Route
from ..wire.params import Int, Int64, Text
from .protocol import bech32

# Cosmos SDK: x/bank, and the signers of messages.
_KEYS = (
    "message.sender",
    "transfer.sender",
    "transfer.recipient",
    "coin_spent.spender",
    "coin_received.receiver",
)
_DEFAULT_LIMIT, _MAX_LIMIT = 30, 100


@dataclass(frozen=True, slots=True)
class AccountQuery(Params):
    """Parameters of ``txs_by_address``."""

    address: str = param(Text(), doc="Bech32 address of the account.")
    cursor: str = param(Text(), default="", doc="The ``cursor`` of the page before.")
    limit: int | None = param(
        Int(), default=None, doc="Transactions in a page; by default 30, at most 100."
    )
    order_by: str = param(
        Text(),
        default="desc",
        doc="Order by height and position: ``desc``, the default, or ``asc``.",
    )
    min_height: int | None = param(Int64(), default=None, doc="Lowest height to search.")
    max_height: int | None = param(Int64(), default=None, doc="Highest height to search.")


def txs_by_address(ctx: Context, params: AccountQuery) -> dict[str, Any]:
    """Transactions that an account sent or received, page by page, with the heights that were
    pruned."""
    reads = ctx.backend.reads
    latest, first = reads.latest_height(), reads.initial_height()
    low = first if params.min_height is None else max(first, params.min_height)
    high = latest if params.max_height is None else min(latest, params.max_height)
    limits = SearchLimits.within(ctx.settings.search_timeout, ctx.settings.max_response_bytes)
    history = History(reads, _address(params.address), _KEYS, low, high, _desc(params), limits)
    page, following = history.page(_place(params.cursor), _limit(params.limit))
    return {
        "txs": [jsoncodec.decode(ctx.encode(result_tx(record))) for record in page],
        "cursor": "" if following is None else str(following),
        "min_height": str(low),
        "max_height": str(high),
        "missing": list(_missing(ctx, low, high)),
    }


def _address(text: str) -> str:
    try:
        bech32.decode(text)
    except bech32.InvalidBech32 as error:
        raise ValueNotAllowed(
            f"address: expected a bech32 address, got {text[:90]!r}: {error}"
        ) from None
    if not text.isalnum():
        raise ValueNotAllowed(f"address: expected letters and digits, got {text[:90]!r}")
    return text.lower()


def _desc(params: AccountQuery) -> bool:
    if params.order_by not in ("asc", "desc"):
        raise ValueNotAllowed(f"order_by: expected asc or desc, got {params.order_by[:40]!r}")
    return params.order_by == "desc"


def _place(cursor: str) -> Place | None:
    try:
        return Place.parse(cursor) if cursor else None
    except ValueError as error:
        raise ValueNotAllowed(str(error)) from None


def _limit(limit: int | None) -> int:
    if limit is None:
        return _DEFAULT_LIMIT
    if not 0 < limit <= _MAX_LIMIT:
        raise ValueNotAllowed(f"limit: expected a number from 1 to {_MAX_LIMIT}, got {limit}")
    return limit


def _missing(ctx: Context, low: int, high: int) -> Iterator[dict[str, str]]:
    lowest = lowest_searched(ctx.backend.reads)
    if low < min(lowest, high + 1):
        yield {
            "min_height": str(low),
            "max_height": str(min(high, lowest - 1)),
            "reason": "pruned",
        }


ROUTES = (
    Route(
        "txs_by_address",
        txs_by_address,
        AccountQuery,
        dict,
        chain_only=True,
        reads_index=True,
        tag="Search",
    ),
)
