"""Context of a handler, permissions of a sender, start of the backend once per process, and
the budget and the view of the chain that the calls of a batch share."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from ..backends.base.backend import ChainBackend
from ..backends.base.reads import ChainReads, ChainVersion
from ..errors import AnswerTooLarge, BatchTimedOut, NodeRPCError, NotAuthorized, RPCError
from ..lru import CacheMemory
from ..settings import Settings
from ..wire.dialect import Behaviours
from .guard import HEALTH, Denied
from .waiters import AsyncTxs, ScanLimit, WaiterLimit


class BatchView:
    """View of the chain that the calls of a batch share: a snapshot, until a call needs a
    newer chain."""

    def __init__(self, reads: ChainReads) -> None:
        self._reads = reads
        self._read_view = ExitStack()
        self._version: ChainVersion | None = None
        self.is_held = False
        """True while a read view of the store is open."""

    def version(self) -> ChainVersion | None:
        """Return the version of the chain in the snapshot, which is opened if necessary."""
        if not self.is_held:
            self._version = self._read_view.enter_context(self._reads.read_view())
            self.is_held = True
        return self._version

    def close(self) -> None:
        """Close the snapshot, so that the next call sees a newer chain."""
        self.is_held = False
        self._read_view.close()


# geth's HTTP server allows the same time for a response.
BATCH_S = 30.0
"""Maximum seconds that the calls of a batch may take."""


class BatchBudget:
    """Limits on the bytes and the seconds of a batch."""

    def __init__(self, settings: Settings) -> None:
        self._until = time.monotonic() + BATCH_S
        self._bytes = settings.max_response_bytes

    def spent(self) -> RPCError | None:
        """Return the error for further calls if the budget is used up, else ``None``."""
        if self._bytes <= 0:
            return AnswerTooLarge()
        return BatchTimedOut(BATCH_S) if time.monotonic() > self._until else None

    def consume(self, size: int) -> bool:
        """Subtract the bytes of a response from the budget; return true if it fits."""
        self._bytes -= size
        return self._bytes > 0


_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class Permissions(NamedTuple):
    """Permissions of the sender of a request or websocket message."""

    may_read: bool = True
    may_write: bool = True
    may_sign: bool = False
    """True if the sender may have the node's keys sign."""
    client: str = ""
    """Key of the client, by which limits are shared among clients."""
    denial: Callable[[str], Denied | None] | None = None
    """Function that asks the app's ``authorize`` about a method: returns a refusal, or
    ``None``."""
    fields: Mapping[str, Any] = _NO_FIELDS
    """Header fields of the request, or of the websocket's handshake, by their CGI names."""

    def check(self, method: str) -> None:
        """Raise :exc:`~flask_noderpc.errors.NotAuthorized` unless the app lets the sender call
        a method.

        Every sender may call ``health``, which load balancers need and which returns no data.
        """
        denied = self.denial(method) if self.denial and method != HEALTH else None
        if denied is not None:
            raise NotAuthorized(method, denied.status, denied.headers, denied.message)


ANONYMOUS = Permissions()


class Start:
    """Function object that starts the backend once per process, and raises the errors of its
    start."""

    def __init__(self, backend: ChainBackend) -> None:
        self._backend = backend
        self._done_in = 0
        self._failure: NodeRPCError | None = None
        self._failed_at = 0.0
        self._lock = threading.Lock()
        _exit_at_sigterm()

    def __call__(self) -> None:
        """Start the backend, unless this process has already started it."""
        if self._done_in == os.getpid():
            # Call this again, as the store may have been closed since then.
            self._backend.start()
            return
        arrived = time.monotonic()
        with self._lock:
            if self._done_in != os.getpid():
                self._start(arrived)

    def _start(self, arrived: float) -> None:
        if self._failure is not None and self._failed_at >= arrived:
            # Raise the error of an attempt that failed while this call waited, instead of
            # waiting for a locked store again.
            raise self._failure
        try:
            self._backend.start()
        except NodeRPCError as error:
            self._failure, self._failed_at = error, time.monotonic()
            raise
        atexit.register(_close, weakref.ref(self._backend))
        self._done_in = os.getpid()


def _exit_at_sigterm() -> None:
    """Let SIGTERM end a command of ``flask`` like Ctrl-C, so that it releases its lease.

    By default, SIGTERM kills the process, and another producer has to wait until the lease
    expires. A handler that a server has installed is not replaced.
    """
    is_command = os.environ.get("FLASK_RUN_FROM_CLI") == "true"
    is_main = threading.current_thread() is threading.main_thread()
    if is_command and is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def _close(reference: weakref.ref[ChainBackend]) -> None:
    backend = reference()
    if backend is not None:
        backend.close()


@dataclass(frozen=True, slots=True)
class Context:
    """Backend, settings, limits and caches of a mount, for its handlers."""

    backend: ChainBackend
    settings: Settings
    behaviours: Behaviours
    node_version: str
    encode: Callable[[object], bytes]
    """Function that encodes a result in the dialect's JSON."""
    waiters: WaiterLimit
    scans: ScanLimit
    async_txs: AsyncTxs
    propagates: Callable[[], bool] = lambda: False
    """Function that returns true if the app passes unexpected exceptions on to the server or
    test."""
    log_call: Callable[..., None] | None = None
    """Function that logs a call, given the values of ``rpc_called``; ``None`` if calls are not
    logged."""
    client: str = ""
    """Key of the client, by which limits are shared among clients."""
    memory: CacheMemory = field(default_factory=CacheMemory)
    """Memory limit that all caches of the process share."""
    memo: dict[str, Any] = field(default_factory=dict)
    """Objects that are created once per mount, such as constant documents, by name."""
