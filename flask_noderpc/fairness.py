"""Whose turn it is to give way, where clients share what there is no more of."""

from __future__ import annotations

from collections.abc import Mapping


def largest_owner(owned: Mapping[str, int], newcomer: str) -> str | None:
    """The owner of the most; ``None`` when the newcomer would have as many."""
    owner = max(owned, key=lambda name: owned[name])
    return None if owned.get(newcomer, 0) + 1 >= owned[owner] else owner
