"""Threads that can be left alone: what they wait for can't be ended from outside."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
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
