"""Paths and queries of upstreams, which may hold keys: hidden in urllib3's own log.

urllib3 writes them at DEBUG for each request, and at WARNING for headers that it can't parse.
"""

from __future__ import annotations

import logging


class _HiddenPaths(logging.Filter):
    """Replaces paths in the records of a logger."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, without the paths."""
        text = record.getMessage()
        # The longest first: one may begin as another.
        for path in sorted(self.paths, key=len, reverse=True):
            if path in text:
                text = text.replace(path, "/…")
                record.msg, record.args = text, ()
        return True


_hidden = _HiddenPaths()
for _name in ("urllib3.connection", "urllib3.connectionpool"):
    logging.getLogger(_name).addFilter(_hidden)


def hide_path(path: str) -> None:
    """Hide a path with its query, unless it is that of every node."""
    if path != "/":
        _hidden.paths = _hidden.paths | {path}
