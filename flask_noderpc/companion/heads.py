"""Latest heights that nodes report.

The follower uses the highest one whose block the node really returns.
"""

from __future__ import annotations

from dataclasses import replace

from ..domain.responses import SyncInfo
from ..errors import UpstreamRefused
from .pool import Upstreams
from .reader import Reader

# One of this many polls asks another node than the one that is ahead.
_OTHERS_EACH = 4


class Heads:
    """Latest heights of the nodes; the node that is ahead is the first that is asked for its
    block."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._reported: dict[str, int] = {}
        self._polls = 0

    def ask(self, known: int, name: str = "") -> None:
        """Ask a node for its height, or the next node after a failure.

        Without a name, this is the node that is ahead, and sometimes another one. A height far
        above ``known`` only counts if the node has the block, as some nodes report wrong
        heights.
        """
        self._upstreams.ahead = name or self._next()
        found, height = self._upstreams.attempt(lambda reader: _known_height(reader, known))
        self._reported[found] = height
        self._upstreams.ahead = max(self._reported, key=lambda each: self._reported[each])

    def _next(self) -> str:
        self._polls += 1
        turn, is_rest = divmod(self._polls, _OTHERS_EACH)
        if is_rest:
            return self._upstreams.ahead
        readers = self._upstreams.usable_readers()
        return readers[turn % len(readers)].name

    def above(self, height: int) -> list[int]:
        """Return the reported heights above a height, highest first."""
        return sorted({each for each in self._reported.values() if each > height}, reverse=True)

    def forget(self, height: int) -> None:
        """Forget a reported height for which no node has the block, until a node reports it
        again."""
        self._reported = {name: each for name, each in self._reported.items() if each != height}


def newest_of(reader: Reader) -> SyncInfo:
    """Return the newest block of a node that can be stored, from its status."""
    found = reader.status().sync_info
    if reader.node.known_dialect == "document":
        # In interface.md abci_info has no height, so only the next header has the app hash.
        return replace(found, latest_block_height=found.latest_block_height - 1)
    return found


def _known_height(reader: Reader, known: int) -> tuple[str, int]:
    latest = newest_of(reader).latest_block_height
    if latest <= known + 1:
        return reader.name, latest
    try:
        return reader.name, reader.header(latest).height
    except UpstreamRefused:
        return reader.name, 0
