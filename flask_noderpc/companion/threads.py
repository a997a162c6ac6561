"""Threads that can be left alone, as what they wait for can't be ended from outside, and work
in the background: the backfill and comparisons give way to the head and to callers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

T = TypeVar("T")


def started(action: Callable[[], T], name: str) -> Future[T]:
    """Do an action in a daemon thread, in this context; its result is in the future."""
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
