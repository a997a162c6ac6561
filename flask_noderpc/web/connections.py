"""The open websockets of one mount: a slot, a connection and a session for each, and a common
clock.

With a clock of its own, each connection would need a timer for every event.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flask import current_app
from wsproto.frame_protocol import CloseReason

from ..errors import Busy
from ..fairness import FairLimit, LimitReached
from ..jsonrpc.context import Permissions
from ..jsonrpc.session import Peer, WebSocketSession
from ..signals import emit, websocket_closed, websocket_opened
from .connection import Connection, Timing
from .rules.head import ClientLimit
from .threads import reserve_thread
from .views import Views
from .websocket import Handler

log = logging.getLogger("flask_noderpc.websocket")

_TICK_S = 0.25
_GOING_AWAY = "the server goes away"


class Connections:
    """Checks the deadlines of open websockets, and finally closes all of them.

    ``per_client`` is the maximum for each client.
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
            # Websockets are long-lived: none is evicted for another.
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
        """Lower the limit, on a server with fewer resources."""
        self._limit = self._slots.limit = min(self._limit, limit)

    def _begin_after_fork(self) -> None:
        if self._process != os.getpid():
            # Connections that were open at a fork belong to the parent, and so does its lock.
            self._begin()

    @contextmanager
    def watch(self, connection: Connection) -> Iterator[None]:
        """Check a connection's deadlines while it is open."""
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
                    connection.check_deadlines()
                except Exception:
                    # The other connections need the clock.
                    log.exception("a websocket can't be looked after")
            pause.wait(self._tick_s)

    def _goes_on(self) -> bool:
        # Decided under the lock: a later connection starts a new clock.
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


OpenSession = Callable[[Peer, Permissions], WebSocketSession[Any, Any]]


class WebSocketServer:
    """Serves the websockets of one mount, each on a separate thread.

    ``threads`` is the size of the server's pool, if known.
    """

    timing = Timing()
    """The deadlines of all connections."""

    def __init__(self, views: Views, connections: Connections, threads: int | None) -> None:
        self._views = views
        self._connections = connections
        self._threads = threads

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Reserve a thread and a slot for the client of the current request.

        Raise :exc:`~flask_noderpc.errors.Busy` when a limit is reached.
        """
        client = self._views.permissions().client
        with reserve_thread(self._threads), self._connections.slot(client):
            yield

    def handler(self, endpoint: str, open_session: OpenSession, max_bytes: int) -> Handler:
        """Return the handler of an endpoint's websockets, whose messages have at most
        ``max_bytes``."""

        def serve(sock: socket.socket, early: bytes) -> None:
            connection = Connection(sock, self.timing, max_bytes, early)
            self._run(connection, open_session(connection, self._views.permissions(endpoint)))

        return serve

    def _run(self, connection: Connection, session: WebSocketSession[Any, Any]) -> None:
        app = current_app._get_current_object()  # type: ignore[attr-defined]

        def receive(message: bytes) -> None:
            # The connection may stay open for hours; the data of a call must be released.
            with app.app_context():
                session.receive(message)

        def settle(seconds: float) -> bool:
            with app.app_context():
                return session.settle(seconds)

        try:
            with self._connections.watch(connection):
                connection.run(receive, session.pull, session.cancel, settle)
        finally:
            session.close()
