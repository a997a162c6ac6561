"""Transactions of ``broadcast_tx_async``, which is answered before the store has them."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from contextlib import suppress

from ..backends.base.backend import ChainBackend
from ..concurrency import Pending
from ..domain.abci import ExecTxResult
from ..signals import async_tx_refused, emit

log = logging.getLogger("flask_noderpc.mempool")

# Maximum queue size; further callers wait until the store has stored some.
_MAX_QUEUED = 500
# The caller waits for a larger transaction, which bounds the bytes of the queue.
_MAX_BYTES = 1 << 14
# The thread ends after so long without work.
_IDLE_S = 1.0
# Transactions that arrive within so long are waited for in one batch.
_GATHER_S = 0.01
_LOG_EVERY_S = 10.0


class AsyncTxs:
    """Waits for the store after ``broadcast_tx_async`` has answered.

    Refused transactions are logged, at most every ten seconds, and emitted by
    :data:`~flask_noderpc.signals.async_tx_refused`.
    """

    def __init__(self, backend: ChainBackend) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._submissions: queue.Queue[Pending[ExecTxResult]] = queue.Queue(_MAX_QUEUED)
        self._is_running = False
        self._refused = 0
        self._last_error: Exception | None = None
        self._next_log = 0.0

    def add(self, submission: Pending[ExecTxResult], size: int) -> None:
        """Queue a submission, of so many bytes of transaction, to wait for its result."""
        if size > _MAX_BYTES:
            self._finish(submission)
            return
        with self._lock:
            if self._process != os.getpid():
                # Transactions that were queued at a fork are the parent's.
                self._begin()
        # Without the lock: the thread that drains a full queue needs it too.
        self._submissions.put(submission)
        with self._lock:
            if not self._is_running:
                self._is_running = True
                threading.Thread(
                    target=self._run, name="noderpc-async-txs", daemon=True
                ).start()

    def _run(self) -> None:
        while True:
            try:
                gathered = [self._submissions.get(timeout=_IDLE_S)]
            except queue.Empty:
                self._log_refused()
                if self._may_end():
                    return
                continue
            time.sleep(_GATHER_S)
            with suppress(queue.Empty):
                while True:
                    gathered.append(self._submissions.get_nowait())
            for submission in gathered:
                self._finish(submission)

    def _finish(self, submission: Pending[ExecTxResult]) -> None:
        try:
            submission.result()
        except Exception as error:
            self._report(error)

    def _may_end(self) -> bool:
        # Decided under the lock: a caller that puts one after this starts a new thread.
        with self._lock:
            self._is_running = not self._submissions.empty()
            return not self._is_running

    def _report(self, error: Exception) -> None:
        self._refused, self._last_error = self._refused + 1, error
        if time.monotonic() >= self._next_log:
            self._next_log = time.monotonic() + _LOG_EVERY_S
            self._log_refused()
        emit(async_tx_refused, self._backend, error=error)

    def _log_refused(self) -> None:
        if self._refused:
            log.warning(
                "transactions were refused after broadcast_tx_async had answered: %d, the last"
                " one with: %s",
                self._refused,
                self._last_error,
            )
            self._refused = 0
