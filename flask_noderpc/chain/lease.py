"""Lease of a store: only the process that owns it adds blocks to the chain."""

from __future__ import annotations

import logging
import time

from ..backends.sql.lease import Lease, own_name
from ..backends.sql.store import ChainStore
from ..errors import BackendError, LeaseLost

log = logging.getLogger("flask_noderpc.lease")


class OwnedLease:
    """Acquires, renews and releases the lease of a store for this process."""

    def __init__(self, store: ChainStore, lease_s: float) -> None:
        self._store, self._lease_s = store, lease_s
        self.owner = own_name()
        """Name of the owner, which is stored with the lease."""
        self.lease: Lease | None = None
        """The lease, or ``None`` while another process may own it."""
        self._until = 0.0

    def acquire(self) -> Lease:
        """Return the lease, acquiring it if needed.

        Raise :exc:`~flask_noderpc.errors.LeaseLost` if another process owns it.
        """
        if self.lease is None and not self._try_acquire():
            raise LeaseLost("another process holds the lease, and produces blocks")
        assert self.lease is not None
        return self.lease

    def acquire_or_renew(self) -> bool:
        """Acquire the lease, or renew it after a third of its duration; return true if this
        process owns it.

        Raise :exc:`~flask_noderpc.errors.LeaseLost` once if another process has acquired the
        lease.
        """
        if self.lease is None:
            return self._try_acquire()
        if time.monotonic() > self._until - self._lease_s * 2 / 3:
            if not self._store.renew_lease(self.lease, self._lease_s):
                self.lease = None
                raise LeaseLost("another process has taken over the lease, and produces blocks")
            self._until = time.monotonic() + self._lease_s
        return True

    def renew(self) -> None:
        """Renew the lease, from another thread, while its owner is busy.

        Errors are only logged, as the next write fails if the lease is lost.
        """
        if (lease := self.lease) is not None:
            try:
                self._store.renew_lease(lease, self._lease_s)
            except BackendError as error:
                log.warning("the lease could not be renewed, and may expire: %s", error)

    def release(self, last_error: str) -> None:
        """Release the lease, and store the reason why this process produces no block."""
        lease, self.lease = self.lease, None
        if lease is None:
            return
        try:
            self._store.release_lease(lease, last_error)
        except BackendError as error:
            log.warning(
                "the lease could not be released; it expires after %g s: %s",
                self._lease_s,
                error,
            )

    def _try_acquire(self) -> bool:
        self.lease = self._store.acquire_lease(self.owner, self._lease_s)
        self._until = time.monotonic() + self._lease_s
        return self.lease is not None
