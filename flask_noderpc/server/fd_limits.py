"""As many open files as the system lets a process have."""

from __future__ import annotations

import logging
import resource
from dataclasses import astuple, dataclass
from itertools import chain

log = logging.getLogger("flask_noderpc.server")

# The store, the executors, what Python has open, and those that come before others go.
_OWN = 96


@dataclass(frozen=True, slots=True)
class Room:
    """How many there may be of those that are counted apart from each other."""

    connections: int
    """At each address."""
    websockets: int
    """Of each mount."""
    waiting: int
    """Calls that wait for a block, of each mount."""


def room_within(wanted: Room, listeners: int, mounts: int) -> Room:
    """What is wanted, or as much of each as there are files for."""
    most = _raise_limit()
    apart = mounts * (wanted.websockets + wanted.waiting)
    files = listeners * wanted.connections + apart
    if most == resource.RLIM_INFINITY or files <= most - _OWN:
        return wanted
    part = max(0, most - _OWN) / files
    room = Room(*(max(1, int(part * each)) for each in astuple(wanted)))
    pairs = zip(astuple(room), astuple(wanted), strict=True)
    log.warning(
        "a process may have %d files open: %d connections at each address instead of %d, %d"
        " websockets instead of %d, %d waiting calls instead of %d (ulimit -n raises it,"
        " NODERPC_MAX_OPEN_CONNECTIONS and NODERPC_MAX_WEBSOCKETS ask for less)",
        most,
        *chain.from_iterable(pairs),
    )
    return room


def _raise_limit() -> int:
    """Use all that is allowed: Go's programs do so as well, shells rarely give it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            # Some systems tell a higher limit than they give.
            return soft
    return hard
