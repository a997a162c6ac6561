"""The mempool as a capability of SQL stores."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from contextlib import nullcontext

from ...concurrency import Pending
from ...domain.abci import ExecTxResult
from ...domain.responses import PendingCount, PendingTxs
from ...errors import TxRejected
from ...protocol.comet.chain_state import MAX_BLOCK_BYTES
from ..base.application import Application
from ..base.capabilities import Mempool, MempoolLimits
from . import mempool
from .handles import StoreHandles


class SQLMempool(Mempool):
    """Pending transactions in a table, checked by the store's application."""

    def __init__(
        self,
        open_store: StoreHandles,
        application: Callable[[], Application],
        limits: MempoolLimits,
    ) -> None:
        self._open, self._app, self._limits = open_store, application, limits
        self._turn = threading.Lock()

    def __init_subclass__(cls) -> None:
        raise TypeError(
            f"{cls.__name__}: a mempool of your own is a Mempool whose submit calls that of the"
            " store, as some transactions begin without it"
        )

    def check_limits(self, tx: bytes) -> None:
        self._check_limits(tx, self._limits)

    def _check_limits(self, tx: bytes, limits: MempoolLimits) -> None:
        # A replacement is accepted in a full mempool.
        if not self._app().selects_txs:
            files = self._open()
            with files.readers.snapshot() as at:
                mempool.refuse_unfit(at, tx, limits, files.incoming)

    def submit(self, tx: bytes) -> ExecTxResult:
        return self.begin_submit(tx)[1].result()

    def begin_submit(self, tx: bytes) -> tuple[ExecTxResult, Pending[ExecTxResult]]:
        return self._submit(tx, self._app().check_tx, self._limits)

    def submit_local(self, tx: bytes, *, replaces: bool) -> ExecTxResult:
        # A loaded state is one transaction, limited by the size of a block.
        limits = dataclasses.replace(self._limits, max_tx_bytes=MAX_BLOCK_BYTES)
        return self._submit(tx, self._app().recheck_tx, limits, replaces=replaces)[1].result()

    def _submit(
        self,
        tx: bytes,
        check: Callable[[bytes], ExecTxResult],
        limits: MempoolLimits,
        *,
        replaces: bool = True,
    ) -> tuple[ExecTxResult, Pending[ExecTxResult]]:
        files, app = self._open(), self._app()
        if files.incoming.may_exceed(tx, limits):
            self._check_limits(tx, limits)
        with self._turn if app.checks_in_turn else nullcontext():
            result = check(tx)
            if result.code != 0:
                # CometBFT: its limits come before the application's check. One that passed is
                # checked against them when it is added.
                self._check_limits(tx, limits)
                return result, Pending(lambda: result)
            gas, sender_nonce = result.gas_wanted, app.sender_nonce(tx)
            write = files.mempool_writer.begin(
                lambda at: mempool.add(at, tx, gas, limits, sender_nonce, replaces=replaces)
            )
            forget = files.incoming.add(tx, write.result)

        def wait() -> ExecTxResult:
            try:
                write.result()
            except TxRejected:
                if app.sender_nonce(tx) == sender_nonce:
                    raise
                # A block came in between, and took those that this one is to follow.
                return self._submit(tx, check, limits, replaces=replaces)[1].result()
            finally:
                forget()
            files.changes.notify()
            return result

        return result, Pending(wait, write.is_done)

    def pending(self, limit: int) -> PendingTxs:
        self._open().incoming.wait()
        with self._open().readers.snapshot() as at:
            return mempool.pending(at, limit)

    def pending_by_other_hash(self, other_hash: bytes) -> bytes | None:
        with self._open().readers.snapshot() as at:
            return mempool.with_hash(at, other_hash)

    def pending_by_sender(self, sender: bytes, limit: int) -> tuple[bytes, ...]:
        with self._open().readers.snapshot() as at:
            return mempool.of_sender(at, sender, limit)

    def pending_count(self) -> PendingCount:
        self._open().incoming.wait()
        with self._open().readers.snapshot() as at:
            return mempool.count(at)

    def pending_after(self, cursor: int, limit: int) -> tuple[tuple[int, bytes], ...]:
        with self._open().readers.snapshot() as at:
            return mempool.after(at, cursor, limit)

    def arrived_after(self, cursor: int, limit: int) -> tuple[tuple[int, bytes], ...]:
        with self._open().readers.snapshot() as at:
            return mempool.arrived(at, cursor, limit)

    def wait_for_pending_after(self, cursor: int, timeout: float) -> bool:
        return self._open().changes.wait_until(lambda: self.latest_pending() > cursor, timeout)

    def latest_pending(self) -> int:
        with self._open().readers.snapshot() as at:
            return mempool.latest(at)

    def flush(self) -> None:
        self._open().mempool_writer.run(mempool.flush)
