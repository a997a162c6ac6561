"""gevent's server with deadlines, bounds on connections, and fair turns.

gevent.pywsgi waits for a client as long as the client likes, leaves Nagle's algorithm on, and
serves those who have more to ask before it accepts others.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import Enum
from io import BufferedReader, BytesIO
from math import inf
from typing import Any, BinaryIO

import gevent
from gevent.pool import Pool
from gevent.pywsgi import WSGIServer
from werkzeug.middleware.proxy_fix import ProxyFix

from ..concurrency import next_turn
from ..signals import wait_began, wait_ended, websocket_closed, websocket_opened
from ..web.rules.origin import client_key
from ..web.views import status_line
from .direct import Answer, DirectAdapter
from .http import Body, ExpectationFailed, HeadWriter, InTurns, check_request_line, read_headers
from .response_cache import RawRequest, ResponseCache

WSGI = Callable[[dict[str, Any], Any], Iterable[bytes]]

_EXPECTATION_FAILED = (
    b"HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)

_TICK_S = 0.25
# A client that is slower than this may be evicted, where there is no space for others.
_PATIENCE_S = 1.0


def _refusal(said: bytes) -> bytes:
    return (
        b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
        b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s\n" % (len(said) + 1, said)
    )


_FULL = _refusal(b"too many open connections (NODERPC_MAX_OPEN_CONNECTIONS raises this)")
_FULL_FOR_CLIENT = _refusal(
    b"too many open connections of this client (NODERPC_MAX_CONNECTIONS_PER_CLIENT raises this)"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that a client may take for each thing, and how many may be connected."""

    header_s: float = 10.0
    body_s: float = 10.0
    write_s: float = 10.0
    idle_s: float = 120.0
    connections: int = 900
    per_client: int | None = None


class Phase(Enum):
    """Phases in which a connection waits for its client."""

    NOTHING = "nothing, it is our turn"
    REQUEST = "its next request"
    HEADERS = "the rest of the headers"
    BODY = "the rest of the body"
    READER = "that it takes our answer"


