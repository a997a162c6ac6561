"""State in a store's metadata that the following process writes and serving processes read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .. import jsoncodec
from ..backends.sql.store import ChainStore
from ..domain.network import BackfillProgress

_REFUSED, _BACKFILL, _NEWEST = "refused", "backfill", "newest"
_STANDSTILL, _AHEAD = "standstill_reason", "ahead"


@dataclass(frozen=True, slots=True)
class NewestSighting:
    """A time, in nanoseconds since 1970, at which the nodes had no block above a height."""

    height: int
    at: int


def refused_upstreams(store: ChainStore) -> dict[str, str]:
    """Return the names of the upstreams that the follower has refused, with the reasons."""
    found = store.metadata(_REFUSED)
    return jsoncodec.decode(found, dict[str, str]) if found else {}


def set_refused_upstreams(store: ChainStore, names: Mapping[str, str]) -> None:
    """Store the names of refused upstreams, without credentials."""
    store.set_metadata(_REFUSED, jsoncodec.encode(dict(names)))


def backfill(store: ChainStore) -> BackfillProgress | None:
    """Return the progress of the last backfill; ``None`` if there was none."""
    found = store.metadata(_BACKFILL)
    return jsoncodec.decode(found, BackfillProgress) if found else None


def set_backfill(store: ChainStore, progress: BackfillProgress) -> None:
    """Store the progress of a backfill."""
    store.set_metadata(_BACKFILL, jsoncodec.encode(progress))


@dataclass(frozen=True, slots=True)
class BlockAhead:
    """The next block, which is stored later because its time is ahead of this machine's
    clock."""

    height: int
    seconds: int

    def __str__(self) -> str:
        return (
            f"block {self.height} is not stored yet: its time is {self.seconds} s ahead of this"
            " machine's clock; check the clock"
        )


def newest_sighting(store: ChainStore) -> NewestSighting | None:
    """Return when all nodes last reported the same newest block of a chain that looks
    halted."""
    found = store.metadata(_NEWEST)
    return jsoncodec.decode(found, NewestSighting) if found else None


def set_newest_seen(store: ChainStore, height: int, now: int) -> None:
    """Store that no node has a block above ``height`` at the time ``now``."""
    store.set_metadata(_NEWEST, jsoncodec.encode(NewestSighting(height, now)))


def standstill_reason(store: ChainStore) -> str:
    """Return why the head can't be followed until the operator acts, or an empty string."""
    return (store.metadata(_STANDSTILL) or b"").decode()


def set_standstill_reason(store: ChainStore, reason: str) -> None:
    """Store why the head can't be followed, or an empty string if nothing prevents that."""
    store.set_metadata(_STANDSTILL, reason.encode())


def ahead(store: ChainStore) -> BlockAhead | None:
    """Return the next block if its time is ahead of the clock, otherwise ``None``."""
    found = store.metadata(_AHEAD)
    return jsoncodec.decode(found, BlockAhead) if found else None


def set_ahead(store: ChainStore, block: BlockAhead | None) -> None:
    """Store the next block, whose time is ahead of the clock; ``None`` if there is no such
    block."""
    store.set_metadata(_AHEAD, jsoncodec.encode(block) if block else b"")
