"""Polled filters: their kind, criteria and cursor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
