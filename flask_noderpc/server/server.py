"""HTTP server on gevent's StreamServer, with deadlines and limits on open connections."""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import closing, suppress
from typing import Any

import gevent
from gevent.pool import Pool
from gevent.socket import socket as gevent_socket
from werkzeug.middleware.proxy_fix import ProxyFix

from ..signals import wait_began, wait_ended, websocket_closed, websocket_opened
from .accept import SharingServer
from .connection import Connection, Limits, Service, client_of
from .direct import DirectAdapter, ResponseCache
from .places import PATIENCE_S, Phase, Places
from .wsgi import WSGI

_TICK_S = 0.25
_PLAIN_BYTES = 65_536
_PLAIN_HTTP = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 35\r\n\r\nthis port speaks TLS; use https://\n"
)
# Maximum number of connections to refuse in a row: clients that reconnect without pause fill
# the system's queue, and other clients wait in it until these are refused.
_MOST_REFUSED = 64


def _refuse(descriptor: int, answer: bytes) -> None:
    """Send a response on a newly accepted connection without waiting, and close it.

    The descriptor is used directly, as making a gevent socket would double the time.
    """
    with suppress(OSError):
        os.write(descriptor, answer)
    os.close(descriptor)


def _proxy_fix(hops: int) -> ProxyFix:
    return ProxyFix(lambda *_: (), x_for=hops, x_proto=hops, x_host=hops, x_prefix=hops)


def _base_environ(listener: socket.socket, tls: bool) -> dict[str, Any]:
    """Return the environ variables that all requests share."""
    name = listener.getsockname()
    host, port = name[:2] if isinstance(name, tuple) else ("", "")
    return {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_SOFTWARE": f"gevent/{gevent.__version__}",
        "SERVER_NAME": socket.getfqdn(host) if host else "",
        "SERVER_PORT": str(port),
        "SCRIPT_NAME": "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https" if tls else "http",
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }


class NodeServer(SharingServer):
    """Server of an app at a listening socket.

    ``direct`` responds to calls of the node's own app without Flask, and ``response_cache`` to
    repeated ones; ``proxies`` is the number of trusted proxies in front of the server;
    ``environ`` are additional WSGI variables.
    """

    # Maximum number of connections to accept in one iteration of the event loop; the rest of
    # the queue is left to other processes.
    max_accept = 16

    def __init__(
        self,
        listener: socket.socket,
        app: WSGI,
        limits: Limits,
        response_cache: ResponseCache | None = None,
        direct: DirectAdapter | None = None,
        proxies: int = 0,
        environ: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        # stop() waits for the greenlets of the pool.
        super().__init__(listener, spawn=Pool(), **options)
        self._limits, self._places = limits, Places(limits.connections, limits.per_client)
        self._service = Service(
            app,
            _base_environ(listener, "ssl_context" in options) | (environ or {}),
            limits,
            self._places,
            response_cache,
            direct,
            _proxy_fix(proxies) if proxies else None,
        )
        self._starting = 0
        """Number of accepted connections whose greenlets have not started."""
        self._served: dict[Any, Connection] = {}
        """Connections by greenlet."""
        self._tls_pending: dict[socket.socket, tuple[str, float]] = {}
        """Clients and start times of TLS handshakes in progress, by socket."""
        self._clock: Any = None
        for began, ended in ((wait_began, wait_ended), (websocket_opened, websocket_closed)):
            began.connect(self._exempt)
            ended.connect(self._end_exemption)

    def start(self) -> None:
        """Start accepting connections."""
        super().start()
        self._clock = gevent.spawn(self._enforce_deadlines)

    def do_read(self) -> tuple[Any, Any] | None:
        """Accept the next connection within the limits, and refuse the connections before it,
        which need no greenlet."""
        if self._starting >= self.max_accept or self.leaves_to_others():
            # Leave further connections in the system's queue, where other processes can accept
            # them.
            return None
        listener = self.socket
        for _ in range(_MOST_REFUSED):
            try:
                descriptor, address = listener._accept()
            except BlockingIOError:
                return None
            try:
                refusal = b"" if self.ssl_enabled else self._places.refusal(client_of(address))
            except BaseException:
                os.close(descriptor)
                raise
            if refusal:
                _refuse(descriptor, refusal)
                continue
            sock = gevent_socket(listener.family, listener.type, listener.proto, descriptor)
            self.count_connection(1)
            if self.ssl_enabled:
                return sock, address
            connection = Connection(sock, address, self._service)
            self._places.add(connection)
            self._starting += 1
            return sock, connection
        return None

    def do_close(self, sock: Any, served: Any) -> None:
        """Close a connection, and remove it from the limits."""
        if isinstance(served, Connection):
            self._places.remove(served)
        super().do_close(sock, served)

    def wrap_socket_and_handle(self, sock: Any, address: Any) -> None:
        """Do the TLS handshake, for which the client has the time for headers, and serve the
        connection."""
        client, limit = client_of(address), self._limits.per_client
        pending = sum(client == other for other, _ in self._tls_pending.values())
        if limit is not None and limit.counts(client) and pending >= limit.count:
            return
        if len(self._tls_pending) >= self._limits.connections and not self._evict_handshake():
            return
        self._tls_pending[sock] = client, time.monotonic()
        try:
            with gevent.Timeout(self._limits.header_s, TimeoutError()):
                if sock.recv(1, socket.MSG_PEEK).isalpha():
                    # A letter is the start of a plain HTTP request; a TLS record begins with
                    # byte 22.
                    sock.recv(_PLAIN_BYTES)
                    sock.sendall(_PLAIN_HTTP)
                    sock.close()
                    return
                wrapped = self.wrap_socket(sock, **self.ssl_args)
        except OSError:
            return
        finally:
            self._tls_pending.pop(sock, None)
        with suppress(OSError), closing(wrapped):
            refusal = self._places.refusal(client)
            if refusal:
                wrapped.sendall(refusal)
                return
            connection = Connection(wrapped, address, self._service)
            self._places.add(connection)
            self.handle(wrapped, connection)

    def handle(self, _sock: Any, connection: Connection) -> None:
        """Serve a connection until it ends."""
        self._starting = max(0, self._starting - 1)
        greenlet = gevent.getcurrent()
        self._served[greenlet] = connection
        try:
            # Ignore errors of the socket, as the client may have disconnected.
            with suppress(OSError):
                connection.serve()
        finally:
            del self._served[greenlet]
            self._places.remove(connection)

    def _evict_handshake(self) -> bool:
        """Drop the oldest TLS handshake and return true, or return false if it is less than a
        second old."""
        sock, (_, since) = next(iter(self._tls_pending.items()))
        if since > time.monotonic() - PATIENCE_S:
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
        connection = self._served.get(gevent.getcurrent())
        if connection is not None:
            self._places.exempt(connection, max(0, connection.exempt + more))

    def _enforce_deadlines(self) -> None:
        while True:
            gevent.sleep(_TICK_S)
            now = time.monotonic()
            for connection in [each for each in self._places if each.is_overdue(now)]:
                connection.drop()

    def stop(self, timeout: float | None = None) -> None:
        """Stop accepting connections, drop idle ones, and wait at most ``timeout`` seconds for
        the others."""
        self._service.ending = True
        self.close()
        for connection in [each for each in self._places if each.phase is Phase.REQUEST]:
            connection.drop()
        super().stop(timeout)
        if self._clock is not None:
            self._clock.kill()
