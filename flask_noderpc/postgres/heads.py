"""The latest height that a process reports, which never decreases except after a rewind."""

from __future__ import annotations

import threading

from ..errors import StoreError
from . import schema
from .engine import POSTGRES
from .readers import Readers

_HEAD = (
    f"SELECT (SELECT max(height) FROM {POSTGRES.heights}), (SELECT max(number) FROM rewinds),"
    f" {schema.OLDEST}"
)


class LatestHeight:
    """Reads the latest height; raises :exc:`StoreError` if it decreased without a rewind.

    The height decreases after a failover to a standby that lacked the last blocks, and if the
    URL names a standby that lags.
    """

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._lock = threading.Lock()
        self._latest: tuple[int, int] = (0, 0)
        """The number of rewinds, and the height."""

    def latest(self) -> int:
        """Return the latest height."""
        head = self._read()
        if self._readers.holds_view:
            # The thread reads an older snapshot, so don't compare the height.
            return head[1]
        if head < self._latest:
            # Read again, because another thread may have reported a newer head in between.
            head = self._read()
        with self._lock:
            if head > self._latest:
                self._latest = head
                self._readers.forget_older(head[1])
            elif head < self._latest:
                raise StoreError(self._refusal(head[1]))
        return head[1]

    def _read(self) -> tuple[int, int]:
        height, rewinds, oldest = self._readers.one(_HEAD)
        schema.check_oldest(oldest)
        return rewinds or 0, height or 0

    def _refusal(self, height: int) -> str:
        return (
            f"expected a latest height of at least {self._latest[1]}, got {height}: a standby"
            " without the last blocks has become the primary, or NODERPC_DATABASE names a"
            " standby; restart to continue from there, and set synchronous_standby_names"
        )
