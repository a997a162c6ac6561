"""Budget of one search."""

from __future__ import annotations

import time

from ..concurrency import next_turn
from ..domain.search import SearchLimits
from ..errors import SearchTooCostly
from ..settings import Settings


class SearchBudget:
    """The time and the rows of a search, shared by all that one call looks at."""

    def __init__(self, settings: Settings) -> None:
        self.limits = SearchLimits.within(settings.search_timeout, settings.max_response_bytes)
        """The limits of the backend's own search."""
        self._deadline = time.monotonic() + self.limits.seconds
        self._rows = self.limits.rows

    def spend(self, rows: int) -> None:
        """Look at some more; raise :exc:`~flask_noderpc.errors.SearchTooCostly`."""
        self._rows -= rows
        if self._rows < 0:
            raise SearchTooCostly.by_rows(self.limits.rows)
        if time.monotonic() > self._deadline:
            raise SearchTooCostly.by_time(self.limits.seconds)
        # Under gevent the others have their turn here.
        next_turn()
