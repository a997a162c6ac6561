"""Start of worker processes, which get their specs and their sockets over a socket.

So ``noderpc start`` can start the first process before anything else. This process imports what
it needs while the command reads its settings. This module imports nothing of the package.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

# Settings of glibc's malloc; mallopt(3). By default, glibc raises both thresholds to the size
# of the largest freed block, and large bodies then fragment a heap that never shrinks. One
# arena is enough, as the GIL serializes threads. Values in the environment take precedence.
_MALLOC = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
}
_MAX_BYTES = 1 << 16
# The kernel's limit, SCM_MAX_FD; unix(7).
_MAX_DESCRIPTORS = 253


class _Launched(NamedTuple):
    process: subprocess.Popen[bytes]
    channel: socket.socket


_prepared: list[_Launched] = []


def prepare() -> None:
    """Start a process of a node without an app, for the first spec."""
    _prepared.append(_launch(has_app=False))


def discard() -> None:
    """End the process that was started by :func:`prepare` if it has got no spec."""
    while _prepared:
        process, channel = _prepared.pop()
        channel.close()
        process.kill()
        process.wait()


def start(spec: bytes, descriptors: Sequence[int], *, has_app: bool) -> subprocess.Popen[bytes]:
    """Start a process with an encoded spec and copies of file descriptors, or use the one that
    was started by :func:`prepare`."""
    is_prepared = bool(_prepared) and not has_app
    process, channel = _prepared.pop() if is_prepared else _launch(has_app=has_app)
    # Ignore that the process has ended: its parent notices that elsewhere.
    with channel, suppress(BrokenPipeError, ConnectionResetError):
        sent = socket.send_fds(channel, [spec], descriptors)
        channel.sendall(spec[sent:])
    return process


def receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    """Return the spec and the file descriptors from the parent process; the spec is empty if
    the parent has ended before."""
    spec, descriptors, *_ = socket.recv_fds(channel, _MAX_BYTES, _MAX_DESCRIPTORS)
    while part := channel.recv(_MAX_BYTES):
        spec += part
    return spec, descriptors


def _launch(*, has_app: bool) -> _Launched:
    ours, theirs = socket.socketpair()
    # Without an app, don't import modules from the current folder (-P).
    python = [sys.executable, *([] if has_app else ["-P"])]
    with theirs:
        process = subprocess.Popen(
            [*python, "-m", f"{__package__}.worker", str(theirs.fileno())],
            env={**_MALLOC, **os.environ},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            # In another session, a Ctrl-C in the terminal only reaches the parent, which stops
            # its processes.
            start_new_session=True,
        )
    return _Launched(process, ours)
