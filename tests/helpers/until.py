"""Wait for a state instead of a time."""

from __future__ import annotations

import time
from collections.abc import Callable

# On a busy machine, a state may come late.
PATIENCE = 120.0
PATIENT = {"evm_timeout": 4 * PATIENCE, "search_timeout": 4 * PATIENCE}
"""Settings of a node whose calls and searches may take long on a busy machine."""
_POLL_S = 0.01


def until(holds: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Poll until a state holds; fail with ``what`` after ``patience`` seconds."""
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline, f"not within {patience} s: {what}"
        time.sleep(_POLL_S)
