"""The lease on making blocks, while a producer has it."""

from __future__ import annotations

import logging
import os
import secrets
import time
from contextlib import suppress

from ..backends.base.store import ChainStore, Lease
from ..errors import BackendError, LeaseLost

log = logging.getLogger("flask_noderpc.producer")


class ProducerLease:
    """The lease of one producer: taken, renewed, given back."""

    def __init__(self, store: ChainStore, lease_s: float) -> None:
        self._store, self._lease_s = store, lease_s
        self.owner = f"{os.getpid()}-{secrets.token_hex(4)}"
        """Its name on the lease."""
        self.lease: Lease | None = None
        """``None`` while another may have it."""
        self._until = 0.0

    def acquire(self) -> Lease:
        """The lease, now; raise :exc:`~flask_noderpc.errors.LeaseLost`."""
        if self.lease is None and not self._try_acquire():
            raise LeaseLost("another process produces blocks; it holds the lease")
        assert self.lease is not None
        return self.lease

    def acquire_or_renew(self) -> bool:
        """Whether the lease is ours, taken or renewed when a third of it is gone."""
        if self.lease is None:
            return self._try_acquire()
        if time.monotonic() > self._until - self._lease_s * 2 / 3:
            if not self._store.renew_lease(self.lease, self._lease_s):
                self.lease = None
                raise LeaseLost("another process took over; this one waits its turn")
            self._until = time.monotonic() + self._lease_s
        return True

    def renew(self) -> None:
        """Renew the lease while the one who holds it is at work."""
        if (lease := self.lease) is not None:
            with suppress(BackendError):
                self._store.renew_lease(lease, self._lease_s)

    def release(self, complaint: str) -> None:
        """Let another process have it, and say why, if there is a reason."""
        lease, self.lease = self.lease, None
        if lease is None:
            return
        try:
            self._store.release_lease(lease, complaint)
        except BackendError as error:
            log.warning("the lease is not given back, it lapses by itself: %s", error)

    def _try_acquire(self) -> bool:
        self.lease = self._store.acquire_lease(self.owner, self._lease_s)
        self._until = time.monotonic() + self._lease_s
        return self.lease is not None
