"""Ports for the servers of others, which can't be handed a socket that listens."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_FIRST = 10_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port that nobody has and that the kernel gives to nobody who asks for any.

    Of the kernel's own, a suite that runs beside this one could be given it before the server
    takes it; and whoever asks whether the server is there would be answered by another.
    """
    # Linux, Documentation/networking/ip-sysctl.rst: "32768 60999" where nothing was set.
    end = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 32_768
    while True:
        port = random.randrange(_FIRST, end)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
