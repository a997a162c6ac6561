"""Health of one upstream: does it answer, and when was it checked."""

from __future__ import annotations

import time
from dataclasses import dataclass

from .race import SILENT_S

# A node may be reset, upgraded, or replaced by that of another chain: after it was connected to
# anew, and now and then, as another machine may be behind the same proxy.
_CHECK_S, _CHECK_CONNECTED_S = 60.0, 1.0


@dataclass(slots=True)
class Health:
    """State of one upstream, as its requests have shown it."""

    is_failing: bool = False
    probed_at: float = 0.0
    checked_at: float | None = None
    connected: int = 0
    """Connections that had been opened at the check."""
    asked: int = 0
    """Requests that wait for an answer."""
    heard_at: float = 0.0
    """When it answered last, or was asked while nothing else was."""

    def begin(self) -> None:
        """Count a request."""
        if not self.asked:
            self.heard_at = time.monotonic()
        self.asked += 1

    def end(self) -> None:
        """Count its answer, or its failure."""
        self.asked -= 1
        self.heard_at = time.monotonic()

    def is_silent(self) -> bool:
        """Return true if the node answers nothing of what it is asked."""
        return self.asked > 0 and time.monotonic() - self.heard_at >= SILENT_S

    def is_due(self, connected: int) -> bool:
        """Return true if the node is to be checked before the next request."""
        if self.checked_at is None:
            return True
        pause = _CHECK_S if connected == self.connected else _CHECK_CONNECTED_S
        return time.monotonic() - self.checked_at > pause
