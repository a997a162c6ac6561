"""What a chain is at one moment, told apart from all others."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple


class ChainVersion(NamedTuple):
    """While it stays the same, so does everything that is told of the chain alone."""

    history: Hashable
    """The same while blocks are added, and nothing that was there is changed or dropped."""
    head: Hashable
    """The latest block."""
