"""Storage of filters that clients poll."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace

from ...domain.search import PolledFilter
from ...domain.time import SECOND
from ...errors import Busy, FilterNotFound
from ...fairness import FairLimit, LimitReached, largest_owner

DEADLINE = 300 * SECOND
"""Nanoseconds after which an unpolled filter expires. geth: eth/filters/api.go, 5 minutes."""

Clock = Callable[[], int]
"""Nanoseconds since 1970."""


class Filters(ABC):
    """Storage of filters; each expires ``DEADLINE`` after its last poll."""

    clock: Clock = staticmethod(time.time_ns)
    """Clock that the deadlines use."""

    @abstractmethod
    def add(self, added: PolledFilter, cap: int) -> None:
        """Store a filter; raise :exc:`~flask_noderpc.errors.Busy` if ``cap`` filters exist.

        If another owner has more filters than this owner would have, that owner's least
        recently polled filter is evicted instead.
        """

    @abstractmethod
    def get(self, filter_id: str) -> PolledFilter:
        """Return the filter; raise :exc:`~flask_noderpc.errors.FilterNotFound`."""

    @abstractmethod
    def move(self, polled: PolledFilter, cursor: int) -> bool:
        """Move the filter's cursor from its present value; return false if another poll has
        moved it.

        Only the poll that gets true reports the changes between the two cursors, so that each
        change is reported once.
        """

    @abstractmethod
    def drop(self, filter_id: str) -> bool:
        """Remove a filter; return true if it existed."""


class MemoryFilters(Filters):
    """Filters in the memory of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: dict[str, tuple[PolledFilter, int]] = {}
        self._limit = FairLimit[str](0)
        """Limit of the number of filters, which :meth:`add` sets. It has the filters' IDs by
        owner, the least recently polled first, to choose the one to evict."""

    def add(self, added: PolledFilter, cap: int) -> None:
        now = self.clock()
        with self._lock:
            for name in [name for name, live in self._live.items() if live[1] < now]:
                self._remove(name)
            self._limit.limit = cap
            try:
                evicted = self._limit.acquire(added.id, added.owner)
            except LimitReached:
                raise too_many_filters(cap, self._limit.owned(added.owner)) from None
            if evicted is not None:
                del self._live[evicted]
            self._live[added.id] = added, now + DEADLINE

    def _remove(self, name: str) -> tuple[PolledFilter | None, int]:
        self._limit.release(name)
        return self._live.pop(name, _NO_OWNER)

    def get(self, filter_id: str) -> PolledFilter:
        with self._lock:
            found, expires = self._live.get(filter_id, _NO_OWNER)
        if found is None or expires < self.clock():
            raise FilterNotFound
        return found

    def move(self, polled: PolledFilter, cursor: int) -> bool:
        now = self.clock()
        with self._lock:
            found, expires = self._live.get(polled.id, _NO_OWNER)
            if found != polled or expires < now:
                return False
            self._live[polled.id] = replace(polled, cursor=cursor), now + DEADLINE
            self._limit.touch(polled.id)
            return True

    def drop(self, filter_id: str) -> bool:
        with self._lock:
            found, expires = self._remove(filter_id)
        return found is not None and expires >= self.clock()


_NO_OWNER = (None, 0)


def filters_to_evict(owned: Mapping[str, int], newcomer: str, cap: int) -> str:
    """Return the owner whose filter is evicted: the one with the most filters. Raise
    :exc:`~flask_noderpc.errors.Busy` if the newcomer would have as many."""
    owner = largest_owner(owned, newcomer)
    if owner is None:
        raise too_many_filters(cap, owned.get(newcomer, 0))
    return owner


def too_many_filters(cap: int, owned: int) -> Busy:
    """Return the error for a client that has at least as many filters as any other client."""
    return Busy(
        f"{cap} filters exist already, which is the maximum, {owned} of them of this client",
        "uninstall some, or raise NODERPC_EVM_FILTER_CAP",
    )
