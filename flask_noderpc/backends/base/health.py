"""Health of a chain and of its dependencies, for ``/readyz`` and ``/metrics``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...domain.time import SECOND

# The next block counts as late after 10 block intervals, but not before 15 seconds, as
# intervals vary.
_LATE_INTERVALS, _LATE_S = 10, 15.0


@dataclass(frozen=True, slots=True)
class Measure:
    """A value for Prometheus, such as the latest height of the upstream nodes."""

    name: str
    """Name without the suffix ``_total`` of counters."""
    doc: str
    """Description in one sentence."""
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    is_counter: bool = False


class Health:
    """Health of the services that a chain depends on, apart from its store; by default no
    services."""

    def problem(self) -> str:
        """Return the reason why requests can't be answered well now, such as late blocks; empty
        if there is no problem."""
        return ""

    def missing(self) -> Sequence[str]:
        """Return phrases that describe data which the chain lacks, although requests are
        answered."""
        return ()

    def notes(self) -> Sequence[str]:
        """Return phrases with further information for the operator."""
        return ()

    def measures(self) -> Sequence[Measure]:
        """Return values for Prometheus; the set of names and labels never changes."""
        return ()


def late_age(now: int, block_time: int, interval_s: float) -> float | None:
    """Return the age of the newest block in seconds if the next block is late, otherwise
    ``None``.

    ``now`` and ``block_time`` are in nanoseconds since 1970, ``interval_s`` is the number of
    seconds between blocks.
    """
    age = (now - block_time) / SECOND
    return age if age > max(_LATE_S, _LATE_INTERVALS * interval_s) else None
