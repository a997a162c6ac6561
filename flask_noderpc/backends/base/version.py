"""Version of a chain: distinguishes its states."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple


class ChainVersion(NamedTuple):
    """While it is equal, every answer that depends on the chain alone is the same."""

    history: Hashable
    """The same while blocks are added, and nothing that was there is changed or dropped."""
    head: Hashable
    """The latest block."""
