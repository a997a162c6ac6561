"""Application state that includes the writes of blocks that are not stored yet."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..backends.base.application import AppState, Changes, Waiting


class BatchState:
    """Application state with pending writes, which only the thread that adds them can read.

    It serves to execute several blocks one after another, and then store them together.
    """

    def __init__(self, stored: AppState) -> None:
        self._stored = stored
        self._pending: dict[bytes, bytes | None] = {}
        self._thread = 0

    @contextmanager
    def pending(self) -> Iterator[None]:
        """In this context, this thread can add and read pending writes, which are discarded at
        the end."""
        self._thread = threading.get_ident()
        try:
            yield
        finally:
            self._thread = 0
            self._pending.clear()

    def add(self, changes: Changes) -> None:
        """Add the writes of a block to the pending writes."""
        self._pending.update(changes)

    def _sees_pending(self) -> bool:
        return bool(self._pending) and self._thread == threading.get_ident()

    def get(self, key: bytes) -> bytes | None:
        """Return a value, or ``None``."""
        if self._sees_pending() and key in self._pending:
            return self._pending[key]
        return self._stored.get(key)

    def range(
        self, prefix: bytes, after: bytes | None = None, limit: int = 1000
    ) -> Sequence[tuple[bytes, bytes]]:
        """Return pairs of key and value as :meth:`AppState.range` does, including pending
        writes."""
        if not self._sees_pending():
            return self._stored.range(prefix, after, limit)
        # Read one more pair for each pending write, which may remove a stored pair.
        found = dict(self._stored.range(prefix, after, limit + len(self._pending)))
        for key, value in self._pending.items():
            if key.startswith(prefix) and (after is None or key > after):
                if value is None:
                    found.pop(key, None)
                else:
                    found[key] = value
        return sorted(found.items())[:limit]

    def waiting(self, cursor: int = 0, limit: int = 1000) -> Waiting:
        """Return pending transactions from the stored state."""
        return self._stored.waiting(cursor, limit)
