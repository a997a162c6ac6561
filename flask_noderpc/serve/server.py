"""gevent's server with deadlines, a bound on connections, and fair turns.

gevent.pywsgi waits for a client as long as the client likes, leaves Nagle's algorithm on, and
serves whoever has more to ask before it looks at others.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import Enum
from io import BytesIO
from math import inf
from typing import Any, BinaryIO

import gevent
from gevent.pool import Pool
from gevent.pywsgi import WSGIHandler, WSGIServer

from .framing import check_request_line, read_headers

WSGI = Callable[[dict[str, Any], Any], Iterable[bytes]]

_TICK_S = 0.25
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
    b"Content-Type: text/plain\r\nContent-Length: 27\r\n\r\ntoo many open connections\r\n"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that a client may take for each thing, and how many may be connected."""

    header_s: float = 10.0
    body_s: float = 10.0
    write_s: float = 10.0
    idle_s: float = 120.0
    connections: int = 900


class Awaits(Enum):
    """What a connection waits for at its peer."""

    NOTHING = "nothing, it is our turn"
    REQUEST = "its next request"
    HEADERS = "the rest of the headers"
    BODY = "the rest of the body"
    READER = "that it takes our answer"


class Handler(WSGIHandler):  # type: ignore[misc]  # gevent has no types
    """One connection, and until when its peer must have done what it is waited for."""

    server: NodeServer
    # gevent's word for a socket that was shut down while somebody waited at it, as ours are.
    ignored_socket_errors = (*WSGIHandler.ignored_socket_errors, errno.EBADF)

    def __init__(self, sock: Any, address: Any, server: NodeServer) -> None:
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().__init__(sock, address, server)
        self.deadline = inf
        self.awaits = Awaits.NOTHING

    def _await(self, what: Awaits, seconds: float) -> None:
        self.awaits, self.deadline = what, time.monotonic() + seconds

    def read_requestline(self) -> str:
        """Wait for a request; its first line."""
        limits = self.server.limits
        self._await(Awaits.REQUEST, limits.idle_s)
        if self.server.ending or not self.rfile.peek(1):
            return ""
        self._await(Awaits.HEADERS, limits.header_s)
        line: str = super().read_requestline()
        return line

    def read_request(self, raw_requestline: str) -> bool:
        """Read the headers."""
        check_request_line(raw_requestline)
        read: bool = super().read_request(raw_requestline)
        self._await(Awaits.BODY, self.server.limits.body_s)
        return read

    def MessageClass(self, source: BinaryIO, *args: Any) -> Any:  # noqa: N802  # gevent's
        """The headers, where they have one meaning."""
        try:
            lines = read_headers(source, self.request_version)
        except OSError:
            # gevent logs what is no ValueError with a traceback.
            raise ValueError("the peer has gone") from None
        return super().MessageClass(BytesIO(lines), *args)

    def handle_one_response(self) -> None:
        """Answer, and let the others have their turn."""
        super().handle_one_response()
        if not self._has_whole_body():
            # What comes now is no request.
            self.close_connection = True
        self.awaits = Awaits.NOTHING
        gevent.sleep(0)

    def _sendall(self, data: bytes) -> None:
        before = self.awaits, self.deadline
        self._await(Awaits.READER, self.server.limits.write_s)
        super()._sendall(data)
        # Who was answered before all was read has as long as before for the rest.
        self.awaits, self.deadline = before

    def is_overdue(self, now: float) -> bool:
        """Whether its peer keeps us waiting for too long."""
        if self.deadline >= now or self.awaits is Awaits.NOTHING:
            return False
        return self.awaits is not Awaits.BODY or not self._has_whole_body()

    def _has_whole_body(self) -> bool:
        """Whether the request was read to its end, and it is our answer that takes time."""
        body = self.wsgi_input
        if body is None:
            return True
        if body.chunked_input:
            return bool(body.chunk_length == 0)
        return bool(body.position >= (body.content_length or 0))

    def drop(self) -> None:
        """Let the peer have nothing more."""
        with suppress(OSError, AttributeError):
            self.socket.shutdown(socket.SHUT_RDWR)


class NodeServer(WSGIServer):  # type: ignore[misc]  # gevent has no types
    """Serves an app at a socket that listens."""

    handler_class = Handler
    # In one turn: those have their places, or are turned away, before more take a file, and
    # what else waits is shared with the other processes.
    max_accept = 16

    def __init__(self, listener: socket.socket, app: WSGI, limits: Limits, **tls: Any) -> None:
        # A pool can be waited for.
        super().__init__(listener, app, spawn=Pool(), log=None, error_log=None, **tls)
        self.limits = limits
        self.ending = False
        self._open: set[Handler] = set()
        self._greeting = 0
        self._clock: Any = None

    def start(self) -> None:
        """Begin to accept."""
        super().start()
        self._clock = gevent.spawn(self._look_at_clock)

    def wrap_socket_and_handle(self, sock: Any, address: Any) -> None:
        """Agree on TLS, within the time for headers, and serve."""
        if self._greeting >= self.limits.connections:
            return
        self._greeting += 1
        try:
            with gevent.Timeout(self.limits.header_s, TimeoutError()):
                wrapped = self.wrap_socket(sock, **self.ssl_args)
        except OSError:
            return
        finally:
            self._greeting -= 1
        with suppress(OSError), closing(wrapped):
            self.handle(wrapped, address)

    def handle(self, sock: Any, address: Any) -> None:
        """Serve a connection to its end."""
        if len(self._open) >= self.limits.connections and not self._make_room():
            with suppress(OSError):
                sock.sendall(_FULL)
            return
        handler = self.handler_class(sock, address, self)
        self._open.add(handler)
        try:
            # Whom we refuse may have gone before.
            with suppress(OSError):
                handler.handle()
        finally:
            self._open.discard(handler)

    def _make_room(self) -> bool:
        """Drop the connection that has waited the longest for its next request, if any."""
        idle = (handler for handler in self._open if handler.awaits is Awaits.REQUEST)
        oldest = min(idle, key=lambda handler: handler.deadline, default=None)
        if oldest is None:
            return False
        oldest.drop()
        self._open.discard(oldest)
        return True

    def _look_at_clock(self) -> None:
        while True:
            gevent.sleep(_TICK_S)
            now = time.monotonic()
            for handler in [each for each in self._open if each.is_overdue(now)]:
                handler.drop()

    def stop(self, timeout: float | None = None) -> None:
        """Accept nothing more, drop who is idle, and wait for the others."""
        self.ending = True
        self.close()
        for handler in [each for each in self._open if each.awaits is Awaits.REQUEST]:
            handler.drop()
        super().stop(timeout)
        if self._clock is not None:
            self._clock.kill()
