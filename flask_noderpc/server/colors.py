"""Colours that the environment asks for."""

from __future__ import annotations

import os


def wants_color() -> bool | None:
    """Return what NO_COLOR or FORCE_COLOR ask for; ``None`` for colours on terminals alone."""
    # https://no-color.org and https://force-color.org: any text that is not empty.
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR") else None
