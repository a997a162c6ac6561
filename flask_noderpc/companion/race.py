"""Return the first response of several nodes: when one fails or is silent, the next one is
asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..errors import Busy, UpstreamError, UpstreamRefused
from .http import Unusable
from .reader import NoResults
from .threads import started

T = TypeVar("T")

SILENT_S = 2.0
"""Seconds without a response after which another node is asked as well."""
_LOOK_S = SILENT_S / 4


@dataclass(frozen=True, slots=True)
class Attempt(Generic[T]):
    """A request to one node."""

    make: Callable[[], tuple[T] | None]
    """Function that sends the request; returns the result in a 1-tuple, or ``None`` after a
    failure."""
    is_silent: Callable[[], bool]
    """Function that returns true if the node has not responded to any request for a while."""


def first_result(attempts: Iterable[Attempt[T]]) -> tuple[T] | None:
    """Make the attempts, each in a thread; return the first result in a 1-tuple, ``None`` if
    all fail.

    An attempt starts when all earlier ones have failed or their node is silent; attempts at
    silent nodes keep running.
    """
    running: set[Future[tuple[T] | None]] = set()
    for attempt in attempts:
        running.add(started(attempt.make, "noderpc-ask"))
        while running and not attempt.is_silent():
            done, running = wait(running, _LOOK_S, FIRST_COMPLETED)
            if (found := _found(done)) is not None:
                return found
    while running:
        done, running = wait(running, None, FIRST_COMPLETED)
        if (found := _found(done)) is not None:
            return found
    return None


def _found(done: Iterable[Future[tuple[T] | None]]) -> tuple[T] | None:
    results = (each.result() for each in done)
    return next((each for each in results if each is not None), None)


def _order(error: Exception) -> int:
    kinds = (Unusable, NoResults)
    return next((place for place, kind in enumerate(kinds) if isinstance(error, kind)), 2)


def failure_of(
    failures: Sequence[UpstreamError | Busy], final: tuple[type[UpstreamError], ...]
) -> UpstreamError | Busy:
    """Return the failure after which to retry; raise a failure of the ``final`` types, or a
    refusal if all upstreams refused."""
    refusals = [each for each in failures if isinstance(each, UpstreamRefused)]
    others = [each for each in failures if each not in refusals]
    if not others:
        final = (UpstreamRefused,)
    if found := [each for each in failures if isinstance(each, final)]:
        # Raise the failure of the node that has most: an unusable response may hide the data,
        # a node without results still has the block, and other nodes lack both.
        raise min(found, key=_order)
    return others[0]
