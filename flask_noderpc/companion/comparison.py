"""Events of results, which no hash proves: compared with those of all other nodes."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress

from ..backends.base.store import ChainStore
from ..domain.abci import BlockResults, Event
from ..errors import Busy, NotFound, UpstreamError
from .background import in_background
from .pool import Upstreams

log = logging.getLogger("flask_noderpc.companion")


class Comparison:
    """Compares the events of followed blocks in a thread of its own, the latest one first.

    A difference is logged: who is wrong is not known. ``ended`` ends it.
    """

    def __init__(self, store: ChainStore, upstreams: Upstreams, ended: threading.Event) -> None:
        self._store, self._upstreams, self._ended = store, upstreams, ended
        self._changed = threading.Event()
        self._height = 0
        self._thread = threading.Thread(target=self._run, name="noderpc-compare", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, height: int) -> None:
        """Compare a height soon; one that is still waiting is left out."""
        self._height = height
        self._changed.set()

    def close(self) -> None:
        """Wait for the thread, after ``ended`` is set."""
        self._changed.set()
        self._thread.join()

    def _run(self) -> None:
        with in_background(self._ended):
            self._compare_each()

    def _compare_each(self) -> None:
        while self._changed.wait() and not self._ended.is_set():
            self._changed.clear()
            with suppress(UpstreamError, Busy, NotFound):
                if len(self._upstreams.usable()) > 1:
                    self._compare(self._height)

    def _compare(self, height: int) -> None:
        stored = _events(self._store.results(height))
        told = self._upstreams.ask_all(
            lambda reader: (reader.name, _events(reader.results(height)))
        )
        for name, events in told:
            if events != stored:
                log.error(
                    "block %d: the events that %s tells are not those that are stored,"
                    " and nothing proves either",
                    height,
                    name,
                )


def _events(results: BlockResults) -> list[tuple[Event, ...]]:
    return [results.block_events, *(each.events for each in results.tx_results)]
