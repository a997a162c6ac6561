"""Threads that may be abandoned, as what they wait for can't be interrupted, and background
work: the backfill and comparisons yield to the head and to callers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

T = TypeVar("T")


def started(action: Callable[[], T], name: str) -> Future[T]:
    """Run an action in a daemon thread, in a copy of this context; return a future."""
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


# The event that ends background work; threads started with a copy of the context have it, too.
_ends: ContextVar[threading.Event | None] = ContextVar("noderpc_background", default=None)


@contextmanager
def in_background(ended: threading.Event) -> Iterator[None]:
    """Let requests of this context wait for others that are not in the background, until
    ``ended`` is set."""
    token = _ends.set(ended)
    try:
        yield
    finally:
        _ends.reset(token)


def is_background() -> bool:
    """Return true if the current thread or greenlet does background work."""
    return _ends.get() is not None


def has_ended() -> bool:
    """Return true if this is background work that was ended."""
    ended = _ends.get()
    return ended is not None and ended.is_set()
