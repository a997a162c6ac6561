"""Start of a backend: once in each process, before its first answer."""

from __future__ import annotations

import atexit
import os
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


def _close(reference: weakref.ref[ChainBackend]) -> None:
    backend = reference()
    if backend is not None:
        backend.close()
