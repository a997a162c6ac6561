"""Choose the client to evict from a full shared limit."""

from __future__ import annotations

from collections.abc import Mapping


def largest_owner(owned: Mapping[str, int], newcomer: str) -> str | None:
    """Return the owner with the most entries; ``None`` if the newcomer would have as many."""
    owner = max(owned, key=lambda name: owned[name])
    return None if owned.get(newcomer, 0) + 1 >= owned[owner] else owner
