"""Limits of the machine: file descriptors, and file systems that do not lock."""

from __future__ import annotations

import logging
import resource
from dataclasses import astuple, dataclass
from itertools import chain
from pathlib import Path

from ..errors import ConfigurationError

log = logging.getLogger("flask_noderpc.server")

# For the store, the executors, Python itself, and connections that are not closed yet.
_RESERVED = 96


@dataclass(frozen=True, slots=True)
class FdBudget:
    """Maximum numbers of what needs a file descriptor."""

    connections: int
    """Connections at each address."""
    websockets: int
    """Websockets of each mount."""
    waiting: int
    """Waiting calls of each mount."""


def budget_within(wanted: FdBudget, listeners: int, mounts: int) -> FdBudget:
    """Return the wanted numbers, reduced in proportion if there are too few descriptors."""
    limit = _raise_limit()
    per_mount = mounts * (wanted.websockets + wanted.waiting)
    files = listeners * wanted.connections + per_mount
    if limit == resource.RLIM_INFINITY or files <= limit - _RESERVED:
        return wanted
    part = max(0, limit - _RESERVED) / files
    budget = FdBudget(*(max(1, int(part * each)) for each in astuple(wanted)))
    pairs = zip(astuple(budget), astuple(wanted), strict=True)
    log.warning(
        "a process may have %d files open: %d connections at each address instead of %d, %d"
        " websockets instead of %d, %d waiting calls instead of %d (ulimit -n raises it,"
        " NODERPC_MAX_OPEN_CONNECTIONS asks for less)",
        limit,
        *chain.from_iterable(pairs),
    )
    return budget


def _raise_limit() -> int:
    """Raise the soft limit to the hard one, as Go's programs do; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            # Some systems report a higher limit than they grant.
            return soft
    return hard


_NETWORK = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "fuse.sshfs",
    "fuse.s3fs",
)


def refuse_network(file: Path, mounts: Path = Path("/proc/mounts")) -> None:
    """Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a file on a network's.

    SQLite: its write-ahead log needs memory that all processes share, and so one machine.
    """
    kind = _kind(file.parent.resolve(), mounts)
    if kind in _NETWORK:
        raise ConfigurationError(
            f"{file} is on a network file system ({kind}), where SQLite can't be shared:"
            " put NODERPC_DATABASE on a disk of this machine"
        )


def _kind(folder: Path, mounts: Path) -> str:
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        # Not Linux; nothing is known.
        return ""
    found = ("", "")
    for line in lines:
        _, where, kind, *_ = line.split(" ")
        where = where.replace("\\040", " ")
        if folder.is_relative_to(where) and len(where) >= len(found[0]):
            found = (where, kind)
    return found[1]
