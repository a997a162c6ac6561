"""Provenance of what a call reads: a backend marks what nothing proves.

The mark belongs to the call's own thread or greenlet.
"""

from __future__ import annotations

from contextvars import ContextVar

_UNVERIFIED: ContextVar[bool] = ContextVar("unverified", default=False)


def begin_reads() -> None:
    """Forget what was read by an earlier call."""
    _UNVERIFIED.set(False)


def mark_unverified() -> None:
    """Mark the reads of this call: what one of them returned is proven by nothing."""
    _UNVERIFIED.set(True)


def has_unverified() -> bool:
    """Return true if something that was read is proven by nothing."""
    return _UNVERIFIED.get()
