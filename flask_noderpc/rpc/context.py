"""What a handler may use: the backend, the settings, and the dialect's few rules."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..backend.base import ChainBackend
from ..errors import Busy, SearchTooCostly
from ..settings import Settings
from ..signals import tell, wait_began, wait_ended
from ..wire.dialect import Rules
from .threads import held


class Seats:
    """A bounded number of calls that wait at the same time."""

    def __init__(
        self, limit: int, setting: str, sender: object = None, threads: int | None = None
    ) -> None:
        self._sender = sender
        self._threads = threads
        self._closed = False
        self._limit = limit
        self._setting = setting
        self._free = threading.BoundedSemaphore(limit)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Sit down; raise :exc:`~flask_noderpc.errors.Busy` when every seat is taken."""
        if not self._free.acquire(blocking=False):
            raise Busy(f"{self._limit} calls wait already, {self._setting} raises this")
        try:
            with held(self._threads):
                tell(wait_began, self._sender)
                try:
                    yield
                finally:
                    tell(wait_ended, self._sender)
        finally:
            self._free.release()

    def wait_for_height(self, backend: ChainBackend, after: int, seconds: float) -> int:
        """As the backend's; raise :exc:`~flask_noderpc.errors.Busy` when all must rise."""
        deadline = time.monotonic() + seconds
        while not self._closed:
            remaining = deadline - time.monotonic()
            height = backend.wait_for_height(after, max(0.0, min(remaining, _LOOK_S)))
            if height > after or remaining <= _LOOK_S:
                return height
        raise Busy("the server goes away")

    def close(self) -> None:
        """Let nobody sit any longer."""
        self._closed = True


# How often those who wait look whether they may go on.
_LOOK_S = 0.25


class Turns:
    """Calls that look through many blocks: two at a time, the others wait a little."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._free = threading.BoundedSemaphore(2)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Wait for a turn; raise :exc:`~flask_noderpc.errors.SearchTooCostly`."""
        if not self._free.acquire(timeout=self._seconds):
            raise SearchTooCostly.by_time(self._seconds)
        try:
            yield
        finally:
            self._free.release()


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent a message: what it may, and whom it counts for."""

    may_write: bool = True
    may_sign: bool = False
    """Whether the node signs for it with keys of its own."""
    client: str = ""


ANYBODY = Sender()


@dataclass(frozen=True, slots=True)
class Context:
    """One mount as its handlers see it."""

    backend: ChainBackend
    settings: Settings
    rules: Rules
    node_version: str
    encode: Callable[[object], bytes]
    """A result as the dialect's JSON; for documents that are served in slices."""
    seats: Seats
    turns: Turns
    client: str = ""
    """Who calls, where something is shared out among clients."""
    memo: dict[str, Any] = field(default_factory=dict)
    """What is made once for a mount: documents that never change, readers of the backend."""
