"""A private cluster with PostgreSQL's own defaults, and the processor time of its processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.helpers.postgres import Cluster

from ..process import descent

_TICKS = os.sysconf("SC_CLK_TCK")
# Settings under which a crash loses nothing, as with SQLite, with the memory of a small
# machine.
_OPTIONS = {
    "fsync": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
}


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Run a cluster."""
    made = Cluster(**_OPTIONS)
    try:
        yield made
    finally:
        made.close()


def cpu_s(made: Cluster) -> float:
    """Return the processor time of a cluster's processes, and of those that have ended."""
    first = int((made.folder / "data" / "postmaster.pid").read_text().split()[0])
    ticks = 0
    for pid in descent(first):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS
