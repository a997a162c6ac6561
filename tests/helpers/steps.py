"""Steps of the interpreter as a measure of work that does not depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

_TIMES = 4
# Linear work takes 4 times the steps for 4 times the input, and quadratic work 16 times.
_MOST = 8


def count(work: Callable[[], object]) -> int:
    """Return the number of executed lines and of function calls, including C functions."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        nonlocal steps
        steps += 1
        return trace

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal steps
        steps += event == "c_call"

    tracer, profiler = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(profiler)
        sys.settrace(tracer)
    return steps


@dataclass(frozen=True)
class Shape:
    """A text of any size: one unit repeated between a beginning and an end."""

    before: bytes
    unit: bytes
    after: bytes

    def sized(self, size: int) -> bytes:
        """Return the text with a middle of ``size`` bytes."""
        return self.before + self.unit * (size // len(self.unit)) + self.after


def growth(work: Callable[[bytes], object], shape: Shape, size: int) -> float:
    """Return the steps for ``size`` bytes divided by the steps for a quarter of them.

    The steps that even an empty middle takes are subtracted from both.
    """
    small, large = shape.sized(size // _TIMES), shape.sized(size)
    # The first call may fill caches, such as that of decoders.
    work(small)
    fixed = count(lambda: work(shape.sized(0)))
    return (count(lambda: work(large)) - fixed) / max(
        count(lambda: work(small)) - fixed, size // _TIMES, 1
    )


def is_linear(ratio: float) -> bool:
    """Return true for the :func:`growth` of linear work."""
    return ratio < _MOST
