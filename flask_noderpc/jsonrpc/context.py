"""Context of a handler: the backend and its start, once in each process; the time budget and
the view of the chain that the calls of a body share; and the sender's permissions."""

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
    """View of the chain for a batch: one snapshot, until a call needs a newer one."""

    def __init__(self, reads: ChainReads) -> None:
        self._reads = reads
        self._read_view = ExitStack()
        self._version: ChainVersion | None = None
        self.is_held = False
        """True while a read view of the store is open."""

    def version(self) -> ChainVersion | None:
        """Return the version of the chain in the snapshot."""
        if not self.is_held:
            self._version = self._read_view.enter_context(self._reads.read_view())
            self.is_held = True
        return self._version

    def close(self) -> None:
        """Close the snapshot: the next call reads a newer chain."""
        self.is_held = False
        self._read_view.close()


# geth: the time that its HTTP server allows for a response.
BATCH_S = 30.0
"""Maximum seconds of a batch."""


class BatchBudget:
    """Budget of bytes and seconds that the calls of a batch share."""

    def __init__(self, settings: Settings) -> None:
        self._until = time.monotonic() + BATCH_S
        self._bytes = settings.max_response_bytes

    def spent(self) -> RPCError | None:
        """Return the error for all further calls once the budget is used up, else ``None``."""
        if self._bytes <= 0:
            return AnswerTooLarge()
        return BatchTimedOut(BATCH_S) if time.monotonic() > self._until else None

    def consume(self, size: int) -> bool:
        """Subtract the size of a response from the budget; return true if it fits."""
        self._bytes -= size
        return self._bytes > 0


_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class Permissions(NamedTuple):
    """Permissions of the sender of a request or message, and the client whose limits apply."""

    may_read: bool = True
    may_write: bool = True
    may_sign: bool = False
    """True if the node signs for the sender with its own keys."""
    client: str = ""
    """Key of the client, for limits that are divided among clients."""
    denial: Callable[[str], Denied | None] | None = None
    """Function that returns the app's decision about a method: ``None``, or a refusal."""
    fields: Mapping[str, Any] = _NO_FIELDS
    """Header fields of the request, or of the websocket's handshake, by their CGI names."""

    def check(self, method: str) -> None:
        """Raise :exc:`~flask_noderpc.errors.NotAuthorized` unless the app lets the sender call
        a method.

        Every sender may call ``health``: load balancers need it, and its result contains no
        data.
        """
        denied = self.denial(method) if self.denial and method != HEALTH else None
        if denied is not None:
            raise NotAuthorized(method, denied.status, denied.headers, denied.message)


ANONYMOUS = Permissions()


class Start:
    """Called before each call; raises the errors of the backend's ``start``."""

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
            # The store may have been closed since then.
            self._backend.start()
            return
        arrived = time.monotonic()
        with self._lock:
            if self._done_in != os.getpid():
                self._start(arrived)

    def _start(self, arrived: float) -> None:
        if self._failure is not None and self._failed_at >= arrived:
            # Starting failed while this call waited; with a locked store each call would wait
            # again.
            raise self._failure
        try:
            self._backend.start()
        except NodeRPCError as error:
            self._failure, self._failed_at = error, time.monotonic()
            raise
        atexit.register(_close, weakref.ref(self._backend))
        self._done_in = os.getpid()


def _exit_at_sigterm() -> None:
    """Let SIGTERM end the commands of ``flask`` like Ctrl-C.

    By default it kills the process, and another machine would have to wait until its lease
    expires. A handler that a server has installed stays.
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
    """One mount, for its handlers."""

    backend: ChainBackend
    settings: Settings
    behaviours: Behaviours
    node_version: str
    encode: Callable[[object], bytes]
    """Encodes a result as the dialect's JSON; for documents that are served in slices."""
    waiters: WaiterLimit
    scans: ScanLimit
    async_txs: AsyncTxs
    propagates: Callable[[], bool] = lambda: False
    """Function that returns true if exceptions other than our errors are raised to the server
    or test."""
    log_call: Callable[..., None] | None = None
    """Function called after each call with the values of ``rpc_called``, if this mount logs
    calls."""
    client: str = ""
    """Key of the client, for limits that are divided among clients."""
    memory: CacheMemory = field(default_factory=CacheMemory)
    """The memory limit that all caches of the process share."""
    memo: dict[str, Any] = field(default_factory=dict)
    """Objects that are created once for a mount, such as constant documents and readers of the
    backend."""
