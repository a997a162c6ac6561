"""The latest heights that the nodes tell: the highest that its node shows is followed."""

from __future__ import annotations

from dataclasses import replace

from ..domain.responses import SyncInfo
from ..errors import UpstreamRefused
from .pool import Upstreams
from .reader import Reader

# Of so many polls one asks another node than the one that is ahead.
_OTHERS_EACH = 4


class Heads:
    """Latest heights of the nodes; the one that is ahead is asked for its block first, too."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._reported: dict[str, int] = {}
        self._polls = 0

    def ask(self, known: int, name: str = "") -> None:
        """Ask a node for its height, or the next where it fails.

        Without a name it is the one that is ahead, and now and then another. A height far
        above ``known`` counts if its node shows the block: nodes boast.
        """
        self._upstreams.ahead = name or self._next()
        found, height = self._upstreams.attempt(lambda reader: _shown(reader, known))
        self._reported[found] = height
        self._upstreams.ahead = max(self._reported, key=lambda each: self._reported[each])

    def _next(self) -> str:
        self._polls += 1
        turn, is_rest = divmod(self._polls, _OTHERS_EACH)
        if is_rest:
            return self._upstreams.ahead
        readers = self._upstreams.usable()
        return readers[turn % len(readers)].name

    def above(self, height: int) -> list[int]:
        """Return the heights above one, highest first."""
        return sorted({each for each in self._reported.values() if each > height}, reverse=True)

    def forget(self, height: int) -> None:
        """Forget which nodes reported a height that none shows, until one reports it again."""
        self._reported = {name: each for name, each in self._reported.items() if each != height}


def newest_of(reader: Reader) -> SyncInfo:
    """Return the newest block of a node that can be stored, from its status."""
    found = reader.status().sync_info
    if reader.node.known_dialect == "document":
        # interface.md: abci_info has no height, so only the next header has its app hash.
        return replace(found, latest_block_height=found.latest_block_height - 1)
    return found


def _shown(reader: Reader, known: int) -> tuple[str, int]:
    latest = newest_of(reader).latest_block_height
    if latest <= known + 1:
        return reader.name, latest
    try:
        return reader.name, reader.header(latest).height
    except UpstreamRefused:
        return reader.name, 0
