"""Checksums of the tables whose rows have a key of bytes or a name."""

from __future__ import annotations

from . import app_state, metadata
from .connection import Connection


def fill_checksums(at: Connection) -> bool:
    """Write the checksums of some rows of an earlier version; return false when all rows have
    one."""
    return metadata.fill_some(at) or app_state.fill_some(at)
