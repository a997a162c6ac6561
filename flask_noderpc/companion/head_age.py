"""Age of a store's head, which does not count the time during which the chain was halted."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from ..backends.sql.store import ChainStore
from ..domain.block import Header
from ..domain.responses import SyncInfo
from ..domain.time import SECOND, to_text
from . import shared_state
from .agreement import CURRENT_NS, are_halted
from .heads import newest_of
from .light import is_too_old
from .pool import Upstreams
from .trust import TrustOptions

log = logging.getLogger("flask_noderpc.companion")

_NOTE_EACH_S = 60.0
# Number of latest blocks from which the mean block interval is computed.
_SAMPLE = 20
# The chain counts as halted after this many mean intervals, as a chain that only makes blocks
# for transactions may pause for long.
_HALTED_INTERVALS = 10


class HeadAge:
    """Time since a store's head was last known to be the newest block of its chain.

    The age counts from the header's time, or from when all nodes last reported no newer block,
    as validators can still be punished while a chain is halted. Once a head is older than the
    trusting period, no response of a node makes it young again; only ``--trust`` with the
    newest block does. That time is kept in the store. The nodes' newest block is
    ``head_delay`` above the head.
    """

    def __init__(
        self, store: ChainStore, upstreams: Upstreams, trust: TrustOptions, head_delay: int = 0
    ) -> None:
        self._store, self._upstreams, self._trust = store, upstreams, trust
        self._head_delay = head_delay
        self._noted, self._noted_at = 0, 0.0
        self._halted = 0

    def head(self) -> Header:
        """Return the header of the head."""
        return self._store.reads.block_meta(self._store.reads.latest_height()).header

    def newest_seen_at(self, height: int) -> int:
        """Return when the nodes last had no block above a height, in nanoseconds since 1970,
        or 0.

        That time also counts for blocks above the sighting: the first block after a halt has
        the time of the votes before the halt, so its own time is too old. Return 0 if a
        trusted header is above the height, as the nodes that did not report it lied or lagged,
        and if the stored time is in the future, as the clock was wrong then.
        """
        if self._trust.height > height + min(1, self._head_delay):
            return 0
        found = shared_state.newest_sighting(self._store)
        if found is None or found.at > self._trust.clock():
            return 0
        return found.at if found.height <= height + self._head_delay else 0

    def is_too_old(self, head: Header) -> bool:
        """Return true if a head is older than the trusting period and can't prove the next
        blocks."""
        now, period = self._trust.clock(), self._trust.period
        return is_too_old(head, now, period) and is_too_old(
            head, now, period, self.newest_seen_at(head.height)
        )

    def note(self) -> None:
        """If the head is old, ask all nodes, at most once a minute, for a newer block; if they
        have no newer block, store the time.

        The time is only stored if all nodes respond, as another one may have a newer block.
        Raise the errors of :meth:`Upstreams.ask_all`.
        """
        head, now = self.head(), self._trust.clock()
        if self._halted and head.height != self._halted:
            log.warning(
                "the chain is no longer halted: block %d is of %s", head.height, date_of(head)
            )
            self._halted = 0
        if now - head.time < CURRENT_NS or not self._is_due(head):
            return
        newest = head.height + self._head_delay
        found = self._upstreams.ask_all(newest_of)
        if max(each.latest_block_height for each in found) != newest or not are_halted(
            found, now
        ):
            return
        if head.height <= self._trust.height <= newest or not self.is_too_old(head):
            self._set_seen(newest, len(found))
        if not self._halted and looks_halted(self._store, head, now):
            self._halted = head.height
            log.warning(
                "the chain looks halted since %s: its newest block is %d",
                date_of(head),
                head.height,
            )

    def is_trusted_too_old(self, header: Header, found: Sequence[SyncInfo]) -> bool:
        """Return true if the trusted header of ``--trust`` is too old to prove the next
        blocks.

        ``found`` are the nodes' states. The header's age does not matter if the nodes have no
        newer block, or had none when they were last asked within the trusting period. In the
        first case the time is stored at once, as the next block may arrive before the next
        :meth:`note`.
        """
        now, height = self._trust.clock(), header.height
        newest = max(each.latest_block_height for each in found)
        if newest <= height:
            if newest == height and are_halted(found, now):
                self._set_seen(height, len(found))
            return False
        known = shared_state.newest_sighting(self._store)
        seen = self.newest_seen_at(height) if known and known.height >= height else 0
        return is_too_old(header, now, self._trust.period, seen)

    def _set_seen(self, newest: int, answers: int) -> None:
        """Store that no node has a block above ``newest``, if all nodes responded."""
        if answers == len(self._upstreams.states()):
            shared_state.set_newest_seen(self._store, newest, self._trust.clock())

    def _is_due(self, head: Header) -> bool:
        interval = min(_NOTE_EACH_S, self._trust.period / SECOND / 4)
        if head.height == self._noted and time.monotonic() - self._noted_at < interval:
            return False
        self._noted, self._noted_at = head.height, time.monotonic()
        return True


def interval_s(store: ChainStore) -> float:
    """Return the mean interval of the latest 20 blocks in seconds."""
    high = store.reads.latest_height()
    low = max(store.reads.base_height(), high - _SAMPLE)
    newest, oldest = (store.reads.block_meta(each).header.time for each in (high, low))
    return (newest - oldest) / SECOND / max(1, high - low)


def looks_halted(store: ChainStore, head: Header, now: int) -> bool:
    """Return true if the head is so old that the chain seems to be halted."""
    expected = int(_HALTED_INTERVALS * interval_s(store) * SECOND)
    return now - head.time >= max(CURRENT_NS, expected)


def date_of(header: Header) -> str:
    """Return the time of a header as text, in whole seconds."""
    return to_text(header.time // SECOND * SECOND)
