"""Health of a chain and of what it depends on, for ``/readyz`` and ``/metrics``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...domain.time import SECOND

# Blocks are late after so many intervals, and so many seconds: one may take longer than others.
_LATE_INTERVALS, _LATE_S = 10, 15.0


@dataclass(frozen=True, slots=True)
class Measure:
    """A value for Prometheus, such as the latest height of the nodes that are followed."""

    name: str
    """Name without the suffix ``_total`` of counters."""
    doc: str
    """One sentence for people."""
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    is_counter: bool = False


class Health:
    """State of everything that a chain depends on beside its store; by default there is
    nothing."""

    def problem(self) -> str:
        """Return why calls can't be answered well now, such as blocks that are late; empty if
        all is well."""
        return ""

    def missing(self) -> Sequence[str]:
        """Return what is not stored although calls are answered, each as a phrase."""
        return ()

    def notes(self) -> Sequence[str]:
        """Return what else an operator wants to know, each as a phrase."""
        return ()

    def measures(self) -> Sequence[Measure]:
        """Return values for Prometheus; their names and labels are always the same."""
        return ()


def late_age(now: int, block_time: int, interval_s: float) -> float | None:
    """Return the age of the newest block in seconds if the next one is late, else ``None``.

    ``now`` and ``block_time`` are nanoseconds since 1970, ``interval_s`` the seconds from block
    to block.
    """
    age = (now - block_time) / SECOND
    return age if age > max(_LATE_S, _LATE_INTERVALS * interval_s) else None
