"""Whether blocks are made that should be: by this process, or by the one with the lease."""

from __future__ import annotations

from ..backend.store import LeaseState
from ..domain.time import SECOND
from .pacemaker import Pacemaker

# How long a lease that has lapsed may wait for somebody who takes it.
_GRACE_S = 5.0


def why_no_blocks(state: LeaseState, pacemaker: Pacemaker | None, now: int) -> str:
    """Why no blocks are made, in a sentence; empty where they are.

    A process that complains gives the lease back, so that another one may do better.
    """
    is_ours = pacemaker is not None and state.owner == pacemaker.producer.owner
    if is_ours and pacemaker is not None and not pacemaker.is_running:
        # Blocks are made by hand, and in between the lease lapses.
        return ""
    if state.owner and not is_ours and now < state.expires:
        return ""
    complaint = (pacemaker.complaint if pacemaker else "") or state.complaint
    if complaint:
        return f"no block is made: {complaint}"
    late_s = (now - state.expires) // SECOND
    if state.owner and late_s > _GRACE_S:
        return (
            f"no block is made: the producer fell silent, its lease lapsed {late_s} seconds"
            " ago, and no process took it over"
        )
    return ""
