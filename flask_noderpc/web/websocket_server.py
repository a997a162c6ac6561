"""Serves the websockets of one mount: a slot, a connection and a session for each."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flask import current_app

from ..jsonrpc.context import Permissions
from ..jsonrpc.session import Peer, WebSocketSession
from .connection import Connection, Timing
from .connections import Connections
from .threads import reserve_thread
from .views import Views
from .websocket import Handler

OpenSession = Callable[[Peer, Permissions], WebSocketSession[Any, Any]]


class WebSocketServer:
    """Serves the websockets of one mount, each on a thread of its own.

    ``threads`` is the size of the server's pool, if that is known.
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

        Raise :exc:`~flask_noderpc.errors.Busy` where a limit is reached.
        """
        client = self._views.permissions().client
        with reserve_thread(self._threads), self._connections.slot(client):
            yield

    def handler(self, endpoint: str, open_session: OpenSession, max_bytes: int) -> Handler:
        """Return the handler of an endpoint's websockets, whose messages have at most so many
        bytes."""

        def serve(sock: socket.socket, early: bytes) -> None:
            connection = Connection(sock, self.timing, max_bytes, early)
            self._run(connection, open_session(connection, self._views.permissions(endpoint)))

        return serve

    def _run(self, connection: Connection, session: WebSocketSession[Any, Any]) -> None:
        app = current_app._get_current_object()  # type: ignore[attr-defined]

        def receive(message: bytes) -> None:
            # The connection may last for hours; what a call leaves behind must not.
            with app.app_context():
                session.receive(message)

        def settle(seconds: float) -> bool:
            with app.app_context():
                return session.settle(seconds)

        try:
            with self._connections.one(connection):
                connection.run(receive, session.pull, session.cancel, settle)
        finally:
            session.close()
