"""Reads in flight: a node is asked once for what several callers want at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

T = TypeVar("T")


class ReadsInFlight:
    """Shares the result of a read, or its error, among those who ask for the same meanwhile.

    A caller that is killed takes nobody along: another one reads. Safe among threads and
    greenlets; ``reserve`` holds while one waits for another's read.
    """

    def __init__(self, reserve: Callable[[], AbstractContextManager[None]]) -> None:
        self._reserve = reserve
        self._lock = threading.Lock()
        self._reads: dict[Hashable, Future[Any]] = {}

    def get(self, key: Hashable, read: Callable[[], T]) -> T:
        """Return the result of a read; raise what it raises."""
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
            # After GreenletExit and the like; it has no effect on one that is done.
            own.cancel()
