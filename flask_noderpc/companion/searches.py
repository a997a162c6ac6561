"""Searches of heights that the store's index lacks, for which a node is asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from ..backends.base.reads import mark_unverified
from ..backends.sql.store import ChainStore
from ..domain.responses import ResultBlockSearch, ResultTx, ResultTxSearch
from ..domain.search import FoundHeights, FoundTxs, Page, Search, TxResult
from ..errors import Busy, SearchIncomplete, UpstreamError, UpstreamMismatch, UpstreamRefused
from ..protocol.comet import hashes
from .in_flight import ReadsInFlight
from .pool import Upstreams
from .reader import Reader

T = TypeVar("T")

# Seconds for which it is cached whether a node's index reaches further down than the store's.
_KNOWN_S = 10.0


class ForwardedSearches:
    """Searches of the nodes, whose results nothing proves.

    Each returns ``None`` if all nodes say that they have no indexed heights below ``lowest``,
    the lowest indexed height of the store. Raise
    :exc:`~flask_noderpc.errors.SearchIncomplete` if no node responds that has the store's
    latest block, too. Equal searches in flight are shared.
    """

    def __init__(self, upstreams: Upstreams, store: ChainStore) -> None:
        self._upstreams, self._store = upstreams, store
        self._reads = ReadsInFlight(upstreams.reserve)
        self._known: dict[str, tuple[float, bool]] = {}

    def txs(self, search: Search, page: Page, prove: bool, lowest: int) -> FoundTxs | None:
        """Return a page of matching transactions."""

        def read(reader: Reader) -> FoundTxs:
            def ask(number: int) -> tuple[int, Sequence[TxResult]]:
                found = reader.node.get(
                    ResultTxSearch, "tx_search", prove=prove, **_params(search, page, number)
                )
                txs = [_tx(reader, each, prove) for each in found.txs]
                due = _due(found.total, page, number)
                self._check(reader, [each.height for each in txs], range(due, due + 1))
                return found.total, txs

            total, found = _window(ask, page)
            return FoundTxs(total, tuple(found))

        return self._read(search, ("txs", page, prove), read, lowest)

    def heights(self, search: Search, page: Page, lowest: int) -> FoundHeights | None:
        """Return a page of the heights of matching blocks."""

        def read(reader: Reader) -> FoundHeights:
            def ask(number: int) -> tuple[int, Sequence[int]]:
                found = reader.node.get(
                    ResultBlockSearch, "block_search", **_params(search, page, number)
                )
                blocks = (each.block for each in found.blocks)
                heights = [block.header.height for block in blocks if block]
                # A node leaves out blocks that it has pruned.
                self._check(reader, heights, range(_due(found.total, page, number) + 1))
                return found.total, heights

            total, heights = _window(ask, page)
            return FoundHeights(total, tuple(heights))

        return self._read(search, ("blocks", page), read, lowest)

    def _read(
        self, search: Search, key: Hashable, read: Callable[[Reader], T], lowest: int
    ) -> T | None:
        if not search.text:
            return None
        # A client that has seen a block must find its content.
        found = self._reads.get(
            (search.text, key, lowest, self._store.reads.latest_height()),
            lambda: self._attempt(read, lowest),
        )
        if found is not None:
            mark_unverified()
        return found

    def _attempt(self, read: Callable[[Reader], T], lowest: int) -> T | None:
        no_more: set[str] = set()

        def ask(reader: Reader) -> T:
            if not self._knows_more(reader, lowest):
                no_more.add(reader.name)
                raise UpstreamRefused(reader.name, 0, f"no block below {lowest} is indexed")
            latest = reader.status().sync_info.latest_block_height
            if latest < self._store.reads.latest_height():
                raise UpstreamRefused(reader.name, 0, f"its latest block is {latest}")
            return read(reader)

        try:
            return self._upstreams.attempt(ask)
        except (UpstreamError, Busy) as error:
            if no_more == self._accepted_names():
                return None
            raise SearchIncomplete(
                f"the store has indexed the blocks from height {lowest} on, and no node could"
                f" search those below: {error}",
                f"a query with tx.height >= {lowest}, or block.height in block_search, is"
                " served from the store",
            ) from None

    def _accepted_names(self) -> set[str]:
        """Return the names of all nodes that are not refused, whether they respond or not."""
        states = self._upstreams.states()
        return {name for name, state in states.items() if state != "refused"}

    def _check(self, reader: Reader, heights: Sequence[int], due: range) -> None:
        """Raise ``UpstreamRefused`` for a page whose number of items is wrong, or whose heights
        the chain does not have."""
        first = self._store.reads.initial_height()
        if len(heights) not in due or min(heights, default=first) < first:
            raise UpstreamRefused(
                reader.name,
                0,
                f"a page of a search has {len(heights)} items, of at least {due[0]} and at"
                f" most {due[-1]}",
            )

    def _knows_more(self, reader: Reader, lowest: int) -> bool:
        """Return true unless a node says that the block below a height is not indexed."""
        checked_at, knows = self._known.get(reader.name, (-_KNOWN_S, False))
        if time.monotonic() - checked_at >= _KNOWN_S:
            knows = _is_indexed(reader, lowest - 1)
            self._known[reader.name] = time.monotonic(), knows
        return knows


def _is_indexed(reader: Reader, height: int) -> bool:
    try:
        found = reader.node.get(
            ResultBlockSearch,
            "block_search",
            query=f"block.height = {height}",
            page=1,
            per_page=1,
            order_by="asc",
        )
    except UpstreamRefused:
        # Nodes before 0.34.9 and some proxies lack this method, so the search itself must tell.
        return True
    # A node that has pruned the block omits it, but still counts it.
    return found.total > 0


def _due(total: int, page: Page, number: int) -> int:
    """Return the number of items that a node's page must have."""
    return max(0, min(page.limit, total - (number - 1) * page.limit))


def _params(search: Search, page: Page, number: int) -> dict[str, int | str]:
    order = "desc" if page.newest_first else "asc"
    return {"query": search.text, "page": number, "per_page": page.limit, "order_by": order}


def _window(ask: Callable[[int], tuple[int, Sequence[T]]], page: Page) -> tuple[int, list[T]]:
    """Return the total and the items of a page, which may span two pages of a node."""
    before, skipped = divmod(page.offset, page.limit)
    total, items = 0, list[T]()
    for number in range(before + 1, before + 2 + bool(skipped)):
        try:
            total, found = ask(number)
        except UpstreamRefused:
            if number == 1:
                raise
            # The page is after the last one.
            return (total if items else ask(1)[0]), items[skipped:]
        items += found
    return total, items[skipped : skipped + page.limit]


def _tx(reader: Reader, found: ResultTx, prove: bool) -> TxResult:
    if hashes.tx_hash(found.tx) != found.hash or found.index < 0:
        raise UpstreamMismatch(reader.name, "tx_search has a transaction of another hash")
    proof = found.proof if prove else None
    if prove and proof is None:
        raise UpstreamRefused(reader.name, 0, "tx_search has no proof of a transaction")
    return TxResult(found.height, found.index, found.tx, found.tx_result, proof)
