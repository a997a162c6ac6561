"""Transactions of ``broadcast_tx_async``, which is answered before the store has taken them."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from contextlib import suppress

from ..backends.base.backend import ChainBackend
from ..backends.base.roles import Submission
from ..signals import async_tx_refused, emit

log = logging.getLogger("flask_noderpc.mempool")

# As many may be on their way to the store; more are answered when it has taken some.
_MOST = 500
# A larger one is waited for at once, so that those on their way are not too many bytes.
_MAX_BYTES = 1 << 14
# A thread that has had nothing to do for so long ends.
_IDLE_S = 1.0
# The store takes together what comes within so long.
_GATHER_S = 0.01
_LOG_EVERY_S = 10.0


class AsyncTxs:
    """Waits for the store in place of those who do not: what it refuses is logged, once in a
    while, and told by :data:`~flask_noderpc.signals.async_tx_refused`."""

    def __init__(self, backend: ChainBackend) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._submissions: queue.Queue[Submission] = queue.Queue(_MOST)
        self._is_running = False
        self._refused = 0
        self._last_error: Exception | None = None
        self._next_log = 0.0

    def add(self, submission: Submission, size: int) -> None:
        """Wait for one of so many bytes, of which nobody else hears."""
        if size > _MAX_BYTES:
            self._finish(submission)
            return
        with self._lock:
            if self._process != os.getpid():
                # What was on its way at a fork is the parent's.
                self._begin()
        # Without the lock: the thread that makes room in a full queue needs it too.
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

    def _finish(self, submission: Submission) -> None:
        try:
            submission.wait()
        except Exception as error:
            self._tell(error)

    def _may_end(self) -> bool:
        # Decided under the lock: whoever has put one after this starts a new thread.
        with self._lock:
            self._is_running = not self._submissions.empty()
            return not self._is_running

    def _tell(self, error: Exception) -> None:
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
