"""The open websockets of one mount, and the one clock they share.

A deadline of its own would cost each connection a timer for every event it is sent.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from wsproto.frame_protocol import CloseReason

from ..errors import Busy
from ..fairness import FairLimit, LimitReached
from ..signals import emit, websocket_closed, websocket_opened
from .connection import Connection
from .rules.client_address import ClientLimit

log = logging.getLogger("flask_noderpc.websocket")

_TICK_S = 0.25
_GOING_AWAY = "the server goes away"


class Connections:
    """Checks the deadlines of open websockets, and closes all of them at the end.

    ``per_client`` is the maximum of each client.
    """

    def __init__(
        self,
        sender: object = None,
        tick_s: float = _TICK_S,
        limit: int = 900,
        per_client: ClientLimit | None = None,
    ) -> None:
        self._limit, self._per_client = limit, per_client or ClientLimit()
        self._sender = sender
        self._tick_s = tick_s
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._open: set[Connection] = set()
        self._slots = FairLimit[object](self._limit, self._per_client.count)
        self._lock = threading.Lock()
        self._is_ticking = False
        self._is_closed = False

    @contextmanager
    def slot(self, client: str) -> Iterator[None]:
        """Reserve a slot for a websocket; raise :exc:`~flask_noderpc.errors.Busy`."""
        self._begin_after_fork()
        slot = object()
        with self._lock:
            self._acquire(slot, client)
        try:
            yield
        finally:
            with self._lock:
                self._slots.release(slot)

    def _acquire(self, slot: object, client: str) -> None:
        if self._is_closed:
            raise Busy(_GOING_AWAY)
        if not self._per_client.counts(client):
            client = ""
        try:
            # A websocket is there to stay: it is not evicted for another.
            self._slots.acquire(slot, client, evict=False)
        except LimitReached as reached:
            if reached.of_client:
                raise Busy(
                    f"{reached.count} websockets of this client are open,"
                    " NODERPC_MAX_CONNECTIONS_PER_CLIENT raises this"
                ) from None
            raise Busy(
                f"{reached.count} websockets are open, NODERPC_MAX_OPEN_CONNECTIONS raises this"
            ) from None

    def lower(self, limit: int) -> None:
        """Lower the limit to what a server with fewer resources can hold."""
        self._limit = self._slots.limit = min(self._limit, limit)

    def _begin_after_fork(self) -> None:
        if self._process != os.getpid():
            # What was open at a fork is the parent's, and so is its lock.
            self._begin()

    @contextmanager
    def one(self, connection: Connection) -> Iterator[None]:
        """Check a connection's deadlines for as long as it is open."""
        self._begin_after_fork()
        with self._lock:
            self._open.add(connection)
            is_late = self._is_closed
            if not self._is_ticking:
                self._is_ticking = True
                threading.Thread(
                    target=self._tick, name="noderpc-websocket-clock", daemon=True
                ).start()
        emit(websocket_opened, self._sender)
        if is_late:
            _close_going_away(connection)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(connection)
            emit(websocket_closed, self._sender)

    def _tick(self) -> None:
        pause = threading.Event()
        while self._goes_on():
            for connection in tuple(self._open):
                try:
                    connection.look_at_clock()
                except Exception:
                    # The others must not be without a clock.
                    log.exception("a websocket can't be looked after")
            pause.wait(self._tick_s)

    def _goes_on(self) -> bool:
        # Decided under the lock: a connection after this starts a new clock.
        with self._lock:
            self._is_ticking = bool(self._open)
            return self._is_ticking

    def close(self) -> None:
        """Close all websockets with 1001 (going away), and refuse new ones."""
        with self._lock:
            self._is_closed = True
            leaving = tuple(self._open)
        for connection in leaving:
            _close_going_away(connection)


def _close_going_away(connection: Connection) -> None:
    connection.close(CloseReason.GOING_AWAY, _GOING_AWAY)
