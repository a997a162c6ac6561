"""Marks of what a call reads: what nothing proves, and what is known of some heights alone.

Marks belong to the call's own thread or greenlet, and are headers of its response.
"""

from __future__ import annotations

from contextvars import ContextVar

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


def _mark(mark: tuple[str, str]) -> None:
    known = _MARKS.get()
    if mark not in known:
        _MARKS.set((*known, mark))


def marks() -> Marks:
    """Return the marks of this call; a result with any is not cached."""
    return _MARKS.get()
