"""A check of linear growth that does not depend on the machine's speed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from math import inf
from typing import TypeVar

_Input = TypeVar("_Input")

# On a busy machine one run does not prove that the code is slow.
_RUNS = 5
# For four times the input, linear work takes 4 times as long, and quadratic work 16 times.
_TIMES, _MOST = 4, 10


def check_linear(
    work: Callable[[_Input], object], make: Callable[[int], _Input], size: int
) -> None:
    """Fail if the time of some work grows faster than its input, up to this size."""
    inputs = [make(size // _TIMES), make(size)]
    quarter = whole = inf
    for _ in range(_RUNS):
        quarter, whole = map(min, (quarter, whole), (_seconds(work, each) for each in inputs))
        if whole < _MOST * quarter:
            return
    raise AssertionError(f"{_TIMES} times as much took {whole / quarter:.1f} times")


def _seconds(work: Callable[[_Input], object], made: _Input) -> float:
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        work(made)
        return time.process_time() - began
    finally:
        gc.enable()
