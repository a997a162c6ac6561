"""Reads in flight: a node gets one request for several callers that need the same at the same
time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

T = TypeVar("T")


class ReadsInFlight:
    """Shares the result of a read, or its error, among concurrent callers of the same read.

    If a caller is killed, another one reads. Safe among threads and greenlets; ``reserve`` is
    entered while a caller waits for another's read.
    """

    def __init__(self, reserve: Callable[[], AbstractContextManager[None]]) -> None:
        self._reserve = reserve
        self._lock = threading.Lock()
        self._reads: dict[Hashable, Future[Any]] = {}

    def get(self, key: Hashable, read: Callable[[], T]) -> T:
        """Return the result of a read, or raise its error."""
        while True:
            with self._lock:
                shared = self._reads.get(key)
                if shared is None:
                    own: Future[T] = Future()
                    self._reads[key] = own
            if shared is None:
                return self._read(key, own, read)
            with suppress(CancelledError), self._reserve():
                found: T = shared.result()
                return found

    def _read(self, key: Hashable, own: Future[T], read: Callable[[], T]) -> T:
        try:
            result = read()
        except Exception as error:
            own.set_exception(error)
            raise
        else:
            own.set_result(result)
            return result
        finally:
            with self._lock:
                del self._reads[key]
            # This runs after GreenletExit and the like, and has no effect on a finished read.
            own.cancel()
