"""Headers below a store's lowest block, proven by the hashes from there downwards."""

from __future__ import annotations

import threading
from contextlib import nullcontext

from ..backends.sql.store import ChainStore
from ..domain.block import Header
from ..errors import Busy, UpstreamRefused
from .in_flight import ReadsInFlight
from .reader import Reader
from .trust import STEP, linked_headers

MAX_HEADERS = 1_000
"""Maximum number of headers that are read and cached, from the store's lowest one downwards."""


class ProvenHeaders:
    """Reads and caches headers down to a requested one.

    May be shared among threads and greenlets.
    """

    def __init__(self, store: ChainStore) -> None:
        self._store = store
        # Each waiting caller has a reserved thread already.
        self._reads = ReadsInFlight(nullcontext)
        self._lock = threading.Lock()
        # Headers by height, without a gap below the store's lowest block.
        self._headers: dict[int, Header] = {}

    def get(self, reader: Reader, height: int) -> Header | None:
        """Return the proven header of a height; ``None`` if that would take too many reads.

        Raise ``UpstreamMismatch`` for headers whose hashes don't match.
        """
        base = self._store.reads.base_height()
        if not base - MAX_HEADERS <= height <= self._store.reads.latest_height():
            return None
        if height >= base:
            return self._store.reads.block_meta(height).header
        try:
            while (found := self._known(base).get(height)) is None:
                self._extend(reader, base, height)
        except (UpstreamRefused, Busy):
            # The headers between the two can't be read now.
            return None
        return found

    def _known(self, base: int) -> dict[int, Header]:
        with self._lock:
            if base - 1 not in self._headers:
                self._headers = {}
            return self._headers

    def _extend(self, reader: Reader, base: int, height: int) -> None:
        """Read the next headers below the known ones."""
        known = self._known(base)
        above = known[min(known)] if known else self._store.reads.block_meta(base).header
        low = max(height, above.height - STEP)
        # The reader's name is part of the key, as the node is refused for wrong headers.
        headers = self._reads.get(
            (reader.name, above.height, low), lambda: linked_headers(reader, low, above)
        )
        with self._lock:
            # Another caller may have read further meanwhile.
            if self._headers is known:
                all_known = (*known.values(), *headers)
                self._headers = {each.height: each for each in all_known if each.height < base}
