"""Clocks for block times, in nanoseconds since 1970."""

from __future__ import annotations

import time
from typing import Protocol

from ..domain.time import SECOND
from ..errors import ValueNotAllowed

# Times have 64 bits in Go's UnixNano and in the store; leave a year for later blocks.
MAX_TIME = (1 << 63) - 365 * 86_400 * SECOND


class Clock(Protocol):
    """Source of the current time."""

    def now(self) -> int:
        """Return the nanoseconds since 1970."""


class SystemClock:
    """The system's wall clock."""

    def now(self) -> int:
        """Return the nanoseconds since 1970."""
        return time.time_ns()


class ShiftedClock:
    """Clock with an adjustable offset from another clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start = 0
        self.offset = 0
        """Nanoseconds by which this clock is ahead of the other clock, or of one that had the
        time of :meth:`begin`."""

    def now(self) -> int:
        """Return the nanoseconds since 1970."""
        return self._clock.now() + self._start + self.offset

    def begin(self, time_ns: int) -> None:
        """Set the time that the clock has now with an offset of 0."""
        self._start = time_ns - self._clock.now()

    def set(self, time_ns: int) -> None:
        """Set the current time.

        Raise :exc:`~flask_noderpc.errors.ValueNotAllowed` for a time after :data:`MAX_TIME`.
        """
        self._set_offset(time_ns - self._clock.now() - self._start)

    def shift(self, nanoseconds: int) -> None:
        """Advance the time; raise the error of :meth:`set`."""
        self._set_offset(self.offset + nanoseconds)

    def _set_offset(self, offset: int) -> None:
        self.check(self._clock.now() + self._start + offset)
        self.offset = offset

    def check(self, time_ns: int) -> None:
        """Raise :exc:`~flask_noderpc.errors.ValueNotAllowed` for a time after
        :data:`MAX_TIME`."""
        if time_ns > MAX_TIME:
            raise ValueNotAllowed(
                f"timestamp: expected at most {MAX_TIME // SECOND}, got {time_ns // SECOND}"
            )


class ManualClock:
    """Clock for tests that only changes when :meth:`advance` is called."""

    def __init__(self, start: int = 1_700_000_000 * SECOND) -> None:
        self._now = start

    def now(self) -> int:
        """Return the nanoseconds since 1970."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Advance the time."""
        self._now += int(seconds * SECOND)
