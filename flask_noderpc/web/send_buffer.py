"""The kernel's send buffer of a websocket, of which some is reserved for a Close.

To a peer that reads nothing a server writes until that buffer is full. Linux takes a few
megabytes for one connection, and then not even a Close.
"""

from __future__ import annotations

import socket
from contextlib import suppress

# Bytes that the kernel takes and has not sent; those on their way are not counted.
_MAX_UNSENT = 1 << 17
# As setsockopt(2) takes it; the kernel has a limit of its own, net.core.wmem_max.
_SMALL, _LARGE = 1 << 15, 1 << 20
_UNLIMITED = 0


def reserve(sock: socket.socket) -> None:
    """Limit what the kernel takes."""
    _set(sock, _MAX_UNSENT, _SMALL)


def release(sock: socket.socket) -> None:
    """Let the kernel take all that it can; a blocked writer is woken."""
    _set(sock, _UNLIMITED, _LARGE)


def _set(sock: socket.socket, unsent: int, whole: int) -> None:
    # It may be shut, and not all systems know the option.
    with suppress(OSError, AttributeError):
        if sock.family == socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, whole)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, unsent)
