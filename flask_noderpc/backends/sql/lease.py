"""Lease with fencing: only one process produces blocks, even if clocks are wrong or it pauses.

Time only decides when another process may take over. Each takeover increments the epoch, which
the transaction of each block compares, so that an earlier owner can't fork the chain. Owner
names let other processes on the same machine detect that the owner has ended.
"""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from ...domain.time import SECOND
from ...errors import LeaseLost
from .connection import Connection

_NAME = re.compile(r"(\d{1,10})-[0-9a-f]{8}@([0-9a-f-]{36}/pid:\[\d{1,20}\])/(\d{1,20})")


def own_name() -> str:
    """Return a name for this process that no other process has had or will have.

    On Linux the name contains the machine's boot ID, the PID namespace and the process's start
    time, because PIDs are reused, and mean different processes in different containers.
    """
    pid, token = os.getpid(), secrets.token_hex(4)
    machine, start = _machine(), _start_of(pid)
    return f"{pid}-{token}@{machine}/{start}" if machine and start else f"{pid}-{token}"


def has_ended(name: str) -> bool:
    """Return true if a process is known to have ended; false if it may still be running on
    another machine."""
    found = _NAME.fullmatch(name)
    if found is None or found[2] != _machine():
        return False
    pid, start = int(found[1]), found[3]
    if _start_of(pid) == start:
        return False
    # /proc may hide processes of other users (hidepid): send signal 0, which finds them.
    return bool(_start_of(pid)) or not _exists(pid)


def _machine() -> str:
    """Return the machine's boot ID and the PID namespace; an empty string without
    ``/proc``."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return not _is_zombie(pid)


def _start_of(pid: int) -> str:
    """Return the start time of a process in ticks since the boot; an empty string if it is not
    running or not visible."""
    fields = _stat(pid)
    return fields[19] if fields and fields[0] != "Z" else ""


def _is_zombie(pid: int) -> bool:
    """Return true for a process that has ended, but that its parent has not waited for yet."""
    return _stat(pid)[:1] == ["Z"]


def _stat(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` from the state on; empty if the file can't be
    read."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    # The field before the state is the command in parentheses, which may contain any character.
    return stat.rpartition(")")[2].split()


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to produce blocks; a later epoch invalidates an earlier one."""

    owner: str
    epoch: int


@dataclass(frozen=True, slots=True)
class LeaseState:
    """Owner of the lease and its expiry in nanoseconds since 1970, or the error after which
    the lease was released."""

    owner: str = ""
    expires: int = 0
    last_error: str = ""


# Maximum plausible duration of a lease in nanoseconds.
_MAX_LEASE = 60 * SECOND


def acquire(connection: Connection, owner: str, seconds: float) -> Lease | None:
    """Take the lease and increment its epoch; return ``None`` if another owner's lease is
    still valid."""
    row = connection.execute(
        f"SELECT owner, epoch, expires FROM lease{connection.engine.for_update}"
    ).fetchone()
    now = connection.engine.now(connection)
    # Ignore an expiry further in the future: a process with a wrong clock wrote it.
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
    """Release the lease and store an error; the epoch stays the same."""
    connection.execute(
        "UPDATE lease SET owner = '', expires = 0, last_error = ?"
        " WHERE epoch = ? AND owner = ?",
        (last_error, lease.epoch, lease.owner),
    )


def free(connection: Connection) -> None:
    """Clear the lease in a copy of a store, because its owner produces blocks for the
    original."""
    connection.execute("UPDATE lease SET owner = '', expires = 0")


def fence(connection: Connection, lease: Lease) -> None:
    """Raise :exc:`LeaseLost` if another process has taken over; to be called in a block's
    transaction."""
    row = connection.execute(
        f"SELECT owner, epoch FROM lease{connection.engine.for_update}"
    ).fetchone()
    if row is None or tuple(row) != (lease.owner, lease.epoch):
        raise LeaseLost("another process produces blocks now; this one waits for the lease")
