"""Times for which the steps of a long write hold the writer."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import quantiles

import click

# A block that is made meanwhile waits at most this long for a step.
_BUDGET_S = 0.05


def timed(step: Callable[[], object]) -> list[float]:
    """Repeat a step until nothing is left; return the durations in seconds."""
    durations: list[float] = []
    while True:
        began = time.perf_counter()
        if not step():
            return durations
        durations.append(time.perf_counter() - began)


def show(durations: list[float]) -> None:
    """Print the number of steps, and the ratio of the longest step to its limit."""
    longest = max(durations)
    half, most = quantiles(durations, n=100)[49::49] if durations[1:] else (longest, longest)
    click.echo(
        f"{len(durations)} steps: half of at most {1000 * half:.1f} ms, 99 % of"
        f" {1000 * most:.1f}, the longest of {1000 * longest:.1f}:"
        f" {longest / _BUDGET_S:.2f} of {1000 * _BUDGET_S:.0f} ms"
    )
