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
        self._settings = settings
        self._deadline = time.monotonic() + settings.search_timeout
        self._rows = settings.search_max_rows

    @property
    def limits(self) -> SearchLimits:
        """Return the limits of the backend's own search."""
        settings = self._settings
        return SearchLimits(
            settings.search_timeout, settings.search_max_rows, settings.max_response_bytes
        )

    def spend(self, rows: int) -> None:
        """Look at some more; raise :exc:`~flask_noderpc.errors.SearchTooCostly`."""
        self._rows -= rows
        if self._rows < 0:
            raise SearchTooCostly.by_rows(self._settings.search_max_rows)
        if time.monotonic() > self._deadline:
            raise SearchTooCostly.by_time(self._settings.search_timeout)
        # Under gevent the others have their turn here.
        next_turn()
