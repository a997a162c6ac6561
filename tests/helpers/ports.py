"""Free ports for servers that can't be given a listening socket."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

_FIRST, _LAST = 10_000, 65_535
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Test suites that seed the common generator with the same number must get different ports.
_dice = random.SystemRandom()
# A test may ask for a second port before the first is in use.
_returned: set[int] = set()


def free_port() -> int:
    """Return a free port outside of the range from which the kernel chooses ports.

    The kernel could give a port of its own range to another test suite before the server takes
    it, and the check whether the server is up would reach that suite's server.
    """
    # Linux, Documentation/networking/ip-sysctl.rst: the default is "32768 60999".
    text = _RANGE.read_text() if _RANGE.exists() else "32768 60999"
    low, high = map(int, text.split())
    # If the kernel's range has all ports, use one in it.
    free = [*range(_FIRST, low), *range(high + 1, _LAST)] or list(range(low, high))
    # Each of pytest-xdist's workers, gw0, gw1 ..., has separate ports.
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    free = free[worker :: int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))]
    while True:
        port: int = _dice.choice(free)
        if port in _returned:
            continue
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        _returned.add(port)
        return port
