"""Counters that the processes of a node share in memory.

Each process writes only its own row, so no lock is needed.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from itertools import count

_BYTES = 8
# Number of connections in the row of a process that accepts none.
_CLOSED = -1


def counter_file(rows: int) -> int:
    """Return the descriptor of an unnamed file for the counters of ``rows`` processes."""
    if sys.platform == "linux":
        # No folder may be writable except the home.
        descriptor = os.memfd_create("noderpc-counters")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    closed = _CLOSED.to_bytes(_BYTES, sys.byteorder, signed=True)
    os.write(descriptor, closed * rows + bytes(_BYTES) * rows)
    return descriptor


class Counters:
    """The counters of all processes, and this process's row in them.

    ``descriptor`` comes from :func:`counter_file`.
    """

    def __init__(self, descriptor: int, row: int = 0) -> None:
        self._memory = mmap.mmap(descriptor, 0)
        values = memoryview(self._memory).cast("q")
        rows = len(values) // 2
        self._connections, self._changes = values[:rows], values[rows:]
        self._row = row
        self._numbers = count(self._changes[row] + 1)

    def count_connection(self, more: int) -> None:
        """Add to the number of open connections of this process, if it accepts more."""
        if self._connections[self._row] >= 0:
            self._connections[self._row] += more

    def open(self) -> None:
        """Record that this process accepts connections."""
        self._connections[self._row] = max(self._connections[self._row], 0)

    def close(self, row: int | None = None) -> None:
        """Record that a process, by default this one, accepts no connections."""
        self._connections[self._row if row is None else row] = _CLOSED

    def has_most(self) -> bool:
        """Return true if another process has fewer open connections than this one; if each has
        many, an eighth fewer."""
        own = self._connections[self._row]
        fewest = min((each for each in self._connections if each >= 0), default=own)
        return own > fewest + fewest // 8

    def note_change(self) -> None:
        """Let the other processes know that the chain has changed."""
        # Several threads may do this, and never write the same number.
        self._changes[self._row] = next(self._numbers)

    def changes(self) -> bytes:
        """Return a value that differs after each change that a process has noted."""
        return self._changes.tobytes()


_joined: list[Counters] = []


def join(counters: Counters) -> None:
    """Let this process note changes of its chain in the counters."""
    _joined.append(counters)


def note_change() -> None:
    """Let the other processes of the node know that the chain has changed."""
    for counters in _joined:
        counters.note_change()


def changes() -> bytes:
    """Return a value that differs after each change that a process of the node has noted."""
    return _joined[0].changes() if _joined else b""
