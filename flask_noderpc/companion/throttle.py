"""Limit the requests to one upstream: calls per second, requests in flight, and pauses after
the node reported overload."""

from __future__ import annotations

import threading
import time
from bisect import insort
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from ..errors import Busy
from .threads import has_ended, is_background

_FIRST_PAUSE_S = 0.5
_MAX_PAUSE_S = 30.0
# One more request in flight is allowed after this many successes.
_SUCCESSES = 20
# Seconds by which urgent calls may exceed the rate: otherwise the head would have to wait
# until the calls of a background batch are paid for.
_AHEAD_S = 1.0
# Background calls allowed per urgent call while background work waits, which gives it a fifth
# of all calls. Otherwise a head that uses the whole rate would stop the backfill.
_BACKGROUND_EACH = 0.25
# Interval at which waiting background work checks whether it must end.
_LOOK_S = 0.5


@dataclass(order=True, slots=True)
class _Waiter:
    """A waiting request. Urgent requests sort before background ones, each in order of
    arrival."""

    is_background: bool
    number: int
    calls: int = field(compare=False)
    woken: threading.Event = field(default_factory=threading.Event, compare=False)


class Throttle:
    """Admits requests to one upstream; may be shared among threads and greenlets.

    ``concurrency`` is the maximum number of requests in flight, ``rate`` the maximum number of
    calls per second (0: no limit). Background work waits without a time limit, never takes the
    last free request in flight unless only one is allowed, and gets a fifth of the calls while
    urgent requests wait. After an overload, half as many requests are allowed in flight, after
    a pause that doubles each time.
    """

    def __init__(self, name: str, concurrency: int, rate: float) -> None:
        self._name, self._limit, self._rate = name, concurrency, rate
        self._lock = threading.Lock()
        self._line: list[_Waiter] = []
        self._numbers = count()
        self._allowed = concurrency
        self._in_flight = 0
        self._successes = 0
        self._owed = 0.0
        """Number of calls that background work may make before urgent ones."""
        self._paid_at = 0.0
        """Time at which ``rate`` allows the next call."""
        self._paused_until = 0.0
        self._pause = 0.0

    @contextmanager
    def admit(self, calls: int, seconds: float) -> Iterator[None]:
        """Wait until a request with this many calls may be sent; count it as in flight in this
        context.

        Raise :exc:`~flask_noderpc.errors.Busy` if that takes longer than ``seconds``.
        """
        waiter = _Waiter(is_background(), next(self._numbers), calls)
        with self._lock:
            insort(self._line, waiter)
        try:
            self._wait(waiter, time.monotonic() + seconds)
        finally:
            with self._lock:
                self._line.remove(waiter)
                self._wake_first()
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1
                self._wake_first()

    def _wait(self, waiter: _Waiter, deadline: float) -> None:
        """Return once the request is admitted."""
        while True:
            with self._lock:
                pause = self._pause_of(waiter)
                if pause is not None and pause <= 0:
                    self._pay(waiter)
                    return
                waiter.woken.clear()
            left = deadline - time.monotonic()
            if waiter.is_background:
                left = 0.0 if has_ended() else _LOOK_S
            elif pause is not None and pause > left:
                left = 0.0
            if left <= 0:
                raise Busy(
                    f"upstream {self._name}: the limit on requests to this node is reached",
                    "retry later, or raise NODERPC_UPSTREAM_RATE and"
                    " NODERPC_UPSTREAM_CONCURRENCY",
                )
            waiter.woken.wait(left if pause is None else min(left, pause))

    def _pay(self, waiter: _Waiter) -> None:
        self._in_flight += 1
        if self._rate:
            cost = waiter.calls / self._rate
            self._paid_at = max(self._paid_at, time.monotonic()) + cost
        if waiter.is_background:
            self._owed = 0.0
        elif self._line[-1].is_background:
            self._owed += waiter.calls * _BACKGROUND_EACH

    def _first(self) -> _Waiter:
        """Return the request to admit next: an urgent one, unless it is background work's
        turn."""
        first = self._line[0]
        if first.is_background or not self._line[-1].is_background:
            return first
        waiting = next(each for each in self._line if each.is_background)
        is_owed = self._owed >= waiting.calls and self._in_flight < self._most(waiting)
        return waiting if is_owed else first

    def _most(self, waiter: _Waiter) -> int:
        """Return the number of requests in flight below which this request may be sent."""
        return self._allowed - int(waiter.is_background and self._allowed > 1)

    def _pause_of(self, waiter: _Waiter) -> float | None:
        """Return the seconds that a request must wait; ``None`` if another request must wake
        it."""
        if self._first() is not waiter or self._in_flight >= self._most(waiter):
            return None
        ahead = 0.0 if waiter.is_background else _AHEAD_S
        return max(self._paid_at - ahead, self._paused_until) - time.monotonic()

    def _wake_first(self) -> None:
        if self._line:
            self._first().woken.set()

    def record_success(self) -> None:
        """Reset the pause, and allow more requests in flight after several successes."""
        with self._lock:
            self._pause = 0.0
            self._successes += 1
            if self._successes >= _SUCCESSES and self._allowed < self._limit:
                self._successes = 0
                self._allowed += 1
                self._wake_first()

    def record_overload(self, retry_after: float | None) -> None:
        """Pause all requests, and halve the number that may be in flight."""
        with self._lock:
            self._successes = 0
            self._allowed = max(1, self._allowed // 2)
            self._pause = min(_MAX_PAUSE_S, self._pause * 2 or _FIRST_PAUSE_S)
            pause = self._pause if retry_after is None else min(retry_after, _MAX_PAUSE_S)
            self._paused_until = max(self._paused_until, time.monotonic() + pause)
