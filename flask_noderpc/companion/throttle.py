"""Budget of one upstream: calls per second, requests in flight, and pauses after overload."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import Busy

_FIRST_PAUSE_S = 0.5
_MAX_PAUSE_S = 30.0
# One more request in flight is tried after so many that succeeded.
_SUCCESSES = 20


class Throttle:
    """Admits requests to one upstream; safe to share among threads and greenlets.

    ``concurrency`` is the most requests in flight, ``rate`` the most calls per second, 0 for
    no limit. An upstream that is overloaded gets half as many requests in flight, after a pause
    that doubles each time.
    """

    def __init__(self, name: str, concurrency: int, rate: float) -> None:
        self._name, self._limit, self._rate = name, concurrency, rate
        self._changed = threading.Condition()
        self._allowed = concurrency
        self._in_flight = 0
        self._successes = 0
        self._next_at = 0.0
        self._pause = 0.0

    @contextmanager
    def admitted(self, calls: int, seconds: float) -> Iterator[None]:
        """Wait for the budget of a request with so many calls, and hold it.

        Raise :exc:`~flask_noderpc.errors.Busy` if that takes longer than ``seconds``.
        """
        self._enter(calls, time.monotonic() + seconds)
        try:
            yield
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify()

    def _enter(self, calls: int, deadline: float) -> None:
        with self._changed:
            while self._in_flight >= self._allowed or self._wait() > 0:
                left = deadline - time.monotonic()
                if self._wait() > left or left <= 0:
                    raise Busy(
                        f"the upstream {self._name} is asked as often as it may be",
                        "NODERPC_UPSTREAM_RATE and NODERPC_UPSTREAM_CONCURRENCY raise that",
                    )
                full = self._in_flight >= self._allowed
                self._changed.wait(left if full else max(0.001, min(left, self._wait())))
            self._in_flight += 1
            if self._rate:
                self._next_at = max(self._next_at, time.monotonic()) + calls / self._rate

    def _wait(self) -> float:
        return self._next_at - time.monotonic()

    def succeeded(self) -> None:
        """End the pauses, and allow more requests in flight after a while."""
        with self._changed:
            self._pause = 0.0
            self._successes += 1
            if self._successes >= _SUCCESSES and self._allowed < self._limit:
                self._successes = 0
                self._allowed += 1
                self._changed.notify()

    def overloaded(self, retry_after: float | None) -> None:
        """Pause, and halve the number of requests in flight."""
        with self._changed:
            self._successes = 0
            self._allowed = max(1, self._allowed // 2)
            self._pause = min(_MAX_PAUSE_S, self._pause * 2 or _FIRST_PAUSE_S)
            pause = self._pause if retry_after is None else min(retry_after, _MAX_PAUSE_S)
            self._next_at = max(self._next_at, time.monotonic() + pause)
