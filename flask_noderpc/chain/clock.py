"""What time it is for the chain."""

from __future__ import annotations

import time
from typing import Protocol

from ..domain.time import SECOND
from ..errors import ValueNotAllowed

# Go: UnixNano has 64 bits, as has the store. What is left is for the blocks to come.
MAX_TIME = (1 << 63) - 365 * 86_400 * SECOND


class Clock(Protocol):
    """Gives nanoseconds since 1970."""

    def now(self) -> int:
        """The time."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> int:
        """The time."""
        return time.time_ns()


class ShiftedClock:
    """Another clock, and how far this one is from it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.offset = 0
        """Nanoseconds ahead."""

    def now(self) -> int:
        """The time."""
        return self._clock.now() + self.offset

    def set(self, time_ns: int) -> None:
        """Let it be some time now; raise :exc:`~flask_noderpc.errors.ValueNotAllowed`."""
        self._move(time_ns - self._clock.now())

    def shift(self, nanoseconds: int) -> None:
        """Let time pass; raise as :meth:`set` does."""
        self._move(self.offset + nanoseconds)

    def _move(self, offset: int) -> None:
        time_ns = self._clock.now() + offset
        if time_ns > MAX_TIME:
            raise ValueNotAllowed(
                f"timestamp {time_ns // SECOND} is too far ahead: the last is"
                f" {MAX_TIME // SECOND}"
            )
        self.offset = offset


class ManualClock:
    """A clock that moves when told to; for tests."""

    def __init__(self, start: int = 1_700_000_000 * SECOND) -> None:
        self._now = start

    def now(self) -> int:
        """The time."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += int(seconds * SECOND)