class Handler(HeadWriter):
    """One connection, and until when its peer must have done what it is waited for."""

    server: NodeServer
    # gevent's word for a socket that was shut down while somebody waited at it, as ours are.
    ignored_socket_errors = (*HeadWriter.ignored_socket_errors, errno.EBADF)
    # gevent compares it where it can't send, also before the first answer of a connection.
    code = 0
    wsgi_input: Body | None = None

    def __init__(self, sock: Any, address: Any, server: NodeServer) -> None:
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._bytes = InTurns(sock.makefile("rb", 0))
        super().__init__(sock, address, server, BufferedReader(self._bytes))
        self.client = _client(address)
        self.greenlet = gevent.getcurrent()
        self.deadline = inf
        self.since = 0.0
        self.phase = Phase.NOTHING
        self._raw_request: RawRequest | None = None
        """A request whose response may be cached."""
        self._answer: Answer | None = None
        """Direct answer to the current request, if there is one."""
        self.exempt = 0
        """Above 0 for a websocket and while a call waits: other limits count these."""

    def _await(self, what: Phase, seconds: float) -> None:
        self.since = time.monotonic()
        self.phase, self.deadline = what, self.since + seconds

    def handle_one_request(self) -> Any:
        """Send the cached response to a repeated request, or read and answer the request."""
        direct, response_cache = self.server.direct, self.server.response_cache
        self._answer = None
        if direct is None or response_cache is None:
            return super().handle_one_request()
        self._raw_request = raw_request = self._whole_request()
        # While the store is looked at, it is our turn.
        self.phase = Phase.NOTHING
        if raw_request is None or direct.is_bypassed():
            return super().handle_one_request()
        again = response_cache.find(raw_request, direct.app_context)
        if again is None:
            return super().handle_one_request()
        self.rfile.read(raw_request.size)
        try:
            for part in again:
                self._sendall(part)
        except OSError:
            return None
        self._yield()
        return True

    def run_application(self) -> None:
        """Answer a call of the node directly; everything else is the application's."""
        direct = self.server.direct
        answer = direct.answer(self.environ) if direct else None
        if answer is None:
            super().run_application()
            return
        response = answer.response
        self.start_response(status_line(response.status), response.headers)
        self.result: tuple[bytes, ...] | None = (response.body,)
        try:
            self.process_result()
        finally:
            self.result = None
        self._answer = answer

    def _whole_request(self) -> RawRequest | None:
        """The next request, if all of it is there at once."""
        with suppress(OSError):
            if self._has_next():
                return RawRequest.read(self.rfile.peek(1))
        return None

    def _has_next(self) -> bool:
        """Wait for a request; whether there is one."""
        self._await(Phase.REQUEST, self.server.limits.idle_s)
        return not self.server.ending and bool(self.rfile.peek(1))

    def read_requestline(self) -> str:
        """Wait for a request; its first line."""
        if not self._has_next():
            return ""
        self._await(Phase.HEADERS, self.server.limits.header_s)
        line: str = super().read_requestline()
        return line

    def read_request(self, raw_requestline: str) -> bool:
        """Read the headers."""
        check_request_line(raw_requestline)
        read: bool = super().read_request(raw_requestline)
        self._await(Phase.BODY, self.server.limits.body_s)
        return read

    def MessageClass(self, source: BinaryIO, *args: Any) -> Any:  # noqa: N802  # gevent's
        """Return the headers; refuse ambiguous ones."""
        try:
            lines = read_headers(source, self.request_version)
        except OSError:
            # gevent logs what is no ValueError with a traceback.
            raise ValueError("the peer has gone") from None
        return super().MessageClass(BytesIO(lines), *args)

    def _handle_client_error(self, error: Exception) -> Any:
        if isinstance(error, ExpectationFailed):
            return "417", _EXPECTATION_FAILED
        return super()._handle_client_error(error)

    def get_environ(self) -> dict[str, Any]:
        """The WSGI environ, with a body of our own."""
        environ: dict[str, Any] = super().get_environ()
        if self.server.proxy_fix is not None:
            self.server.proxy_fix(environ, lambda *_: lambda _: None)
        given: Any = self.wsgi_input
        # Also where an upgrade is asked for: what an app would read past the body's end is
        # the next request.
        self.wsgi_input = environ["wsgi.input"] = Body(
            self.rfile, self.content_length, given.socket, given.chunked_input
        )
        environ["wsgi.input_terminated"] = True
        return environ

    def handle_one_response(self) -> None:
        """Answer the request, then let other connections be served."""
        super().handle_one_response()
        if not self._has_whole_body():
            # What comes now is no request.
            self.close_connection = True
        self._store()
        self._yield()

    def _store(self) -> None:
        """Cache the response to a call that may be repeated."""
        response_cache, answer = self.server.response_cache, self._answer
        if (
            response_cache is not None
            and self._raw_request is not None
            and answer is not None
            and answer.reproducible is not None
            and self.request_version == "HTTP/1.1"
            and not self.close_connection
            # 100 Continue goes first to a client that expects it, and is no part of it.
            and "expect" not in self.headers
        ):
            response_cache.store(self._raw_request, answer.response, answer.reproducible)

    def _yield(self) -> None:
        self.phase, self.exempt = Phase.NOTHING, 0
        next_turn()
        self._bytes.has_read = False

    def _sendall(self, data: bytes) -> None:
        before = self.phase, self.deadline, self.since
        self._await(Phase.READER, self.server.limits.write_s)
        super()._sendall(data)
        # Who was answered before all was read has as long as before for the rest.
        self.phase, self.deadline, self.since = before

    def is_overdue(self, now: float) -> bool:
        """True if the client is past the deadline of its phase."""
        return self.deadline < now and self._is_awaited()

    def may_go(self, now: float) -> bool:
        """True if it may be evicted: idle, or slow."""
        if self.phase is Phase.REQUEST:
            return True
        return self.since < now - _PATIENCE_S and self._is_awaited()

    def _is_awaited(self) -> bool:
        """True if the server waits for the client."""
        if self.phase is Phase.BODY:
            return not self._has_whole_body()
        return self.phase is not Phase.NOTHING

    def _has_whole_body(self) -> bool:
        """True if the request was read to its end and the answer is being made."""
        body = self.wsgi_input
        if body is None:
            return True
        if body.chunked_input:
            return bool(body.chunk_length == 0)
        return bool(body.position >= (body.content_length or 0))

    def drop(self) -> None:
        """Shut the connection down."""
        with suppress(OSError, AttributeError):
            self.socket.shutdown(socket.SHUT_RDWR)


def _client(address: Any) -> str:
    """Return the client's address; empty for one that has none, as by a unix socket."""
    return client_key(address[0]) if isinstance(address, tuple) else ""


def _proxy_fix(hops: int) -> ProxyFix:
    return ProxyFix(lambda *_: (), x_for=hops, x_proto=hops, x_host=hops, x_prefix=hops)


