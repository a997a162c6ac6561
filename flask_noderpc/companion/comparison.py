"""Compare the parts of results that no hash proves, such as events, with all other nodes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ..backends.sql.store import ChainStore
from ..domain.abci import BlockResults, Event
from ..errors import Busy, NotFound, UpstreamError
from .pool import Upstreams
from .threads import in_background

log = logging.getLogger("flask_noderpc.companion")

# Seconds for which the same difference of the same node is not logged again.
_LOG_EACH_S = 600.0
# ABCI allows log and info to differ from node to node.
_MAY_DIFFER = {"logs", "infos"}
# CometBFT 0.38 adds an attribute "mode" to events that earlier versions stored:
# state/store.go.
_MODES = (b"BeginBlock", b"EndBlock")


class Comparison:
    """Compares results of the latest blocks, and of samples of older ones, in a separate
    thread.

    A difference is only logged, as it is unknown which node is wrong. The thread ends when
    ``ended`` is set.
    """

    def __init__(self, store: ChainStore, upstreams: Upstreams, ended: threading.Event) -> None:
        self._store, self._upstreams, self._ended = store, upstreams, ended
        self._changed = threading.Event()
        self._waiting: dict[str, int] = {}
        self._logged: dict[tuple[str, ...], float] = {}
        self._thread = threading.Thread(target=self._run, name="noderpc-compare", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, height: int) -> None:
        """Schedule the comparison of a new height; a new height that is still waiting is
        dropped."""
        self._add("new", height)

    def add_older(self, height: int) -> None:
        """Schedule the comparison of a backfilled height; one that is still waiting is
        dropped."""
        self._add("older", height)

    def _add(self, kind: str, height: int) -> None:
        self._waiting[kind] = height
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
            for kind in ("new", "older"):
                height = self._waiting.pop(kind, 0)
                if height and not self._ended.is_set():
                    self.compare(height)

    def compare(self, height: int) -> None:
        """Compare a height now, if there are several usable nodes."""
        try:
            with suppress(UpstreamError, Busy, NotFound):
                if len(self._upstreams.usable_readers()) > 1:
                    self._compare(height)
        except Exception:
            log.exception("the results of block %d could not be compared", height)

    def _compare(self, height: int) -> None:
        stored = unproven_values(self._store.reads.results(height))
        reported = self._upstreams.ask_all(
            lambda reader: (reader.name, unproven_values(reader.results(height)))
        )
        dialects = {reader.node.known_dialect for reader in self._upstreams.usable_readers()}
        for name, parts in reported:
            differing = [part for part in stored if parts[part] != stored[part]]
            if differing:
                self._log(height, name, differing, of_versions=len(dialects) > 1)

    def _log(self, height: int, name: str, parts: list[str], *, of_versions: bool) -> None:
        key, now = (name, *parts), time.monotonic()
        if now - self._logged.get(key, -_LOG_EACH_S) < _LOG_EACH_S:
            return
        self._logged[key] = now
        level = logging.WARNING if _MAY_DIFFER.issuperset(parts) else logging.ERROR
        log.log(
            # Nodes of different versions return old results differently: log at INFO.
            logging.INFO if of_versions else level,
            "block %d: the stored %s and those that upstream %s reports differ, and nothing"
            " proves either; compare them with another node",
            height,
            " and ".join(parts),
            name,
        )


def unproven_values(results: BlockResults) -> dict[str, Any]:
    """Return the values that no hash proves, without differences between versions of nodes."""
    txs = results.tx_results
    return {
        "events": [_plain(results.block_events), *(_plain(each.events) for each in txs)],
        "codespaces": [each.codespace for each in txs],
        "logs": [each.log for each in txs],
        "infos": [each.info for each in txs],
    }


def _plain(events: Sequence[Event]) -> list[tuple[str, list[tuple[bytes, bytes]]]]:
    """Return types, keys and values of events, without attributes that some versions add."""
    return [
        (
            event.type,
            [
                (each.key, each.value)
                for each in event.attributes
                if each.index or each.key != b"mode" or each.value not in _MODES
            ],
        )
        for event in events
    ]
