"""The latest height as a process has reported it, which only falls after a rewind."""

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
    """The latest height; raises :exc:`StoreError` if it fell without a rewind.

    This happens after a fail-over to a standby that lacked the last blocks, and if the URL
    names a standby that lags.
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
            # An older snapshot is in use.
            return head[1]
        if head < self._latest:
            # Another thread may have reported a newer head between the read and this check.
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
            f"the latest height is {height}, and was {self._latest[1]}: a standby without the"
            " last blocks is the primary now, or NODERPC_DATABASE names one; see"
            " synchronous_standby_names, and restart to go on from there"
        )
