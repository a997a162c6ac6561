"""The fenced lease: one producer at a time, whatever clocks and pauses do.

Time only decides when another may try. What keeps the chain from forking is the epoch,
which each block's transaction compares.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...domain.time import SECOND
from ...errors import LeaseLost
from ..base.process import has_ended
from .connection import Connection


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to produce blocks; a later epoch overrules an earlier one."""

    owner: str
    epoch: int


@dataclass(frozen=True, slots=True)
class LeaseState:
    """Owner and expiry (ns) of the lease, or the error for which it was released."""

    owner: str = ""
    expires: int = 0
    last_error: str = ""


# Longer than any lease that is set with thought.
_MAX_LEASE = 60 * SECOND


def acquire(connection: Connection, owner: str, seconds: float) -> Lease | None:
    """The lease under a new epoch, unless another owner's still holds."""
    row = connection.execute(
        f"SELECT owner, epoch, expires FROM lease{connection.engine.for_update}"
    ).fetchone()
    now = connection.engine.now(connection)
    # An expiry far ahead was written by a clock that was wrong.
    limit = now + max(_MAX_LEASE, int(seconds * SECOND))
    is_held = row is not None and row[0] not in ("", owner) and now < row[2] <= limit
    if is_held and not has_ended(row[0]):
        return None
    lease = Lease(owner, row[1] + 1 if row else 1)
    connection.execute(
        "INSERT INTO lease (id, owner, epoch, expires) VALUES (1, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, epoch = excluded.epoch,"
        " expires = excluded.expires, last_error = ''",
        (owner, lease.epoch, now + int(seconds * SECOND)),
    )
    return lease


def renew(connection: Connection, lease: Lease, seconds: float) -> bool:
    """Extend the lease by ``seconds``; return false if another owner has it."""
    changed = connection.execute(
        "UPDATE lease SET expires = ? WHERE epoch = ? AND owner = ?",
        (connection.engine.now(connection) + int(seconds * SECOND), lease.epoch, lease.owner),
    )
    return changed.rowcount == 1


def release(connection: Connection, lease: Lease, last_error: str) -> None:
    """Release the lease; the epoch stays."""
    connection.execute(
        "UPDATE lease SET owner = '', expires = 0, last_error = ?"
        " WHERE epoch = ? AND owner = ?",
        (last_error, lease.epoch, lease.owner),
    )


def free(connection: Connection) -> None:
    """Clear the lease of a copy: its owner produces for the original."""
    connection.execute("UPDATE lease SET owner = '', expires = 0")


def fence(connection: Connection, lease: Lease) -> None:
    """Raise :exc:`LeaseLost` inside a block's transaction when another has taken over."""
    row = connection.execute(
        f"SELECT owner, epoch FROM lease{connection.engine.for_update}"
    ).fetchone()
    if row is None or tuple(row) != (lease.owner, lease.epoch):
        raise LeaseLost("another process produces blocks now; this one waits its turn")
