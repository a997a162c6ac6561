"""What a handler may use: the backend, the settings, and the dialect's few rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..backends.base.backend import ChainBackend
from ..lru import CacheMemory
from ..settings import Settings
from ..wire.dialect import Behaviours
from .async_txs import AsyncTxs
from .waiters import ScanLimit, WaiterLimit


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent a message: what it may, and whom it counts for."""

    may_write: bool = True
    may_sign: bool = False
    """Whether the node signs for it with keys of its own."""
    client: str = ""


ANONYMOUS = Sender()


@dataclass(frozen=True, slots=True)
class Context:
    """One mount as its handlers see it."""

    backend: ChainBackend
    settings: Settings
    behaviours: Behaviours
    node_version: str
    encode: Callable[[object], bytes]
    """A result as the dialect's JSON; for documents that are served in slices."""
    waiters: WaiterLimit
    scans: ScanLimit
    async_txs: AsyncTxs
    propagates: Callable[[], bool] = lambda: False
    """Returns true if other exceptions than our errors are raised to the server or test."""
    log_call: Callable[..., None] | None = None
    """Called after each call with what ``rpc_called`` says, where this mount logs them."""
    client: str = ""
    """Who calls, where something is shared out among clients."""
    memory: CacheMemory = field(default_factory=CacheMemory)
    """The process's memory for caches."""
    memo: dict[str, Any] = field(default_factory=dict)
    """What is made once for a mount: documents that never change, readers of the backend."""
