"""Lease of a store: only the process that holds it appends blocks of upstreams."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..backends.sql.lease import Lease
from ..backends.sql.store import ChainStore
from ..chain.lease import OwnedLease
from ..errors import NodeRPCError, StoreError

_SECONDS = 10.0
# Wait for the lease of a killed process, which expires within this time.
_WAIT_S = _SECONDS + 1
_POLL_S = 0.2


class LeaseTaken(StoreError):
    """Another process holds the lease."""


@contextmanager
def held_lease(store: ChainStore, stopped: threading.Event | None = None) -> Iterator[Lease]:
    """Hold the lease of a store in this context, so that no other process appends blocks.

    Wait until the lease of a killed process expires. An error that ends the context is stored
    for health reports. Raise :exc:`LeaseTaken` if another process keeps the lease, or
    ``stopped`` was set.
    """
    owned, ended = OwnedLease(store, _SECONDS), threading.Event()
    _wait_for(owned, store, stopped or threading.Event())
    thread = threading.Thread(
        target=_renew, args=(owned, ended), name="noderpc-lease", daemon=True
    )
    thread.start()
    reason = ""
    try:
        yield owned.acquire()
    except NodeRPCError as error:
        reason = str(error)
        raise
    finally:
        ended.set()
        thread.join()
        owned.release(reason)


def _wait_for(owned: OwnedLease, store: ChainStore, stopped: threading.Event) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not owned.acquire_or_renew():
        if time.monotonic() > deadline or stopped.wait(_POLL_S):
            raise LeaseTaken(
                f"another process, {store.lease_state().owner}, adds blocks to this store;"
                " stop it, or wait until it has ended",
                store.location.display_name,
            )


def _renew(owned: OwnedLease, ended: threading.Event) -> None:
    while not ended.wait(_SECONDS / 3):
        owned.renew()
