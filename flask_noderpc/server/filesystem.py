"""Refuse stores on file systems that do not lock."""

from __future__ import annotations

from pathlib import Path

from ..errors import ConfigurationError

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
