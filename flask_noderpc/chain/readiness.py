"""Readiness check: blocks are produced by this process or by the lease's owner."""

from __future__ import annotations

from ..backends.base.store import LeaseState
from ..domain.time import SECOND
from .block_scheduler import BlockScheduler

# How long a lapsed lease may stay without a new owner before the chain counts as not ready.
_GRACE_S = 5.0


def not_producing_reason(
    state: LeaseState, block_scheduler: BlockScheduler | None, now: int
) -> str:
    """Return the reason why no blocks are produced, or an empty string if they are.

    A process that can't produce releases the lease, so that another may acquire it.
    """
    is_ours = block_scheduler is not None and state.owner == block_scheduler.producer.owner
    if is_ours and block_scheduler is not None and not block_scheduler.is_running:
        # Blocks are produced manually, and the lease lapses between them.
        return ""
    if state.owner and not is_ours and now < state.expires:
        return ""
    last_error = (block_scheduler.last_error if block_scheduler else "") or state.last_error
    if last_error:
        return f"no block is made: {last_error}"
    late_s = (now - state.expires) // SECOND
    if state.owner and late_s > _GRACE_S:
        return (
            f"no block is made: the producer fell silent, its lease lapsed {late_s} seconds"
            " ago, and no process took it over"
        )
    return ""
