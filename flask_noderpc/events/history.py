"""History of an account: the transactions in whose events it occurs, page by page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby, islice
from typing import NamedTuple

from ..backends.base.reads import ChainReads
from ..domain.search import Page, Search, SearchLimits, Term, TxResult
from ..event_aliases import comparable

_CURSOR = re.compile(r"([0-9]{1,18})\.([0-9]{1,9})", re.ASCII)
# Minimum transactions per search: further pages at the height of a cursor have to be skipped.
_MIN_PAGE = 30


class Place(NamedTuple):
    """Place of a transaction in the chain; its text is the cursor of a page that ends there."""

    height: int
    position: int

    def __str__(self) -> str:
        return f"{self.height}.{self.position}"

    @classmethod
    def parse(cls, text: str) -> Place:
        """Return the place of a cursor; raise :exc:`ValueError` for another text."""
        found = _CURSOR.fullmatch(text)
        if found is None:
            raise ValueError(
                f"cursor: expected the cursor of an earlier page, such as 120.3, got"
                f" {text[:40]!r}"
            )
        return cls(int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class History:
    """Transactions of an account between two heights, inclusive, in one order."""

    reads: ChainReads
    account: str
    keys: Sequence[str]
    """Keys of events, any of which has the account as its value."""
    low: int
    high: int
    newest_first: bool
    limits: SearchLimits

    def txs(self, after: Place | None) -> Iterator[TxResult]:
        """Yield the transactions after a place, each once.

        Raise :exc:`~flask_noderpc.errors.SearchTooCostly`.
        """
        found = merge(
            *(self._of_key(key, after) for key in self.keys),
            key=_place_of,
            reverse=self.newest_first,
        )
        for _, same in groupby(found, _place_of):
            yield next(same)

    def page(self, after: Place | None, limit: int) -> tuple[list[TxResult], Place | None]:
        """Return at most ``limit`` transactions after a place, and the place to continue
        from, ``None`` on the last page."""
        found = list(islice(self.txs(after), limit + 1))
        more = len(found) > limit
        return found[:limit], _place_of(found[limit - 1]) if more else None

    def _of_key(self, key: str, after: Place | None) -> Iterator[TxResult]:
        low, high = self.low, self.high
        if after is not None and self.newest_first:
            high = min(high, after.height)
        elif after is not None:
            low = max(low, after.height)
        text = f"{key}='{self.account}' AND tx.height>={low} AND tx.height<={high}"
        term = Term(key, equals=comparable(key, self.account))
        search = Search((term,), low, high, text)
        offset = 0
        while low <= high:
            page = Page(offset, _MIN_PAGE, self.newest_first, wants_total=False)
            found = self.reads.search_txs(search, page, self.limits).txs
            for record in found:
                if after is None or self._is_after(_place_of(record), after):
                    yield record
            if len(found) < _MIN_PAGE:
                return
            offset += _MIN_PAGE

    def _is_after(self, place: Place, after: Place) -> bool:
        return place < after if self.newest_first else place > after


def _place_of(record: TxResult) -> Place:
    return Place(record.height, record.index)


def lowest_searched(reads: ChainReads) -> int:
    """Return the lowest height whose transactions a search finds, unless the response is marked
    as incomplete."""
    readable = reads.lowest_readable()
    # A companion asks its nodes about the blocks below its own.
    return readable if readable < reads.base_height() else reads.lowest_indexed()
