"""State after all pending transactions, against which new transactions are checked.

Each process computes it from the committed state and the mempool, which processes share.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...backends.base.application import AppState
from ...domain.abci import ExecTxResult
from .context import Mode
from .state import Branch, Committed, Head, head

RunTx = Callable[[Mode, bytes, Branch, Head], ExecTxResult]

_PAGE = 1_000
# Maximum number of attempts to run a transaction while other processes commit blocks.
_TRIES = 5


class PendingState:
    """The state after the pending transactions; new ones are added to it while there is no new
    block."""

    def __init__(self, state: AppState, run: RunTx) -> None:
        self._state, self._run = state, run
        self._lock = threading.Lock()
        self._begin(None)

    def forget(self) -> None:
        """Discard the state before blocks are reverted.

        A later comparison of the latest block can't detect the revert, as the same block may
        be made again.
        """
        with self._lock:
            self._begin(None)

    def _begin(self, latest: Head | None) -> None:
        self._head = latest
        self._branch = Branch(Committed(self._state))
        self._cursor = 0
        self._stored: set[bytes] = set()
        # Transactions that have run on this state, but are not yet stored in the mempool's
        # table.
        self._incoming: list[bytes] = []

    def run(self, mode: Mode, tx: bytes) -> ExecTxResult:
        """Return the result of a transaction after the pending ones; its writes are
        dropped."""
        for _ in range(_TRIES):
            with self._lock:
                latest = head(self._state)
                self._follow(latest)
                # Run on a copy without the lock, so that a long simulation blocks no other
                # call.
                branch = self._branch.copy()
            result = self._run(mode, tx, branch, latest)
            if head(self._state) == latest:
                break
        return result

    def _follow(self, latest: Head) -> None:
        if latest != self._head:
            self._begin(latest)
        if not self._go_on(latest):
            self._begin(latest)
            self._go_on(latest)

    def _go_on(self, latest: Head) -> bool:
        """Run the transactions that were added to the mempool; return false if any were
        removed from it, so that the state must be computed again."""
        found = self._state.waiting(self._cursor, _PAGE)
        coming, stored = found.incoming, list(found.stored)
        while len(found.stored) == _PAGE:
            found = self._state.waiting(stored[-1][0], _PAGE)
            stored += found.stored
        new = [tx for _, tx in stored]
        known = self._stored.union(new)
        order = [*new, *(tx for tx in coming if tx not in known)]
        begun = len(self._incoming)
        if order[:begun] != self._incoming or (self._cursor and found.total != len(known)):
            return False
        for tx in order[begun:]:
            branch = self._branch.branch()
            if not self._run(Mode.RECHECK, tx, branch, latest).code:
                self._branch.apply(branch)
        self._cursor = stored[-1][0] if stored else self._cursor
        self._stored, self._incoming = known, order[len(new) :]
        return True


class Recheck:
    """Repeated check of all pending transactions, in order, after a new block."""

    def __init__(self, state: AppState, run: RunTx) -> None:
        self._run = run
        self._head = head(state)
        self._branch = Branch(Committed(state))

    def check(self, tx: bytes) -> ExecTxResult:
        """Return the check result of the next pending transaction."""
        return self._run(Mode.RECHECK, tx, self._branch, self._head)
