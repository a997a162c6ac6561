"""Limits that clients share fairly: at the limit, the client with the most entries loses
one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

E = TypeVar("E", bound=Hashable)


class LimitReached(Exception):
    """The limit is reached; ``of_client`` is true if it is the limit per client."""

    def __init__(self, count: int, *, of_client: bool = False) -> None:
        super().__init__(count)
        self.count, self.of_client = count, of_client


class FairLimit(Generic[E]):
    """Entries of clients: at most ``limit`` in total, and at most ``per_client`` of each
    client.

    At the limit, a new entry evicts an entry of the client with the most entries, if that
    client has more than the new entry's client would have. Entries without a client name come
    from many clients, so no limit per client applies to them. Callers must hold a lock.
    """

    def __init__(
        self, limit: int, per_client: int | None = None, *, evicts_newest: bool = False
    ) -> None:
        self.limit, self.per_client = limit, per_client
        self._evicts_newest = evicts_newest
        self._owners: dict[E, str] = {}
        self._owned: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._owners)

    def __iter__(self) -> Iterator[E]:
        return iter(self._owners)

    def owned(self, client: str) -> int:
        """Return the number of entries of a client."""
        return self._owned[client]

    def acquire(self, entry: E, client: str = "", *, evict: bool = True) -> E | None:
        """Add an entry and return the entry evicted for it, if any; raise
        :exc:`LimitReached`."""
        owned = self._owned[client]
        if client and self.per_client is not None and owned >= self.per_client:
            raise LimitReached(owned, of_client=True)
        evicted = None
        if len(self) >= self.limit:
            owner = largest_owner(self._owned, client) if evict else None
            if owner is None:
                raise LimitReached(self.limit)
            evicted = self._next_of(owner)
            self.release(evicted)
        self._owners[entry] = client
        self._owned[client] += 1
        return evicted

    def release(self, entry: E) -> None:
        """Remove an entry, if it exists."""
        client = self._owners.pop(entry, None)
        if client is not None:
            self._owned[client] -= 1
            if not self._owned[client]:
                del self._owned[client]

    def touch(self, entry: E) -> None:
        """Make an entry the newest one of its client."""
        self._owners[entry] = self._owners.pop(entry)

    def _next_of(self, owner: str) -> E:
        entries = reversed(self._owners) if self._evicts_newest else iter(self._owners)
        return next(entry for entry in entries if self._owners[entry] == owner)


def largest_owner(owned: Mapping[str, int], newcomer: str) -> str | None:
    """Return the owner with the most entries; ``None`` if the newcomer would have as many or
    more."""
    owner = max(owned, key=lambda name: owned[name], default=None)
    if owner is None or owned.get(newcomer, 0) + 1 >= owned[owner]:
        return None
    return owner
