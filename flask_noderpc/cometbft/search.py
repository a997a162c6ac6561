"""Handlers of ``tx_search`` and ``block_search``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from ..domain.responses import ResultBlockSearch, ResultTxSearch
from ..domain.search import HIGHEST, FoundHeights, FoundTxs, Page, SearchLimits
from ..errors import HeightNotAvailable, SearchTooCostly, TxNotFound, ValueNotAllowed
from ..events import search
from ..events.query import Query, check_length, parse
from ..jsonrpc.context import Context
from ..jsonrpc.params import Params, param
from ..wire.params import Flag, Int, Text
from .blocks import page_slice, per_page, result_block
from .txs import result_tx, with_proof

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TxQuery(Params):
    """Parameters of ``tx_search``."""

    query: str = param(Text(), default="", doc="The event query.")
    prove: bool = param(
        Flag(), default=False, doc="Add a proof that its block contains each transaction."
    )
    page: int | None = param(Int(), default=None, doc="Page to return, counted from 1.")
    per_page: int | None = param(
        Int(), default=None, doc="Transactions per page; by default 30, at most 100."
    )
    order_by: str = param(
        Text(),
        default="",
        doc="Order by height and position: ``asc``, the default, or ``desc``.",
    )


@dataclass(frozen=True, slots=True)
class BlockQuery(Params):
    """Parameters of ``block_search``."""

    query: str = param(Text(), default="", doc="The event query.")
    page: int | None = param(Int(), default=None, doc="Page to return, counted from 1.")
    per_page: int | None = param(
        Int(), default=None, doc="Blocks per page; by default 30, at most 100."
    )
    order_by: str = param(
        Text(), default="", doc="Order by height: ``desc``, the default, or ``asc``."
    )


def tx_search(ctx: Context, params: TxQuery) -> ResultTxSearch:
    """Transactions whose indexed events match a query."""
    query = _query(ctx, params.query)
    page = _page(
        params,
        newest_first=_is_newest_first(params.order_by, "asc", ctx.behaviours.bad_tx_order),
    )
    by_hash = search.hash_in(query)
    if by_hash is not None:
        found = _one(ctx, by_hash, params.prove)
    else:
        criteria = search.tx_search(query)
        found = FoundTxs(0, ())
        if criteria is not None:
            found = ctx.backend.reads.search_txs(criteria, page, _limits(ctx), params.prove)
    page_slice(found.total, params.page, page.limit)
    return ResultTxSearch(found.total, tuple(map(result_tx, found.txs)))


def _one(ctx: Context, tx_hash: bytes, prove: bool) -> FoundTxs:
    try:
        record = ctx.backend.reads.tx(tx_hash)
    except TxNotFound:
        return FoundTxs(0, ())
    return FoundTxs(1, (with_proof(ctx.backend, record) if prove else record,))


def block_search(ctx: Context, params: BlockQuery) -> ResultBlockSearch:
    """Blocks whose indexed events match a query."""
    query = _query(ctx, params.query)
    page = _page(params, newest_first=_is_newest_first(params.order_by, "desc", _BAD_ORDER))
    criteria = search.block_search(query)
    found = FoundHeights(0, ())
    if criteria is not None:
        found = ctx.backend.reads.search_blocks(criteria, page, _limits(ctx))
    page_slice(found.total, params.page, page.limit)
    _require_size(ctx, found.heights)
    blocks = _read_each(lambda height: result_block(ctx.backend, height), found.heights)
    return ResultBlockSearch(found.total, tuple(blocks))


def _require_size(ctx: Context, heights: tuple[int, ...]) -> None:
    limit = ctx.settings.max_response_bytes
    metas = _read_each(ctx.backend.reads.block_meta, heights)
    if sum(meta.size + len(meta.form) for meta in metas) > limit:
        raise SearchTooCostly.by_size(limit)


def _read_each(read: Callable[[int], T], heights: Iterable[int]) -> Iterator[T]:
    """Yield the result of ``read`` for each height; as in CometBFT, skip blocks that were
    pruned after the search."""
    for height in heights:
        try:
            found = read(height)
        except HeightNotAvailable:
            continue
        yield found


def _query(ctx: Context, text: str) -> Query:
    check_length(text)
    return parse(text)


# CometBFT: all versions have this text.
_BAD_ORDER = "expected order_by to be either `asc` or `desc` or empty"


def _is_newest_first(order: str, default: str, refusal: str) -> bool:
    if order not in ("", "asc", "desc"):
        raise ValueNotAllowed(refusal.replace("{}", order))
    return (order or default) == "desc"


def _page(params: TxQuery | BlockQuery, *, newest_first: bool) -> Page:
    size = per_page(params.per_page)
    page = max(1, params.page or 1)
    # A page after the last is rejected after the search, as the number of pages is unknown
    # before it.
    return Page(min((page - 1) * size, HIGHEST), size, newest_first)


def _limits(ctx: Context) -> SearchLimits:
    settings = ctx.settings
    return SearchLimits.within(settings.search_timeout, settings.max_response_bytes)
