"""What the calls of a batch may have together."""

from __future__ import annotations

import time

from ..errors import AnswerTooLarge, BatchTimedOut, RPCError
from ..settings import Settings


class BatchBudget:
    """The bytes and the time that the calls of a batch may have together."""

    def __init__(self, settings: Settings) -> None:
        self._seconds = settings.batch_timeout
        self._until = time.monotonic() + settings.batch_timeout
        self._bytes = settings.max_response_bytes

    def spent(self) -> RPCError | None:
        """Why no further call is answered."""
        if self._bytes <= 0:
            return AnswerTooLarge()
        return BatchTimedOut(self._seconds) if time.monotonic() > self._until else None

    def takes(self, size: int) -> bool:
        """Whether an answer of this size still fits."""
        self._bytes -= size
        return self._bytes > 0
