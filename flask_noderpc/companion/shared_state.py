"""State that the process that follows a chain leaves in the store for those that serve it."""

from __future__ import annotations

from collections.abc import Mapping

from .. import jsoncodec
from ..backends.base.store import ChainStore
from ..domain.network import BackfillProgress

_REFUSED, _BACKFILL = "refused", "backfill"


def refused(store: ChainStore) -> dict[str, str]:
    """Return the names of the upstreams that the follower has refused, with the reasons."""
    found = store.metadata(_REFUSED)
    return jsoncodec.decode(found, dict[str, str]) if found else {}


def set_refused(store: ChainStore, names: Mapping[str, str]) -> None:
    """Store the names of refused upstreams, which hold no credentials."""
    store.set_metadata(_REFUSED, jsoncodec.encode(dict(names)))


def backfill(store: ChainStore) -> BackfillProgress | None:
    """Return the progress of the last backfill; ``None`` before the first."""
    found = store.metadata(_BACKFILL)
    return jsoncodec.decode(found, BackfillProgress) if found else None


def set_backfill(store: ChainStore, progress: BackfillProgress) -> None:
    """Store the progress of a backfill."""
    store.set_metadata(_BACKFILL, jsoncodec.encode(progress))