class NodeServer(WSGIServer):  # type: ignore[misc]  # gevent has no types
    """Serves an app at a socket that listens.

    ``direct`` answers the calls of the node's own app, and ``response_cache`` repeated ones;
    ``proxies`` is the number of trusted proxies before it.
    """

    handler_class = Handler
    # In one turn: those have their places, or are turned away, before more take a file, and
    # what else waits is shared with the other processes.
    max_accept = 16

    def __init__(
        self,
        listener: socket.socket,
        app: WSGI,
        limits: Limits,
        response_cache: ResponseCache | None = None,
        direct: DirectAdapter | None = None,
        proxies: int = 0,
        **options: Any,
    ) -> None:
        # A pool can be waited for.
        super().__init__(listener, app, spawn=Pool(), log=None, error_log=None, **options)
        self.limits = limits
        self.response_cache = response_cache
        self.direct = direct
        self.proxy_fix = _proxy_fix(proxies) if proxies else None
        """Puts what trusted proxies say of the client into a WSGI environ."""
        self.ending = False
        self._open: dict[Any, Handler] = {}
        """Handlers of open connections, by their greenlets."""
        self._tls_pending: dict[socket.socket, tuple[str, float]] = {}
        """Clients of TLS handshakes in progress, and the times when they began."""
        self._clock: Any = None
        for began, ended in ((wait_began, wait_ended), (websocket_opened, websocket_closed)):
            began.connect(self._exempt)
            ended.connect(self._end_exemption)

    def start(self) -> None:
        """Begin to accept."""
        super().start()
        self._clock = gevent.spawn(self._enforce_deadlines)

    def wrap_socket_and_handle(self, sock: Any, address: Any) -> None:
        """Agree on TLS, within the time for headers, and serve."""
        client, most = _client(address), self.limits.per_client
        own = sum(client == other for other, _ in self._tls_pending.values())
        if client and most is not None and own >= most:
            return
        if len(self._tls_pending) >= self.limits.connections and not self._evict_handshake():
            return
        self._tls_pending[sock] = client, time.monotonic()
        try:
            with gevent.Timeout(self.limits.header_s, TimeoutError()):
                wrapped = self.wrap_socket(sock, **self.ssl_args)
        except OSError:
            return
        finally:
            self._tls_pending.pop(sock, None)
        with suppress(OSError), closing(wrapped):
            self.handle(wrapped, address)

    def handle(self, sock: Any, address: Any) -> None:
        """Serve a connection to its end."""
        refusal = self._refusal(_client(address))
        if refusal:
            with suppress(OSError):
                sock.sendall(refusal)
            return
        handler = self.handler_class(sock, address, self)
        self._open[handler.greenlet] = handler
        try:
            # Whom we refuse may have gone before.
            with suppress(OSError):
                handler.handle()
        finally:
            self._open.pop(handler.greenlet, None)

    def _refusal(self, client: str) -> bytes:
        """Return the answer to a client for which no connection can be evicted."""
        most = self.limits.per_client
        if client and most is not None:
            own = [each for each in self._open.values() if each.client == client]
            if len(own) >= most and not self._evict(own):
                return _FULL_FOR_CLIENT
        if len(self._open) >= self.limits.connections:
            here = [each for each in self._open.values() if not each.exempt]
            if len(here) >= self.limits.connections and not self._evict(here):
                return _FULL
        return b""

    def _evict(self, among: Collection[Handler]) -> bool:
        """Drop the connection that has been idle the longest, or else slow the longest; return
        false if there is none."""
        now = time.monotonic()
        first = min(
            (handler for handler in among if handler.may_go(now)),
            key=lambda handler: (handler.phase is not Phase.REQUEST, handler.since),
            default=None,
        )
        if first is None:
            return False
        first.drop()
        del self._open[first.greenlet]
        return True

    def _evict_handshake(self) -> bool:
        """Drop the oldest TLS handshake if it is slow; return false if it is not."""
        sock, (_, since) = next(iter(self._tls_pending.items()))
        if since > time.monotonic() - _PATIENCE_S:
            return False
        del self._tls_pending[sock]
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        return True

    def _exempt(self, _sender: object, **_: object) -> None:
        self._count_exemptions(1)

    def _end_exemption(self, _sender: object, **_: object) -> None:
        self._count_exemptions(-1)

    def _count_exemptions(self, more: int) -> None:
        handler = self._open.get(gevent.getcurrent())
        if handler is not None:
            handler.exempt = max(0, handler.exempt + more)

    def _enforce_deadlines(self) -> None:
        while True:
            gevent.sleep(_TICK_S)
            now = time.monotonic()
            for handler in [each for each in self._open.values() if each.is_overdue(now)]:
                handler.drop()

    def stop(self, timeout: float | None = None) -> None:
        """Accept no connection, drop idle ones, and wait for the others."""
        self.ending = True
        self.close()
        for handler in [each for each in self._open.values() if each.phase is Phase.REQUEST]:
            handler.drop()
        super().stop(timeout)
        if self._clock is not None:
            self._clock.kill()
