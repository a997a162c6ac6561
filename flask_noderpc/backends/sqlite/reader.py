"""Read connection that knows the version of the chain."""

from __future__ import annotations

import sqlite3

from ..base.reads import ChainVersion

_VERSION = (
    "SELECT (SELECT max(number) FROM rewinds),"
    " (SELECT hash FROM blocks ORDER BY height LIMIT 1),"
    " (SELECT hash FROM blocks ORDER BY height DESC LIMIT 1)"
)


class Reader(sqlite3.Connection):
    """A connection that remembers what the chain was when it last looked."""

    seen: tuple[int, ChainVersion | None] = (-1, None)
    """With SQLite's number for the content of the file, as this connection sees it."""

    def version(self) -> ChainVersion | None:
        """Return the chain's version; read again only after a write."""
        (number,) = self.execute("PRAGMA data_version").fetchone()
        if number != self.seen[0]:
            rewinds, base, head = self.execute(_VERSION).fetchone()
            # Two chains without a block can't be distinguished.
            version = ChainVersion((rewinds, base), head) if head else None
            self.seen = number, version
        return self.seen[1]
