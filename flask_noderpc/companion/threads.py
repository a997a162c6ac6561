"""Threads that can be left alone: what they wait for can't be ended from outside."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def started(action: Callable[[], T], name: str) -> Future[T]:
    """Do an action in a daemon thread; its result is in the future."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            found = action()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(found)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
