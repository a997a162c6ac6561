"""Heights that no node could provide: the backfill continues without them, and asks again
later."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from .. import jsoncodec
from ..backends.sql.store import ChainStore
from ..errors import UpstreamError

log = logging.getLogger("flask_noderpc.companion")

BLOCK, RESULTS = "block", "results"
_KEY = "gaps"
# The gaps are stored in one row, which is written after each change.
MAX_GAPS, _MAX_REASON = 1_000, 300
_FIRST_PAUSE_S, _MAX_PAUSE_S = 30, 3_600


@dataclass(frozen=True, slots=True)
class Gap:
    """A height whose block or results are missing in the store."""

    height: int
    part: str
    """Missing part: ``block`` or ``results``."""
    reason: str
    """Last error of a node, with the node's name."""
    failures: int = 1
    retry_at: float = 0.0
    """Time of the next attempt, in seconds since 1970."""


def gaps_of(store: ChainStore) -> dict[int, Gap]:
    """Return the gaps of a store by their heights, lowest first."""
    found = store.metadata(_KEY)
    gaps = jsoncodec.decode(found, list[Gap]) if found else []
    return {gap.height: gap for gap in gaps}


def reason_of(error: UpstreamError) -> str:
    """Return an error's text in one line, with the name of the node; the node's own text is
    shortened."""
    text = str(error)
    shown = " ".join(text[:_MAX_REASON].split()) + ("..." if len(text) > _MAX_REASON else "")
    return shown if error.name in shown else f"upstream {error.name}: {shown}"


class Gaps:
    """Gaps of one store, which only the process with its lease changes; may be shared among
    threads."""

    def __init__(self, store: ChainStore) -> None:
        self._lock = threading.Lock()
        self._store, self._gaps = store, gaps_of(store)
        self._is_full = False

    def __len__(self) -> int:
        return len(self._gaps)

    def note(self, height: int, part: str, reason: str) -> None:
        """Record a failure; the height is due again after a pause, which doubles each time."""
        with self._lock:
            self._note(height, part, reason)

    def _note(self, height: int, part: str, reason: str) -> None:
        known = self._gaps.get(height)
        if known is None and len(self._gaps) >= MAX_GAPS:
            if not self._is_full:
                log.error(
                    "%d heights are recorded as incomplete: height %d and further ones are not"
                    " recorded, and not asked for again until some of these are complete",
                    MAX_GAPS,
                    height,
                )
                self._is_full = True
            return
        failures = known.failures + 1 if known is not None and known.part == part else 1
        pause = min(_MAX_PAUSE_S, _FIRST_PAUSE_S << min(failures - 1, 10))
        self._gaps[height] = Gap(height, part, reason, failures, time.time() + pause)
        if failures == 1:
            log.error("the %s of height %d could not be fetched: %s", part, height, reason)
        self._write()

    def remove(self, height: int) -> None:
        """Record that a height is complete."""
        with self._lock:
            if self._gaps.pop(height, None) is not None:
                log.warning("height %d is complete now", height)
                self._write()

    def due(self, *, at_once: bool = False) -> list[int]:
        """Return the heights whose results should be requested again, highest first."""
        with self._lock:
            self._forget_old()
            now = time.time()
            due = [
                gap.height
                for gap in self._gaps.values()
                if gap.part == RESULTS and (at_once or gap.retry_at <= now)
            ]
        return sorted(due, reverse=True)

    def _forget_old(self) -> None:
        """Remove heights that were pruned, and blocks that are stored now."""
        base = self._store.reads.base_height()
        kept = {
            height: gap
            for height, gap in self._gaps.items()
            if (height < base) == (gap.part == BLOCK)
        }
        if kept != self._gaps:
            self._gaps = kept
            self._write()

    def _write(self) -> None:
        gaps = [self._gaps[height] for height in sorted(self._gaps)]
        self._store.set_metadata(_KEY, jsoncodec.encode(gaps))
