"""Servers in the comparison: our node in two ways, bare servers, and other nodes."""

from __future__ import annotations


class MissingError(Exception):
    """A peer is missing; the message says why."""
