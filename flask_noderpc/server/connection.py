"""One connection of a client: its requests are handled in order, with deadlines."""

from __future__ import annotations

import errno
import logging
import socket
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from typing import Any

from gevent import GreenletExit, get_hub
from werkzeug.middleware.proxy_fix import ProxyFix

from ..concurrency import next_turn
from ..web.rules.head import ClientLimit, client_key, unmapped
from .direct import DirectAdapter, DirectResponse, RawRequest, ResponseCache, Sender
from .http import (
    NO_BODY,
    Body,
    ExpectationFailed,
    FairSocketReader,
    HeadReader,
    InvalidBody,
    RequestHead,
    RequestTooLong,
)
from .places import Phase, Place, Places
from .wsgi import WSGI, WSGIResponse

log = logging.getLogger("flask_noderpc.server")


def _last_response(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()


_BAD_REQUEST = _last_response("400 Bad Request")
_TOO_LONG = _last_response("414 Request URI Too Long")
_EXPECTATION_FAILED = _last_response("417 Expectation Failed")
_ERRORS = {"400 Bad Request": b"", "500 Internal Server Error": b"Internal Server Error"}
# Errors of a socket whose client has disconnected, or that was shut down during a wait.
_DISCONNECT_ERRORS = (errno.EPIPE, errno.ECONNRESET, errno.EBADF)
# Maximum bytes to read before closing: unread bytes would reset the connection, and the client
# might lose the response.
_LINGER_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that a client may take for each phase of a request, and maximum numbers of
    connections."""

    header_s: float = 10.0
    body_s: float = 10.0
    write_s: float = 10.0
    idle_s: float = 120.0
    connections: int = 900
    per_client: ClientLimit | None = None


@dataclass(slots=True)
class Service:
    """Objects that the connections of a server share."""

    application: WSGI
    base_environ: dict[str, Any]
    limits: Limits
    places: Places
    response_cache: ResponseCache | None
    direct: DirectAdapter | None
    proxy_fix: ProxyFix | None
    """Middleware that sets the client's address and host from the headers of trusted
    proxies."""
    ending: bool = False


class Connection(Place):
    """One connection of a client."""

    def __init__(self, sock: Any, address: Any, service: Service) -> None:
        if sock.family != socket.AF_UNIX:
            # Ignore an error, as the client may have disconnected.
            with suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().__init__(client_of(address))
        self._service = service
        self._sock, self._address = sock, address
        self._bytes = FairSocketReader(sock.makefile("rb", 0), get_hub().loop.now)
        self._rfile = BufferedReader(self._bytes)
        self._heads = HeadReader(self._rfile)
        self._sender: Sender | None = None
        # Requests without a body share this one, which is always read.
        self._no_body = Body(self._rfile, NO_BODY, self._await_body, None)

    def serve(self) -> None:
        """Respond to requests until the client or the server ends the connection; close the
        socket."""
        try:
            while self._serve_one():
                self.phase = Phase.NOTHING
                if self.exempt:
                    self._service.places.exempt(self, 0)
        finally:
            self._close()

    def _close(self) -> None:
        inner = self._sock._sock
        with suppress(OSError):
            inner.recv(_LINGER_BYTES)
        # Shut the socket down before closing it, which also ends copies of the socket:
        # simple-websocket has one, on which it waits for the client.
        self.drop()
        with suppress(OSError):
            inner.close()
            self._sock.close()

    def _serve_one(self) -> bool:
        """Respond to the next request; return true if another may follow."""
        try:
            if not self._has_next():
                return False
            # A connection with a request is not idle, so it must not be evicted while it
            # waits.
            self.phase = Phase.NOTHING
            self._service.places.await_turn(self)
            raw_request = self._repeatable()
            cached = self._cached(raw_request)
            return self._send_parts(cached) if cached else self._serve_next(raw_request)
        except OSError:
            return False

    def _repeatable(self) -> RawRequest | None:
        """Return the next request if it has arrived completely and its response may be
        cached."""
        if self._service.response_cache is None:
            return None
        return RawRequest.read(self._rfile.peek(1))

    def _cached(self, raw_request: RawRequest | None) -> tuple[bytes | memoryview, ...]:
        """Return the cached response to a request, in parts, and skip the request's bytes;
        return an empty tuple if it is not cached."""
        direct, response_cache = self._service.direct, self._service.response_cache
        # The client has no deadline while the store is read.
        self.phase = Phase.NOTHING
        if not (raw_request and direct and response_cache) or direct.is_bypassed():
            return ()
        found = response_cache.find(raw_request, direct.app_context)
        if found:
            self._rfile.read(raw_request.size)
        return found or ()

    def _send_parts(self, parts: tuple[bytes | memoryview, ...]) -> bool:
        for part in parts:
            self._send(part)
        return True

    def _has_next(self) -> bool:
        """Wait for a request; return true if one has arrived."""
        self.wait_for_client(Phase.REQUEST, self._service.limits.idle_s)
        self._bytes.has_read = False
        if self._service.ending or not self._rfile.peek(1):
            return False
        if not self._bytes.has_read:
            # The request came with the one before: let others run, as a read does.
            next_turn()
        return True

    def _serve_next(self, raw_request: RawRequest | None) -> bool:
        self.wait_for_client(Phase.HEADERS, self._service.limits.header_s)
        try:
            head = self._heads.read()
        except ValueError as error:
            self._send(_response_to(error))
            return False
        self.phase = Phase.NOTHING
        return head is not None and self._answer(head, raw_request)

    def _answer(self, head: RequestHead, raw_request: RawRequest | None) -> bool:
        """Respond to a request; return true if another may follow."""
        sender = self._sender_of(head)
        body = self._body_of(head) if head.has_body else self._no_body
        answer: DirectResponse | None = None
        response: WSGIResponse | None = None
        try:
            try:
                direct = self._service.direct
                answer = direct.answer(sender, head, body) if direct else None
                if answer is not None:
                    self._send_parts(answer.parts())
                    self._store(sender, raw_request, answer)
                else:
                    # Another request than a call of the node.
                    response = WSGIResponse(self._send, head, body)
                    environ = self._environ(sender, head, body)
                    response.run(self._service.application, environ)
            finally:
                body.discard()
        except BaseException as error:
            # Catch BaseException: gevent.Timeout, for example, would leave the client without
            # a response.
            has_begun = answer is not None or (response is not None and response.begun)
            return self._fail(error, head, body, has_begun)
        closes = sender.closes if response is None else response.close
        # Close the connection if the body was not read, as the next bytes are not a request.
        return not closes and body.is_read

    def _fail(
        self, error: BaseException, head: RequestHead, body: Body, has_begun: bool
    ) -> bool:
        """Send an error response, unless a response has begun; return false."""
        if isinstance(error, InvalidBody):
            status = "400 Bad Request"
        elif isinstance(error, OSError) and error.args and error.args[0] in _DISCONNECT_ERRORS:
            return False
        else:
            # Don't log GreenletExit, with which the server ends its greenlets when it stops.
            if not isinstance(error, GreenletExit):
                log.exception("error while handling %s %.200s", head.method, head.path)
            status = "500 Internal Server Error"
        if not has_begun:
            text = _ERRORS[status]
            fields = [("Content-Type", "text/plain"), ("Connection", "close")]
            failed = WSGIResponse(self._send, head, body)
            failed.start_response(status, [*fields, ("Content-Length", str(len(text)))])
            failed.write(text)
        return False

    def _sender_of(self, head: RequestHead) -> Sender:
        """Return the sender of a request, which is the same for equal headers."""
        found = self._sender
        if found is None or found.fields is not head.fields:
            environ = self._service.base_environ | head.fields.environ
            environ["SERVER_PROTOCOL"] = head.version
            if isinstance(self._address, tuple):
                environ["REMOTE_ADDR"] = unmapped(str(self._address[0]))
                environ["REMOTE_PORT"] = str(self._address[1])
            if self._service.proxy_fix is not None:
                self._service.proxy_fix(environ, lambda *_: lambda _: None)
            found = self._sender = Sender(head, environ)
        return found

    def _body_of(self, head: RequestHead) -> Body:
        # Limit the input to the body even with an upgrade: bytes after it are the next
        # request.
        sock = self._sock if head.expects_continue else None
        return Body(self._rfile, head, self._await_body, sock)

    def _environ(self, sender: Sender, head: RequestHead, body: Body) -> dict[str, Any]:
        """Return the WSGI environ of a request (PEP 3333)."""
        return {
            **sender.environ,
            "REQUEST_METHOD": head.method,
            "PATH_INFO": head.decoded_path,
            "QUERY_STRING": head.query,
            "wsgi.input": body,
            "wsgi.input_terminated": True,
        }

    def _store(
        self, sender: Sender, raw_request: RawRequest | None, answer: DirectResponse
    ) -> None:
        """Cache the response if the same request always gets it while the chain is
        unchanged."""
        response_cache = self._service.response_cache
        if (
            response_cache is not None
            and raw_request is not None
            and sender.version == "HTTP/1.1"
            and not sender.closes
        ):
            response_cache.store(raw_request, answer)

    def _send(self, data: bytes | memoryview) -> None:
        before = self.phase, self.deadline, self.since
        self.wait_for_client(Phase.READER, self._service.limits.write_s)
        try:
            sent = self._sock.send(data)
            if sent < len(data):
                self._sock.sendall(memoryview(data)[sent:])
        except OSError as error:
            # TLS errors have other numbers, so report all as a reset.
            raise ConnectionResetError(errno.ECONNRESET, str(error)) from error
        # Restore the deadline of the body, which may not be fully read yet.
        self.phase, self.deadline, self.since = before

    def _await_body(self) -> None:
        self.wait_for_client(Phase.BODY, self._service.limits.body_s)

    @property
    def is_awaited(self) -> bool:
        """True if the server waits for the client."""
        if self.phase is Phase.BODY:
            # The server only waits during a read; the application may read the body later.
            return self._bytes.is_waiting
        return self.phase is not Phase.NOTHING

    def drop(self) -> None:
        """Shut the socket down."""
        with suppress(OSError, AttributeError):
            self._sock.shutdown(socket.SHUT_RDWR)


def _response_to(error: ValueError) -> bytes:
    if isinstance(error, RequestTooLong):
        return _TOO_LONG
    return _EXPECTATION_FAILED if isinstance(error, ExpectationFailed) else _BAD_REQUEST


def client_of(address: Any) -> str:
    """Return the key of the client at an address; empty on a Unix socket."""
    return client_key(address[0]) if isinstance(address, tuple) else ""
