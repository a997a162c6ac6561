"""Marks of what a call reads: what nothing proves, and what is known of some heights alone.

Marks belong to the call's own thread or greenlet, and are headers of its response.
"""

from __future__ import annotations

from contextvars import ContextVar

from ...errors import SearchIncomplete

Marks = tuple[tuple[str, str], ...]
"""Names of headers with their values."""

UNVERIFIED = "X-NodeRPC-Provenance", "unverified"
COVERAGE = "X-NodeRPC-Coverage"

_MARKS: ContextVar[Marks] = ContextVar("marks", default=())


def begin_reads() -> None:
    """Forget what was read by an earlier call."""
    _MARKS.set(())


def mark_unverified() -> None:
    """Mark the reads of this call: what one of them returned is proven by nothing."""
    _mark(UNVERIFIED)


def mark_coverage(low: int, high: int) -> None:
    """Mark a search of this call: it has looked at these heights, and at no others."""
    _mark((COVERAGE, f"{low}-{high}"))


def check_complete() -> None:
    """Raise :exc:`~flask_noderpc.errors.SearchIncomplete` if a search of this call has looked
    at some heights alone, for a response that has no headers to say so."""
    for name, heights in _MARKS.get():
        if name == COVERAGE:
            low = heights.partition("-")[0]
            raise SearchIncomplete(
                f"the search has looked at heights {heights} alone, and a response over a"
                f" websocket can't say so: add tx.height >= {low} to the query (block.height in"
                f" block_search), or send it over HTTP, where the header {COVERAGE} says so"
            )


def _mark(mark: tuple[str, str]) -> None:
    known = _MARKS.get()
    if mark not in known:
        _MARKS.set((*known, mark))


def marks() -> Marks:
    """Return the marks of this call; a result with any is not cached."""
    return _MARKS.get()
