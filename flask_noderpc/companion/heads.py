"""Latest heights of the nodes, as they report them.

The follower uses the highest one whose block can be fetched.
"""

from __future__ import annotations

from dataclasses import replace

from ..domain.responses import SyncInfo
from ..errors import UpstreamRefused
from .pool import Upstreams
from .reader import Reader

# Every fourth poll asks another node than the one that is ahead.
_OTHERS_EACH = 4


class Heads:
    """Latest reported heights; the node with the highest one is asked first for the next
    block."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._reported: dict[str, int] = {}
        self._polls = 0

    def ask(self, known: int, name: str = "") -> None:
        """Ask one node for its height; after a failure ask another one.

        Ask the node ``name`` first, by default the node that is ahead, and every fourth time
        another one. A height of more than ``known + 1`` only counts if the node returns its
        header, as some nodes report wrong heights.
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
    """Return a node's sync info, with the height of its newest block that can be stored."""
    found = reader.status().sync_info
    if reader.node.known_dialect == "document":
        # The newest block can't be stored yet: in this dialect abci_info has no height, so the
        # app hash after a block is only known from the next header.
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
