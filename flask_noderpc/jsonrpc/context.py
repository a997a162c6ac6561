"""Context of a handler: the backend, the settings, and the dialect's behaviours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..backends.base.backend import ChainBackend
from ..lru import CacheMemory
from ..settings import Settings
from ..wire.dialect import Behaviours
from .async_txs import AsyncTxs
from .guard import Denied
from .waiters import ScanLimit, WaiterLimit


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


ANONYMOUS = Permissions()


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
    client: str = ""
    """Key of the client, for limits that are divided among clients."""
    memory: CacheMemory = field(default_factory=CacheMemory)
    """The process's memory for caches."""
    memo: dict[str, Any] = field(default_factory=dict)
    """Objects that are made once for a mount: constant documents, readers of the backend."""
