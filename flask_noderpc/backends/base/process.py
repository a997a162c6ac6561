"""Names of processes that own a lease, by which others on the machine see their end."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

_NAME = re.compile(r"(\d{1,10})-[0-9a-f]{8}@([0-9a-f-]{36}/pid:\[\d{1,20}\])/(\d{1,20})")


def own_name() -> str:
    """Return a name for this process that no other process ever has.

    On Linux it has the boot of the machine, the PID namespace and the time of the start:
    a PID alone is used again, and means another process in another container.
    """
    pid, token = os.getpid(), secrets.token_hex(4)
    machine, start = _machine(), _start_of(pid)
    return f"{pid}-{token}@{machine}/{start}" if machine and start else f"{pid}-{token}"


def has_ended(name: str) -> bool:
    """Return true if a process is known to have ended; false if it may run elsewhere."""
    found = _NAME.fullmatch(name)
    if found is None or found[2] != _machine():
        return False
    pid, start = int(found[1]), found[3]
    if _start_of(pid) == start:
        return False
    # /proc may be hidden from other users (hidepid), and signal 0 still finds the process.
    return bool(_start_of(pid)) or not _exists(pid)


def _machine() -> str:
    """Return the boot of this machine and the PID namespace; empty without ``/proc``."""
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
    """Return when a process started, in ticks since the boot; empty if that is not known."""
    fields = _stat(pid)
    return fields[19] if fields and fields[0] != "Z" else ""


def _is_zombie(pid: int) -> bool:
    """Return true for a process that has ended, and whose parent has not been told yet."""
    return _stat(pid)[:1] == ["Z"]


def _stat(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` from the state on; empty if unreadable."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    # The field before the state is a name in parentheses, which may hold anything.
    return stat.rpartition(")")[2].split()
