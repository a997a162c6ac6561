"""Health of one upstream: whether it responds, and when its chain was last checked."""

from __future__ import annotations

import time
from dataclasses import dataclass

from .race import SILENT_S

# A node may be reset, upgraded, or replaced by one of another chain. Check it a second after a
# new connection, and each minute, as a proxy may switch machines without a new connection.
_CHECK_S, _CHECK_CONNECTED_S = 60.0, 1.0


@dataclass(slots=True)
class Health:
    """State of one upstream, updated by each request."""

    is_failing: bool = False
    probed_at: float = 0.0
    checked_at: float | None = None
    connected: int = 0
    """Number of connections that had been opened at the last check."""
    asked: int = 0
    """Number of requests in flight."""
    heard_at: float = 0.0
    """Time of the last response, or of the first request in flight."""

    def begin(self) -> None:
        """Count a request that is about to be sent."""
        if not self.asked:
            self.heard_at = time.monotonic()
        self.asked += 1

    def end(self) -> None:
        """Count a request that ended, with a response or a failure."""
        self.asked -= 1
        self.heard_at = time.monotonic()

    def is_silent(self) -> bool:
        """Return true if requests are in flight, and none has ended for two seconds."""
        return self.asked > 0 and time.monotonic() - self.heard_at >= SILENT_S

    def is_due(self, connected: int) -> bool:
        """Return true if the node's chain must be checked before the next request."""
        if self.checked_at is None:
            return True
        pause = _CHECK_S if connected == self.connected else _CHECK_CONNECTED_S
        return time.monotonic() - self.checked_at > pause
