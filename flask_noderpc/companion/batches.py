"""How many calls a node takes in one body."""

from __future__ import annotations

# CometBFT 0.38.8: rpc/config, max_request_batch_size; earlier versions have no limit.
MAX_BATCH = 10
# A larger batch is tried after so many requests: what refused the last one may be gone.
_TRIED_AFTER = 200


class BatchSize:
    """Calls of a batch: fewer after one that is refused or too large, more after a while.

    ``rate`` are the calls per second that the node is asked, 0 for no limit: a batch is worth
    at most a second of it.
    """

    def __init__(self, rate: float = 0.0) -> None:
        self._most = min(MAX_BATCH, max(2, int(rate))) if rate else MAX_BATCH
        self.calls = self._most
        self._taken = 0

    def refused(self, calls: int) -> None:
        """Ask half as many, after a batch of so many calls."""
        self.calls = max(1, min(self.calls, calls) // 2)
        self._taken = 0

    def taken(self) -> None:
        """Count a request that was answered."""
        self._taken += 1
        if self.calls < self._most and self._taken >= _TRIED_AFTER:
            self.calls = min(self._most, 2 * self.calls)
            self._taken = 0
