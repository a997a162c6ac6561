"""Budget of a JSON-RPC batch."""

from __future__ import annotations

import time

from ..errors import AnswerTooLarge, BatchTimedOut, RPCError
from ..settings import Settings

# geth: as long as its HTTP server lets a response take.
BATCH_S = 30.0
"""Maximum seconds of a batch."""


class BatchBudget:
    """Budget of bytes and seconds that the calls of a batch share."""

    def __init__(self, settings: Settings) -> None:
        self._until = time.monotonic() + BATCH_S
        self._bytes = settings.max_response_bytes

    def spent(self) -> RPCError | None:
        """Return the error for all further calls once the budget is spent, else ``None``."""
        if self._bytes <= 0:
            return AnswerTooLarge()
        return BatchTimedOut(BATCH_S) if time.monotonic() > self._until else None

    def consume(self, size: int) -> bool:
        """Take an answer of so many bytes from the budget; return true if it fits."""
        self._bytes -= size
        return self._bytes > 0
