"""Transactions that this process has taken and the store has not yet."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from ...domain.rpc_results import PendingCount
from ...protocol.comet.hashes import tx_hash


class Incoming:
    """Counts them beside those that wait for a block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hashes: Counter[bytes] = Counter()
        self._stored: dict[object, Callable[[], None]] = {}
        self._size = 0

    def __contains__(self, own_hash: bytes) -> bool:
        return own_hash in self._hashes

    @property
    def count(self) -> PendingCount:
        """Number of these transactions, and their bytes."""
        return PendingCount(len(self._stored), self._size)

    def add(self, tx: bytes, stored: Callable[[], None]) -> Callable[[], None]:
        """Count one until what is returned is called; ``stored`` waits for the store."""
        own_hash, size, key = tx_hash(tx), len(tx), object()

        def forget() -> None:
            with self._lock:
                del self._stored[key]
                self._size -= size
                self._hashes[own_hash] -= 1
                if not self._hashes[own_hash]:
                    del self._hashes[own_hash]

        with self._lock:
            self._stored[key] = stored
            self._size += size
            self._hashes[own_hash] += 1
        return forget

    def wait(self) -> None:
        """Wait until the store has taken those of now, or refused them."""
        for stored in tuple(self._stored.values()):
            # The sender gets the error.
            with suppress(Exception):
                stored()
