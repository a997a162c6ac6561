"""Mempool of a backend: transactions that are not in a block yet."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from ...domain.abci import TxResult
from ...domain.rpc_results import PendingCount, PendingTxs
from ...errors import NotSupported


@dataclass(frozen=True, slots=True)
class Submission:
    """A transaction on its way to where it waits for a block."""

    check: TxResult
    """The result of the application's check."""
    wait: Callable[[], TxResult]
    """Returns the check once the transaction is pending; raises if it can't be. To be called
    once."""
    is_stored: Callable[[float], bool] = lambda seconds: True
    """Returns true as soon as :attr:`wait` would not wait, or false so many seconds on."""


class Mempool:
    """Pending transactions. The default is empty and accepts none."""

    def submit(self, tx: bytes) -> TxResult:
        """The application's check; when its code is 0 the transaction now waits.

        Raise :exc:`~flask_noderpc.errors.TxRejected` or
        :exc:`~flask_noderpc.errors.MempoolFull`.
        """
        raise NotSupported("this backend does not take transactions")

    def begin_submit(self, tx: bytes) -> Submission:
        """Check a transaction as :meth:`submit` does, and have it stored meanwhile; raise what
        is known at once. The default stores it first."""
        check = self.submit(tx)
        return Submission(check, lambda: check)

    def submit_local(self, tx: bytes, *, replaces: bool) -> TxResult:
        """Submit a transaction that this node made, which its application may accept unsigned
        and as large as fits a block.

        Unless it ``replaces``, it must be the first in its place; raise
        :exc:`~flask_noderpc.errors.PlaceTaken`.
        """
        raise NotSupported("this backend takes no transactions of its own")

    def pending(self, limit: int) -> PendingTxs:
        """At most ``limit`` waiting transactions, oldest first."""
        return PendingTxs(0, 0, ())

    def pending_by_eth_hash(self, other_hash: bytes) -> bytes | None:
        """The waiting transaction that Ethereum's clients know by a hash, where that can be
        looked up; the default can't."""
        return None

    def pending_by_sender(self, sender: bytes, limit: int) -> tuple[bytes, ...]:
        """At most ``limit`` waiting transactions of a sender who can use each place once, in
        the order of the places; the default knows no senders."""
        return ()

    def pending_count(self) -> PendingCount:
        """Return the number of pending transactions, and their bytes."""
        return PendingCount(0, 0)

    def latest_pending(self) -> int:
        """The cursor of the newest transaction that has waited; 0 before the first."""
        return 0

    def pending_after(self, cursor: int, limit: int) -> tuple[tuple[int, bytes], ...]:
        """At most ``limit`` waiting transactions that came after a cursor, each with its
        own cursor, oldest first; 0 is before all."""
        return ()

    def arrived_after(self, cursor: int, limit: int) -> tuple[tuple[int, bytes], ...]:
        """The same with those that are in a block by now, where the backend remembers them;
        the default knows what still waits alone."""
        return self.pending_after(cursor, limit)

    def wait_for_pending_after(self, cursor: int, timeout: float) -> bool:
        """Wait for one after a cursor, ``timeout`` seconds at most; return true if there is."""
        threading.Event().wait(timeout)
        return False

    def flush(self) -> None:
        """Forget all that waits, and what was seen before."""
        raise NotSupported("this backend has no mempool")
