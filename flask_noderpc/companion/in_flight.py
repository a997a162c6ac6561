"""Share a read in flight: several callers of the same read at a time cause one request to a
node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

T = TypeVar("T")


class ReadsInFlight:
    """Shares the result of a read, or its error, among concurrent callers of the same read.

    If the caller that reads is killed, a waiting one reads instead. ``reserve`` returns a
    context in which a caller waits for another's read. Safe among threads and greenlets.
    """

    def __init__(self, reserve: Callable[[], AbstractContextManager[None]]) -> None:
        self._reserve = reserve
        self._lock = threading.Lock()
        self._reads: dict[Hashable, Future[Any]] = {}

    def get(self, key: Hashable, read: Callable[[], T]) -> T:
        """Return the result of the read for ``key``, or raise its error; call ``read`` unless
        another caller's read for this key is in flight."""
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
            # If the caller was killed, as by GreenletExit, wake the waiting callers: one of
            # them reads. This has no effect on a finished read.
            own.cancel()
