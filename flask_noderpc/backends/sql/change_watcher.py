"""Waiting for changes of the store, by this process or others.

Writes of this process notify at once. For writes of others, one of the waiting threads polls
the store a few times a second, for all of them.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable


class ChangeWatcher(ABC):
    """Wakes the threads that wait for the store to change."""

    def __init__(self, poll_s: float) -> None:
        self._poll_s = poll_s
        self._changed = threading.Condition()
        self._count = 0
        self._is_polled = False

    def notify(self) -> None:
        """Wake waiting threads after a write of this process."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait_until(self, holds: Callable[[], bool], timeout: float) -> bool:
        """Wait until a condition holds, ``timeout`` seconds at most; return true if it does."""
        deadline = time.monotonic() + timeout
        while True:
            # Taken before the look, so that no change falls between look and wait.
            seen = self._count
            if holds():
                return True
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            self._wait(seen, remaining)

    def _wait(self, seen: int, timeout: float) -> None:
        with self._changed:
            if self._count != seen:
                return
            if self._is_polled:
                self._changed.wait(timeout)
                return
            self._is_polled = True
        try:
            self._poll(seen, timeout)
        finally:
            with self._changed:
                self._is_polled = False
                # Another waiting thread polls from now on.
                self._changed.notify_all()

    def _poll(self, seen: int, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while (remaining := deadline - time.monotonic()) > 0:
            if self._is_new():
                self.notify()
            with self._changed:
                if self._count != seen:
                    return
                self._changed.wait(min(remaining, self._poll_s))

    @abstractmethod
    def _is_new(self) -> bool:
        """Return true if the store has changed since the last call."""
