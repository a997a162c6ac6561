"""Headers below a store's lowest block, proven by the hash in each header of the one below
it."""

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
"""Maximum number of headers below the store's lowest block that are read and cached."""


class ProvenHeaders:
    """Cache of proven headers below the store; reads down to a requested height.

    May be shared among threads and greenlets.
    """

    def __init__(self, store: ChainStore) -> None:
        self._store = store
        # Waiting for another caller's read reserves no thread, as each caller has reserved
        # one.
        self._reads = ReadsInFlight(nullcontext)
        self._lock = threading.Lock()
        # Headers by height: a range without gaps that ends just below the store's lowest
        # block.
        self._headers: dict[int, Header] = {}

    def get(self, reader: Reader, height: int) -> Header | None:
        """Return the proven header of a height; ``None`` if it is too far below the store,
        above its head, or can't be read now.

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
            # A header between this height and the store can't be read now.
            return None
        return found

    def _known(self, base: int) -> dict[int, Header]:
        with self._lock:
            if base - 1 not in self._headers:
                self._headers = {}
            return self._headers

    def _extend(self, reader: Reader, base: int, height: int) -> None:
        """Read up to 400 more headers below the cached ones."""
        known = self._known(base)
        above = known[min(known)] if known else self._store.reads.block_meta(base).header
        low = max(height, above.height - STEP)
        # Share this read only among calls of the same node, as wrong headers refuse the node.
        headers = self._reads.get(
            (reader.name, above.height, low), lambda: linked_headers(reader, low, above)
        )
        with self._lock:
            # Skip this if another caller has replaced the cache meanwhile.
            if self._headers is known:
                all_known = (*known.values(), *headers)
                self._headers = {each.height: each for each in all_known if each.height < base}
