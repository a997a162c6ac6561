"""Threads that their caller may abandon, and background work.

Background work is the backfill and comparisons: its requests wait for requests of the head and
of clients.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

T = TypeVar("T")


def started(action: Callable[[], T], name: str) -> Future[T]:
    """Run an action in a daemon thread, in a copy of this context; return the future of its
    result."""
    future: Future[T] = Future()
    run_here = copy_context().run

    def run() -> None:
        try:
            found = run_here(action)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(found)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


# Event that ends the background work of this context; threads that start in a copy of the
# context have the same event.
_ends: ContextVar[threading.Event | None] = ContextVar("noderpc_background", default=None)


@contextmanager
def in_background(ended: threading.Event) -> Iterator[None]:
    """Mark this context as background work, which ``ended`` ends: its requests let others go
    first."""
    token = _ends.set(ended)
    try:
        yield
    finally:
        _ends.reset(token)


def is_background() -> bool:
    """Return true if the current thread or greenlet does background work."""
    return _ends.get() is not None


def has_ended() -> bool:
    """Return true if the current thread does background work that must end."""
    ended = _ends.get()
    return ended is not None and ended.is_set()
