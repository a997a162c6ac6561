"""Those that are compared: our node in two ways, what it stands on, and others like it."""

from __future__ import annotations


class MissingError(Exception):
    """A peer can't be had here; the text says why."""
