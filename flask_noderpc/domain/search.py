"""Search requests to a backend and their results, and polled filters.

A search is a range of heights and terms about indexed attributes. CometBFT 0.37 and later:
all terms hold within one event, each by any of its attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from operator import ge, gt, le, lt

from ..jsoncodec import text_of
from .abci import Event, ExecTxResult
from .block import TxProof

HIGHEST = (1 << 63) - 1

# CometBFT: attributes with the names of the built-in keys are not indexed.
RESERVED = frozenset({"tx.hash", "tx.height", "block.height"})

_NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,4})?")
_LAST_OF_A_NUMBER = frozenset("0123456789.")
# Longer texts are not compared as numbers.
_MAX_NUMBER_LENGTH = 1000


_COMPARE = {"<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range: ``<``, ``<=``, ``>`` or ``>=`` a number."""

    operator: str
    number: Decimal

    def admits(self, number: Decimal) -> bool:
        """Return True if the number is within the bound."""
        return bool(_COMPARE[self.operator](number, self.number))


@dataclass(frozen=True, slots=True)
class Term:
    """Condition on an attribute; without an operand the key must exist."""

    key: str
    equals: str | None = None
    contains: str | None = None
    within: tuple[Bound, ...] = ()
    """Bounds that a single value must all satisfy."""

    @property
    def is_existence(self) -> bool:
        """True if every value satisfies the condition."""
        return self.equals is None and self.contains is None and not self.within

    def holds(self, value: str) -> bool:
        """Return True if the value satisfies the condition."""
        if self.equals is not None:
            return value == self.equals
        if self.contains is not None:
            return self.contains in value
        if self.within:
            number = number_of(value)
            return number is not None and all(bound.admits(number) for bound in self.within)
        return True


@dataclass(frozen=True, slots=True)
class Search:
    """Search between two heights, inclusive, for an event that satisfies all terms."""

    terms: tuple[Term, ...] = ()
    low: int = 0
    high: int = HIGHEST
    text: str = field(default="", compare=False)
    """Event query that other nodes are asked with; empty if there is no such query."""

    @property
    def is_one_height(self) -> bool:
        """True if it selects everything at one height, which needs no scan."""
        return not self.terms and self.low == self.high

    @property
    def is_any_height(self) -> bool:
        """True if the heights are not limited."""
        return self.low <= 0 and self.high == HIGHEST

    def matches(self, events: Iterable[Event]) -> bool:
        """Return True if one of the events satisfies all terms."""
        if not self.terms:
            return True
        return any(self._is_satisfied_by(attributes) for attributes in indexed(events))

    def _is_satisfied_by(self, attributes: list[tuple[str, str]]) -> bool:
        return all(
            any(key == term.key and term.holds(value) for key, value in attributes)
            for term in self.terms
        )


@dataclass(frozen=True, slots=True)
class Page:
    """Offset, limit and order of the results to return, by height and position."""

    offset: int
    limit: int
    newest_first: bool = False


MIN_ROWS, ROWS_PER_S = 10_000, 500_000
"""Rows that a search may read: at least so many, and in each of its seconds."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits of one search; a search beyond them fails with a hint that names the settings."""

    seconds: float = 2.0
    rows: int = 1_000_000
    size: int = 25_000_000
    """Maximum bytes of the records returned."""

    @classmethod
    def within(cls, seconds: float, size: int) -> SearchLimits:
        """Return the limits of a search of so many seconds, whose rows grow with them."""
        return cls(seconds, max(MIN_ROWS, int(seconds * ROWS_PER_S)), size)


@dataclass(frozen=True, slots=True)
class TxResult:
    """A committed transaction, its position and its result. CometBFT: abci.TxResult."""

    height: int
    index: int
    tx: bytes
    result: ExecTxResult
    proof: TxProof | None = None
    """Inclusion proof, if it was requested."""


@dataclass(frozen=True, slots=True)
class FoundTxs:
    """Total number of matches, and the transactions of the page."""

    total: int
    txs: tuple[TxResult, ...]


@dataclass(frozen=True, slots=True)
class FoundHeights:
    """Total number of matches, and the block heights of the page."""

    total: int
    heights: tuple[int, ...]


def indexed(events: Iterable[Event]) -> Iterator[list[tuple[str, str]]]:
    """Yield the indexed attributes of each event, in order, as pairs of key and value."""
    for event in events:
        yield [
            (key, text_of(attribute.value))
            for attribute in event.attributes
            if attribute.index and (key := _index_key(event.type, attribute.key))
        ]


# The same keys come with each transaction.
@lru_cache(maxsize=1024)
def _index_key(event_type: str, attribute_key: bytes) -> str:
    """Return the key of an attribute; empty if it is not indexed."""
    key = f"{event_type}.{text_of(attribute_key)}"
    return key if event_type and attribute_key and key not in RESERVED else ""


def number_of(value: str) -> Decimal | None:
    """Parse a value that is a number as a whole; return ``None`` for any other text.

    CometBFT 0.38: surrounding blanks are ignored; ``8atom`` is no number in a search.
    """
    text = value.strip()
    # Most values are no numbers, and end with a letter.
    if (
        text[-1:] not in _LAST_OF_A_NUMBER
        or len(text) > _MAX_NUMBER_LENGTH
        or not _NUMBER.fullmatch(text)
    ):
        return None
    return Decimal(text)


class FilterKind(Enum):
    """Kind of the changes that a filter returns."""

    LOGS = "logs"
    BLOCKS = "blocks"
    PENDING_HASHES = "pending hashes"
    PENDING_TRANSACTIONS = "pending whole"


@dataclass(frozen=True, slots=True)
class PolledFilter:
    """Filter as it is stored."""

    id: str
    kind: FilterKind
    cursor: int
    """Position returned last: a height, or a transaction's cursor in the mempool."""
    criteria: str = ""
    """Log filter as JSON."""
    owner: str = ""
    """Client key whose limit it counts for; any client that has the id may use it."""
