"""The lease of a store, held while blocks of upstreams are added above its head."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..backends.base.process import own_name
from ..backends.base.store import ChainStore, Lease
from ..errors import BackendError, NodeRPCError, StoreError

log = logging.getLogger("flask_noderpc.companion")

_SECONDS = 10.0
# The lease of a process that was killed on another machine expires within this time.
_WAIT_S = _SECONDS + 1
_POLL_S = 0.2


class LeaseTaken(StoreError):
    """Another process holds the lease."""


@contextmanager
def held_lease(store: ChainStore, stopped: threading.Event | None = None) -> Iterator[Lease]:
    """Hold the lease of a store, so that one process alone adds blocks above its head.

    Wait for that of a process that was killed. The error with which the block ends is stored
    as the reason why no blocks are added. Raise :exc:`LeaseTaken` if another process goes on
    holding it, or ``stopped`` was set.
    """
    lease = _acquired(store, stopped or threading.Event())
    ended = threading.Event()
    thread = threading.Thread(
        target=_renew, args=(store, lease, ended), name="noderpc-lease", daemon=True
    )
    thread.start()
    reason = ""
    try:
        yield lease
    except NodeRPCError as error:
        reason = str(error)
        raise
    finally:
        ended.set()
        thread.join()
        try:
            store.release_lease(lease, reason)
        except BackendError as error:
            # It lapses; the error with which the block ended is the one to know.
            log.warning("the lease can't be released: %s", error)


def _acquired(store: ChainStore, stopped: threading.Event) -> Lease:
    owner = own_name()
    deadline = time.monotonic() + _WAIT_S
    while (lease := store.acquire_lease(owner, _SECONDS)) is None:
        if time.monotonic() > deadline or stopped.wait(_POLL_S):
            raise LeaseTaken(
                f"another process, {store.lease_state().owner}, adds blocks to this store:"
                " wait until it has ended",
                store.location.shown,
            )
    return lease


def _renew(store: ChainStore, lease: Lease, ended: threading.Event) -> None:
    while not ended.wait(_SECONDS / 3):
        try:
            store.renew_lease(lease, _SECONDS)
        except BackendError as error:
            # The block's own transaction finds out whether it was lost.
            log.warning("the lease can't be renewed: %s", error)
