"""Reads in flight: a node is asked once for what several callers want at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class ReadsInFlight:
    """Shares the result of a read, or its error, among those who ask for the same meanwhile.

    Safe among threads and greenlets.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reads: dict[Hashable, Future[Any]] = {}

    def get(self, key: Hashable, read: Callable[[], T]) -> T:
        """Return the result of a read; raise what it raises."""
        with self._lock:
            shared = self._reads.get(key)
            if shared is None:
                own = self._reads[key] = Future()
        if shared is not None:
            found: T = shared.result()
            return found
        try:
            result = read()
        except BaseException as error:
            own.set_exception(error)
            raise
        else:
            own.set_result(result)
            return result
        finally:
            with self._lock:
                del self._reads[key]
