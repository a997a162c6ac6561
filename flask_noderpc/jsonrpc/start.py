"""Start of a backend: once in each process, before its first answer."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
import weakref

from ..backends.base.backend import ChainBackend
from ..errors import NodeRPCError


class Start:
    """Called before each answer; raises what the backend's ``start`` raises."""

    def __init__(self, backend: ChainBackend) -> None:
        self._backend = backend
        self._done_in = 0
        self._failure: NodeRPCError | None = None
        self._failed_at = 0.0
        self._lock = threading.Lock()
        _exit_at_sigterm()

    def __call__(self) -> None:
        """Start the backend, unless this process has."""
        if self._done_in == os.getpid():
            # It may have been closed since then.
            self._backend.start()
            return
        arrived = time.monotonic()
        with self._lock:
            if self._done_in != os.getpid():
                self._start(arrived)

    def _start(self, arrived: float) -> None:
        if self._failure is not None and self._failed_at >= arrived:
            # It failed while this call waited; with a locked store each would wait again.
            raise self._failure
        try:
            self._backend.start()
        except NodeRPCError as error:
            self._failure, self._failed_at = error, time.monotonic()
            raise
        atexit.register(_close, weakref.ref(self._backend))
        self._done_in = os.getpid()


def _exit_at_sigterm() -> None:
    """Let SIGTERM end the commands of ``flask`` as Ctrl-C does.

    By default it kills the process, whose lease another machine then waits for. Servers that
    have a handler of their own keep it.
    """
    is_command = os.environ.get("FLASK_RUN_FROM_CLI") == "true"
    is_main = threading.current_thread() is threading.main_thread()
    if is_command and is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def _close(reference: weakref.ref[ChainBackend]) -> None:
    backend = reference()
    if backend is not None:
        backend.close()
