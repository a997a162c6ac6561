"""Forward searches that reach below the store's lowest indexed height to a node."""

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

# Seconds for which the answer is cached whether a node has indexed lower heights than the
# store.
_KNOWN_S = 10.0


class ForwardedSearches:
    """Searches by the nodes; nothing proves their results.

    A search returns ``None`` if no node has indexed heights below ``lowest``, the store's
    lowest indexed height. It raises :exc:`~flask_noderpc.errors.SearchIncomplete` if no node
    with the store's latest block responds. Equal searches in flight are shared.
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
                # The page may be shorter, as a node omits blocks that it has pruned.
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
        # Share a search only among callers at the same height: a client that has seen a block
        # must find its transactions.
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
                f"the store has indexed the blocks from height {lowest} on, and no upstream"
                f" node could search lower blocks: {error}",
                f"a query with tx.height >= {lowest}, or block.height in block_search, is"
                " served from the store",
            ) from None

    def _accepted_names(self) -> set[str]:
        """Return the names of all nodes that are not refused, whether they respond or not."""
        states = self._upstreams.states()
        return {name for name, state in states.items() if state != "refused"}

    def _check(self, reader: Reader, heights: Sequence[int], due: range) -> None:
        """Raise ``UpstreamRefused`` for a page whose length is not in ``due``, or with heights
        below the chain's first."""
        first = self._store.reads.initial_height()
        if len(heights) not in due or min(heights, default=first) < first:
            raise UpstreamRefused(
                reader.name,
                0,
                f"a page of a search: expected {due[0]} to {due[-1]} results from height"
                f" {first} on, got {len(heights)}",
            )

    def _knows_more(self, reader: Reader, lowest: int) -> bool:
        """Return true unless the node responds that block ``lowest - 1`` is not indexed."""
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
        # Nodes before 0.34.9 and some proxies lack this method: try the search itself.
        return True
    # Use the total, which counts the block even if the node has pruned it.
    return found.total > 0


def _due(total: int, page: Page, number: int) -> int:
    """Return the expected number of results on page ``number`` of a node."""
    return max(0, min(page.limit, total - (number - 1) * page.limit))


def _params(search: Search, page: Page, number: int) -> dict[str, int | str]:
    order = "desc" if page.newest_first else "asc"
    return {"query": search.text, "page": number, "per_page": page.limit, "order_by": order}


def _window(ask: Callable[[int], tuple[int, Sequence[T]]], page: Page) -> tuple[int, list[T]]:
    """Return the total and the results of a page; with an offset, they span two pages of a
    node."""
    before, skipped = divmod(page.offset, page.limit)
    total, items = 0, list[T]()
    for number in range(before + 1, before + 2 + bool(skipped)):
        try:
            total, found = ask(number)
        except UpstreamRefused:
            if number == 1:
                raise
            # This page is beyond the last one.
            return (total if items else ask(1)[0]), items[skipped:]
        items += found
    return total, items[skipped : skipped + page.limit]


def _tx(reader: Reader, found: ResultTx, prove: bool) -> TxResult:
    if hashes.tx_hash(found.tx) != found.hash or found.index < 0:
        raise UpstreamMismatch(reader.name, "tx_search: a transaction does not have its hash")
    proof = found.proof if prove else None
    if prove and proof is None:
        raise UpstreamRefused(reader.name, 0, "tx_search: a transaction has no proof")
    return TxResult(found.height, found.index, found.tx, found.tx_result, proof)
