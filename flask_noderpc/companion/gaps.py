"""Record of gaps: heights whose block or results no node returned, to be fetched again
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
# The number of gaps is limited, as all are stored in one row that each change rewrites.
MAX_GAPS, _MAX_REASON = 1_000, 300
_FIRST_PAUSE_S, _MAX_PAUSE_S = 30, 3_600


@dataclass(frozen=True, slots=True)
class Gap:
    """A height whose block or results the store lacks."""

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
    """Return an error's text on one line, cut to 300 characters, with the name of the node."""
    text = str(error)
    shown = " ".join(text[:_MAX_REASON].split()) + ("..." if len(text) > _MAX_REASON else "")
    return shown if error.name in shown else f"upstream {error.name}: {shown}"


class Gaps:
    """Gaps of one store, changed only by the process that holds the lease; may be shared among
    threads."""

    def __init__(self, store: ChainStore) -> None:
        self._lock = threading.Lock()
        self._store, self._gaps = store, gaps_of(store)
        self._is_full = False

    def __len__(self) -> int:
        return len(self._gaps)

    def note(self, height: int, part: str, reason: str) -> None:
        """Record that a height's block or results could not be fetched; the pause until the
        next attempt doubles each time."""
        with self._lock:
            self._note(height, part, reason)

    def _note(self, height: int, part: str, reason: str) -> None:
        known = self._gaps.get(height)
        if known is None and len(self._gaps) >= MAX_GAPS:
            if not self._is_full:
                log.error(
                    "%d heights lack their block or results, the most that is recorded: height"
                    " %d and further ones are not fetched again until some are complete",
                    MAX_GAPS,
                    height,
                )
                self._is_full = True
            return
        failures = known.failures + 1 if known is not None and known.part == part else 1
        pause = min(_MAX_PAUSE_S, _FIRST_PAUSE_S << min(failures - 1, 10))
        self._gaps[height] = Gap(height, part, reason, failures, time.time() + pause)
        if failures == 1:
            log.error(
                "the %s of height %d could not be fetched, and will be retried: %s",
                part,
                height,
                reason,
            )
        self._write()

    def remove(self, height: int) -> None:
        """Record that a height is complete."""
        with self._lock:
            if self._gaps.pop(height, None) is not None:
                log.warning("height %d is complete now", height)
                self._write()

    def due(self, *, at_once: bool = False) -> list[int]:
        """Return the heights whose results are to be fetched again now, highest first."""
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
        """Remove missing results of heights that were pruned, and missing blocks that are
        stored now."""
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
