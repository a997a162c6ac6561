"""Application state with the writes of blocks that are not stored yet."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..backends.base.application import AppState, Changes, Waiting


class BatchState:
    """Application state with pending writes, which only the thread that added them sees.

    Several blocks can be executed one after another and then stored together.
    """

    def __init__(self, stored: AppState) -> None:
        self._stored = stored
        self._pending: dict[bytes, bytes | None] = {}
        self._thread = 0

    @contextmanager
    def pending(self) -> Iterator[None]:
        """Let this thread add pending writes and see them; discard them at the end."""
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
        """Return pairs as the stored state does."""
        if not self._sees_pending():
            return self._stored.range(prefix, after, limit)
        # Each pending write may remove a stored pair, so read one more pair for each.
        found = dict(self._stored.range(prefix, after, limit + len(self._pending)))
        for key, value in self._pending.items():
            if key.startswith(prefix) and (after is None or key > after):
                if value is None:
                    found.pop(key, None)
                else:
                    found[key] = value
        return sorted(found.items())[:limit]

    def waiting(self, cursor: int = 0, limit: int = 1000) -> Waiting:
        """Return pending transactions as the stored state does."""
        return self._stored.waiting(cursor, limit)
