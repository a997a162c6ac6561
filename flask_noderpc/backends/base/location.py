"""Path or URI of a store."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit


class Location:
    """A file name or a ``file:`` URI, such as ``file:chain.db?mode=ro``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        uri = urlsplit(self.path) if self.path.startswith("file:") else None
        # Made absolute once: the process may change its folder.
        self.file = Path(unquote(uri.path) if uri else self.path).absolute()
        self.folder = self.file.parent
        self.options = dict(parse_qsl(uri.query)) if uri else {}

    @property
    def shown(self) -> str:
        """The file's name for errors: as it was given, or that of the URI."""
        return str(self.file) if self.path.startswith("file:") else self.path
