"""The open websockets of one mount: a slot, a connection and a session for each, and a common
thread that checks their deadlines.
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
_GOING_AWAY = "the server is shutting down"


class Connections:
    """Registry of open websockets, which limits their number, checks their deadlines and
    closes them at the end.

    ``limit`` is the maximum of open websockets, and ``per_client`` the maximum for each
    client.
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
            # Websockets are long-lived, so none is evicted in favor of a new one.
            self._slots.acquire(slot, client, evict=False)
        except LimitReached as reached:
            if reached.of_client:
                raise Busy(
                    f"{reached.count} websockets of this client are open, its maximum; raise"
                    " NODERPC_MAX_CONNECTIONS_PER_CLIENT"
                ) from None
            raise Busy(
                f"{reached.count} websockets are open, the maximum; raise"
                " NODERPC_MAX_OPEN_CONNECTIONS"
            ) from None

    def lower(self, limit: int) -> None:
        """Lower the limit on open websockets to at most ``limit``."""
        self._limit = self._slots.limit = min(self._limit, limit)

    def _begin_after_fork(self) -> None:
        if self._process != os.getpid():
            # Reset the state after a fork: open connections and the lock belong to the parent.
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
                    # Continue, as this thread checks all connections.
                    log.exception("error while checking a websocket's deadlines")
            pause.wait(self._tick_s)

    def _goes_on(self) -> bool:
        # Decide under the lock: if the thread ends, the next connection starts a new one.
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
    """Server of one mount's websockets, each on the thread of its request.

    ``threads`` is the size of the server's thread pool, if known.
    """

    timing = Timing()
    """Intervals and timeouts of all connections."""

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
        """Return the handler for an endpoint's websockets; ``max_bytes`` limits a message."""

        def serve(sock: socket.socket, early: bytes) -> None:
            connection = Connection(sock, self.timing, max_bytes, early)
            self._run(connection, open_session(connection, self._views.permissions(endpoint)))

        return serve

    def _run(self, connection: Connection, session: WebSocketSession[Any, Any]) -> None:
        app = current_app._get_current_object()  # type: ignore[attr-defined]

        def receive(message: bytes) -> None:
            # Use an app context per message, so that its data is released: the connection may
            # stay open for hours.
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
