"""As many open files as the system lets a process have."""

from __future__ import annotations

import logging
import resource

log = logging.getLogger("flask_noderpc.serve")

# The store, the executors, what Python has open, and those that come before others go.
_OWN = 96


def connections(wanted: int, listeners: int) -> int:
    """How many connections each of some addresses has room for, ``wanted`` at most."""
    most = _raise_limit()
    if most == resource.RLIM_INFINITY:
        return wanted
    room = max(1, (most - _OWN) // max(1, listeners))
    if room < wanted:
        log.warning(
            "a process may have %d files open: %d connections at each address instead of %d"
            " (ulimit -n raises it, NODERPC_MAX_OPEN_CONNECTIONS asks for less)",
            most,
            room,
            wanted,
        )
    return min(wanted, room)


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
