"""Limit of the rows and the time of a search."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ...domain.search import SearchLimits
from ...errors import SearchTooCostly

# What SQLite's engine does for one row, about, and how often it asks whether to go on.
_STEPS_A_ROW = 12
_STEPS_A_LOOK = 20_000


@contextmanager
def bounded(at: sqlite3.Connection, limits: SearchLimits, deadline: float) -> Iterator[None]:
    """Raise :exc:`SearchTooCostly` for whatever takes more steps or time than allowed."""
    allowed = limits.rows * _STEPS_A_ROW
    interval = min(allowed, _STEPS_A_LOOK)
    steps = 0

    def is_too_much() -> bool:
        nonlocal steps
        steps += interval
        return steps > allowed or time.monotonic() > deadline

    at.set_progress_handler(is_too_much, interval)
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        if steps > allowed:
            raise SearchTooCostly.by_rows(limits.rows) from None
    finally:
        at.set_progress_handler(None, 0)
    if time.monotonic() > deadline:
        raise SearchTooCostly.by_time(limits.seconds)
