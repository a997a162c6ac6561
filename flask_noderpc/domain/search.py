"""Search requests to a backend, their results, and filters that clients poll.

A search has a range of heights, and terms that indexed attributes must satisfy. As in CometBFT
0.37 and later, one event must satisfy all terms, each one with any of its attributes.
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

# As in CometBFT, attributes with the key of a built-in condition are not indexed.
RESERVED = frozenset({"tx.hash", "tx.height", "block.height"})

_NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,4})?")
_LAST_OF_A_NUMBER = frozenset("0123456789.")
# Longer values never count as numbers.
_MAX_NUMBER_LENGTH = 1000


_COMPARE = {"<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range: ``<``, ``<=``, ``>`` or ``>=``, and a number."""

    operator: str
    number: Decimal

    def admits(self, number: Decimal) -> bool:
        """Return true if the number is within the bound."""
        return bool(_COMPARE[self.operator](number, self.number))


@dataclass(frozen=True, slots=True)
class Term:
    """Condition on an attribute; without an operand, the key must only exist."""

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
        """Return true if the value satisfies the condition."""
        if self.equals is not None:
            return value == self.equals
        if self.contains is not None:
            return self.contains in value
        if self.within:
            number = parse_number(value)
            return number is not None and all(bound.admits(number) for bound in self.within)
        return True


@dataclass(frozen=True, slots=True)
class Search:
    """Search between two heights (inclusive) for events that match all terms."""

    terms: tuple[Term, ...] = ()
    low: int = 0
    high: int = HIGHEST
    text: str = field(default="", compare=False)
    """Event query for requests to other nodes; empty if the search can't be expressed as
    one."""

    @property
    def is_one_height(self) -> bool:
        """True if the search selects everything at one height, so that no index is needed."""
        return not self.terms and self.low == self.high

    @property
    def is_any_height(self) -> bool:
        """True if the heights are not limited."""
        return self.low <= 0 and self.high == HIGHEST

    def matches(self, events: Iterable[Event]) -> bool:
        """Return true if one of the events matches all terms."""
        if not self.terms:
            return True
        return any(
            self._is_satisfied_by(attributes) for attributes in indexed_attributes(events)
        )

    def _is_satisfied_by(self, attributes: list[tuple[str, str]]) -> bool:
        return all(
            any(key == term.key and term.holds(value) for key, value in attributes)
            for term in self.terms
        )


@dataclass(frozen=True, slots=True)
class Page:
    """Offset, limit and order (by height and position) of the results to return."""

    offset: int
    limit: int
    newest_first: bool = False
    wants_total: bool = True
    """False if the caller ignores the total number of results; the total may be wrong then."""


MIN_ROWS, ROWS_PER_S = 10_000, 500_000
"""Row limit of a search: the minimum, and the number of rows per second of its time limit."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits of one search; exceeding them raises ``SearchTooCostly``."""

    seconds: float = 2.0
    rows: int = 1_000_000
    size: int = 25_000_000
    """Maximum size of the returned records in bytes."""

    @classmethod
    def within(cls, seconds: float, size: int) -> SearchLimits:
        """Return limits with a timeout in seconds and a size in bytes; the row limit is
        proportional to the timeout."""
        return cls(seconds, max(MIN_ROWS, int(seconds * ROWS_PER_S)), size)


@dataclass(frozen=True, slots=True)
class TxResult:
    """A committed transaction with its height, index and result, like CometBFT's
    abci.TxResult."""

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


def indexed_attributes(events: Iterable[Event]) -> Iterator[list[tuple[str, str]]]:
    """Yield for each event the list of its indexed attributes, as pairs of search key and
    value."""
    for event in events:
        yield [
            (key, text_of(attribute.value))
            for attribute in event.attributes
            if attribute.index and (key := _index_key(event.type, attribute.key))
        ]


# Cache the keys, because most transactions have the same ones.
@lru_cache(maxsize=1024)
def _index_key(event_type: str, attribute_key: bytes) -> str:
    """Return the search key of an attribute; empty if it is not indexed."""
    key = f"{event_type}.{text_of(attribute_key)}"
    return key if event_type and attribute_key and key not in RESERVED else ""


def parse_number(value: str) -> Decimal | None:
    """Return the number if the whole value is a number, otherwise ``None``.

    As in CometBFT 0.38, surrounding whitespace is ignored, and ``8atom`` is not a number in a
    search.
    """
    text = value.strip()
    # Look at the last character first: most values are not numbers, and end in a letter.
    if (
        text[-1:] not in _LAST_OF_A_NUMBER
        or len(text) > _MAX_NUMBER_LENGTH
        or not _NUMBER.fullmatch(text)
    ):
        return None
    return Decimal(text)


class FilterKind(Enum):
    """Kind of changes that a filter reports."""

    LOGS = "logs"
    BLOCKS = "blocks"
    PENDING_HASHES = "pending hashes"
    PENDING_TRANSACTIONS = "pending whole"


@dataclass(frozen=True, slots=True)
class PolledFilter:
    """A stored filter that a client polls."""

    id: str
    kind: FilterKind
    cursor: int
    """Last reported position: a height, or a transaction's cursor in the mempool."""
    criteria: str = ""
    """Log filter as JSON."""
    owner: str = ""
    """Client that created the filter and whose limit counts it; any client that has the ID may
    use it."""
