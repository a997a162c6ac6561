"""Servers that are compared: our node in two ways, bare servers, and other nodes."""

from __future__ import annotations


class MissingError(Exception):
    """A peer can't be had here; the text says why."""
