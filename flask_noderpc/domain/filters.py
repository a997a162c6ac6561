"""Filters that are polled: what they are about, and how far they have been told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FilterKind(Enum):
    """What a filter tells of."""

    LOGS = "logs"
    BLOCKS = "blocks"
    PENDING_HASHES = "pending hashes"
    PENDING_WHOLE = "pending whole"


@dataclass(frozen=True, slots=True)
class PolledFilter:
    """A filter that lives in a store."""

    id: str
    kind: FilterKind
    cursor: int
    """What was told last: a height, or a transaction's cursor in the mempool."""
    criteria: str = ""
    """Which logs, as JSON."""
    owner: str = ""
    """Who made it, and for whom it counts; whoever knows the id may use it."""
