"""Context of a handler, and the time and the view of the chain that a body's calls share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from ..backends.base.backend import ChainBackend
from ..backends.base.reads import ChainReads, ChainVersion
from ..errors import AnswerTooLarge, BatchTimedOut, NotAuthorized, RPCError
from ..lru import CacheMemory
from ..settings import Settings
from ..wire.dialect import Behaviours
from .async_txs import AsyncTxs
from .guard import HEALTH, Denied
from .waiters import ScanLimit, WaiterLimit


class ChainView:
    """View of the chain for one call: the version that the call read first."""

    is_held = False
    """True while a read view of the store is open."""

    def __init__(self, reads: ChainReads) -> None:
        self._reads = reads
        self._has_read = False
        self._version: ChainVersion | None = None

    def version(self) -> ChainVersion | None:
        """Return the version of the chain at the first read."""
        if not self._has_read:
            self._version, self._has_read = self._read(), True
        return self._version

    def _read(self) -> ChainVersion | None:
        return self._reads.version()

    def now(self) -> ChainVersion | None:
        """Return the current version of the chain."""
        return self._reads.version()

    def invalidate(self) -> None:
        """Read the version again next time: a call may have to see a newer chain."""
        self._has_read = False


class BatchView(ChainView):
    """View of the chain for a batch: one snapshot, until a call needs a newer one."""

    def __init__(self, reads: ChainReads) -> None:
        super().__init__(reads)
        self._read_view = ExitStack()

    def _read(self) -> ChainVersion | None:
        version = self._read_view.enter_context(self._reads.read_view())
        self.is_held = True
        return version

    def invalidate(self) -> None:
        """Close the snapshot, too."""
        super().invalidate()
        self.is_held = False
        self._read_view.close()


# geth: as long as its HTTP server lets a response take.
BATCH_S = 30.0
"""Maximum seconds of a batch."""


class BatchBudget:
    """Budget of bytes and seconds that the calls of a batch share."""

    def __init__(self, settings: Settings) -> None:
        self._until = time.monotonic() + BATCH_S
        self._bytes = settings.max_response_bytes

    def spent(self) -> RPCError | None:
        """Return the error for all further calls once the budget is spent, else ``None``."""
        if self._bytes <= 0:
            return AnswerTooLarge()
        return BatchTimedOut(BATCH_S) if time.monotonic() > self._until else None

    def consume(self, size: int) -> bool:
        """Take an answer of so many bytes from the budget; return true if it fits."""
        self._bytes -= size
        return self._bytes > 0


_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class Permissions(NamedTuple):
    """Permissions of the sender of a request or message, and the client it counts for."""

    may_read: bool = True
    may_write: bool = True
    may_sign: bool = False
    """True if the node signs for it with the node's keys."""
    client: str = ""
    """Key of the client, for limits that are divided among clients."""
    denial: Callable[[str], Denied | None] | None = None
    """The host's decision about a method: ``None``, or its refusal."""
    fields: Mapping[str, Any] = _NO_FIELDS
    """Header fields of the request, or of the websocket's handshake, by their CGI names."""

    def check(self, method: str) -> None:
        """Raise :exc:`~flask_noderpc.errors.NotAuthorized` unless the host lets the sender call
        a method.

        Everybody may call ``health``: load balancers do, and its result says nothing.
        """
        denied = self.denial(method) if self.denial and method != HEALTH else None
        if denied is not None:
            raise NotAuthorized(method, denied.status, denied.headers, denied.message)


ANONYMOUS = Permissions()


class CallSpan(Protocol):
    """Span of a call in a trace."""

    def current(self) -> AbstractContextManager[object]:
        """Return a context in which spans that begin are children of this one."""

    def end(self, outcome: int) -> None:
        """End it with 0 or the code of the call's error."""


@dataclass(frozen=True, slots=True)
class Context:
    """One mount as its handlers see it."""

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
    """Returns true if other exceptions than our errors are raised to the server or test."""
    log_call: Callable[..., None] | None = None
    """Called after each call with the values of ``rpc_called``, where this mount logs calls."""
    start_span: Callable[[str, str, str, Mapping[str, Any]], CallSpan | None] | None = None
    """Starts the span of a call, where calls are traced: by its method, empty for one that does
    not exist; what the client wrote; the transport; and the header fields of the request."""
    client: str = ""
    """Key of the client, for limits that are divided among clients."""
    memory: CacheMemory = field(default_factory=CacheMemory)
    """The process's memory for caches."""
    memo: dict[str, Any] = field(default_factory=dict)
    """Objects that are made once for a mount: constant documents, readers of the backend."""
