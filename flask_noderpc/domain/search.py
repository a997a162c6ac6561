"""What a search asks of a backend, and what may be found.

A search is a range of heights and terms about indexed attributes. CometBFT 0.37 and later:
all terms hold within one event, each by any of its attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from operator import ge, gt, le, lt

from .abci import Event, TxResult
from .block import TxProof
from .text import text_of

HIGHEST = (1 << 63) - 1

# CometBFT: an attribute of these names would be mistaken for what is always there.
RESERVED = frozenset({"tx.hash", "tx.height", "block.height"})

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
# Longer texts of digits are no amounts.
_LONGEST_NUMBER = 1000


_COMPARE = {"<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range: ``<``, ``<=``, ``>`` or ``>=`` a number."""

    operator: str
    number: Decimal

    def admits(self, number: Decimal) -> bool:
        """Whether a number is on the right side."""
        return bool(_COMPARE[self.operator](number, self.number))


@dataclass(frozen=True, slots=True)
class Term:
    """One demand on the attributes of a key; without any, the key is there."""

    key: str
    equals: str | None = None
    contains: str | None = None
    within: tuple[Bound, ...] = ()
    """All of which one and the same value keeps."""

    def holds(self, value: str) -> bool:
        """Whether a value meets the demand."""
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
    """Everything between two heights, both included, that has an event with all terms."""

    terms: tuple[Term, ...] = ()
    low: int = 0
    high: int = HIGHEST

    @property
    def is_one_height(self) -> bool:
        """Whether it asks for all of one height, which takes no looking around."""
        return not self.terms and self.low == self.high

    @property
    def is_of_all_heights(self) -> bool:
        """Whether heights do not matter."""
        return self.low <= 0 and self.high == HIGHEST

    def matches(self, events: Iterable[Event]) -> bool:
        """Whether one of the events has all terms."""
        if not self.terms:
            return True
        return any(self._is_met_by(attributes) for attributes in indexed(events))

    def _is_met_by(self, attributes: list[tuple[str, str]]) -> bool:
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


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """What one search may cost; whoever needs more is refused and told the settings."""

    seconds: float = 2.0
    rows: int = 1_000_000
    size: int = 25_000_000
    """Bytes of what is handed over."""


@dataclass(frozen=True, slots=True)
class TxRecord:
    """A committed transaction and where it stands."""

    height: int
    index: int
    tx: bytes
    result: TxResult
    proof: TxProof | None = None
    """Of its inclusion in the block, where it was asked for."""


@dataclass(frozen=True, slots=True)
class FoundTxs:
    """How many transactions there are, and those of the page."""

    total: int
    txs: tuple[TxRecord, ...]


@dataclass(frozen=True, slots=True)
class FoundHeights:
    """How many blocks there are, and the heights of those on the page."""

    total: int
    heights: tuple[int, ...]


def indexed(events: Iterable[Event]) -> Iterator[list[tuple[str, str]]]:
    """Of each event, in order, the attributes that can be searched, as key and value."""
    for event in events:
        yield [
            (key, text_of(attribute.value))
            for attribute in event.attributes
            if attribute.index and event.type and attribute.key
            if (key := f"{event.type}.{text_of(attribute.key)}") not in RESERVED
        ]


def number_of(value: str) -> Decimal | None:
    """The number that a value is, from end to end; ``None`` for any other text.

    CometBFT 0.38: blanks around it do not matter; ``8atom`` is no number in a search.
    """
    text = value.strip()
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    return Decimal(text)
