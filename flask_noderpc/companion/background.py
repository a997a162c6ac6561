"""Work that gives way to the head and to callers: the backfill, and comparisons."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# The event that ends it; of threads that are started with a copy of the context, too.
_ends: ContextVar[threading.Event | None] = ContextVar("noderpc_background", default=None)


@contextmanager
def in_background(ended: threading.Event) -> Iterator[None]:
    """Let requests wait for those that are not made in the background, until ``ended``."""
    token = _ends.set(ended)
    try:
        yield
    finally:
        _ends.reset(token)


def is_background() -> bool:
    """Return true if the work of this thread or greenlet gives way."""
    return _ends.get() is not None


def has_ended() -> bool:
    """Return true if it is done in the background, and nobody waits for it any more."""
    ended = _ends.get()
    return ended is not None and ended.is_set()
