"""Handshake of a websocket, and access to its socket under each WSGI server.

flask-sock only registers the URL rule. Its connection is not used: it drops data that does not
fit into the socket's buffer, and queues any number of received messages.
"""

from __future__ import annotations

import base64
import binascii
import errno
import logging
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import wraps
from http import HTTPStatus
from typing import Any

from flask import Response, request
from flask_sock import Sock
from wsproto.utilities import generate_accept_token

from ..concurrency import is_patched
from ..errors import Busy

log = logging.getLogger("flask_noderpc.websocket")

Handler = Callable[[socket.socket, bytes], None]
"""Function that serves a websocket, given its socket and the bytes that the server has read
from it after the handshake."""

PLAIN = "-plain"
"""Suffix of the endpoint for requests to a websocket's path that ask for no upgrade."""

_GUNICORN = "gunicorn.socket"
"""Key of the connection's socket in gunicorn's environ."""

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

# A client may retry after a second: other websockets end, and a stopping server is replaced.
_RETRY = {"Retry-After": "1"}


_SERVERS = (
    "use `noderpc start`, gunicorn with -k gevent or --threads, gevent.pywsgi or `flask run`"
)
_ONE_THREAD = (
    "the server process has one thread, which a websocket would block: run gunicorn with"
    " --threads 64 or -k gevent, or `flask run` without --without-threads"
)


class WebSocketRoutes(Sock):  # type: ignore[misc]  # flask-sock has no types
    """Registry of websocket rules, whose handlers get a socket after the handshake.

    ``refuse`` returns a response if the sender of a handshake may not connect, else ``None``;
    ``reserve`` is a context that counts an open websocket, or raises
    :exc:`~flask_noderpc.errors.Busy`; ``wrong_version`` is the status for another version.
    """

    def __init__(
        self,
        refuse: Callable[[], Response | None],
        reserve: Callable[[], AbstractContextManager[None]],
        wrong_version: HTTPStatus = HTTPStatus.UPGRADE_REQUIRED,
    ) -> None:
        super().__init__()
        if "hypercorn.app_wrappers" in sys.modules:
            # Warn at the start, as hypercorn refuses handshakes without calling the app.
            log.warning("hypercorn does not serve websockets of WSGI apps: %s", _SERVERS)
        self._refuse = refuse
        self._reserve = reserve
        self._wrong_version = wrong_version

    def route(self, path: str, bp: Any = None, **options: Any) -> Callable[[Handler], None]:
        """Return a decorator that registers a handler at a path of the blueprint ``bp``."""

        def decorate(handler: Handler) -> None:
            @wraps(handler)
            def view(**_: object) -> Response:
                return self._refuse() or self._serve(handler)

            bp.route(path, websocket=True, **options)(view)
            bp.route(
                path,
                endpoint=f"{options['endpoint']}{PLAIN}",
                methods=_METHODS,
                provide_automatic_options=False,
            )(_no_handshake)

        return decorate

    def _serve(self, handler: Handler) -> Response:
        with ExitStack() as stack:
            try:
                stack.enter_context(self._reserve())
            except Busy as error:
                return Response(f"{error}\n", HTTPStatus.SERVICE_UNAVAILABLE, _RETRY)
            return _refusal(self._wrong_version) or _serve(handler)


def _no_handshake(**_: object) -> Response:
    # Respond like gorilla/websocket. Without this view, Werkzeug would raise an error that the
    # app's error handlers might handle.
    version = {"Sec-WebSocket-Version": "13"}
    return Response("Bad Request\n", "400 Bad Request", version, mimetype="text/plain")


def _serve(handler: Handler) -> Response:
    sock = _socket(request.environ)
    if sock is None:
        name = request.environ.get("SERVER_SOFTWARE") or "this server"
        return _failed(f"{name} does not give apps the socket: {_SERVERS}")
    if _is_gevent() and not is_patched():
        # Without the patches, a wait for one socket would block the whole server.
        return _failed(
            "gevent is not patched: call gevent.monkey.patch_all() before other imports"
        )
    if not (request.environ["wsgi.multithread"] or is_patched()):
        # gunicorn's sync workers and `flask run --without-threads` have one thread.
        return _failed(_ONE_THREAD, HTTPStatus.SERVICE_UNAVAILABLE)
    key = request.headers["Sec-WebSocket-Key"].encode()
    early = _read_ahead(request.environ["wsgi.input"], sock)
    sock.settimeout(None)
    sock.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Accept: "
        + generate_accept_token(key)
        + b"\r\n\r\n"
    )
    handler(sock, early)
    return _EndedResponse()


def _refusal(wrong_version: HTTPStatus) -> Response | None:
    """Return the error response to an invalid handshake; ``None`` for a valid one."""
    if request.headers.get("Sec-WebSocket-Version") != "13":
        answer = Response("expected websocket version 13\n", wrong_version)
        answer.headers["Sec-WebSocket-Version"] = "13"
        return answer
    try:
        key = base64.b64decode(request.headers.get("Sec-WebSocket-Key", ""), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != 16:
        return Response("expected a Sec-WebSocket-Key of 16 bytes\n", HTTPStatus.BAD_REQUEST)
    return None


def _failed(reason: str, status: HTTPStatus = HTTPStatus.NOT_IMPLEMENTED) -> Response:
    log.error("no websocket: %s", reason)
    return Response(f"no websocket: {reason}\n", status, mimetype="text/plain")


def _is_gevent() -> bool:
    return str(request.environ.get("SERVER_SOFTWARE", "")).startswith("gevent")


def _socket(environ: dict[str, Any]) -> socket.socket | None:
    """Return the socket of the request's connection, or ``None`` if the server hides it."""
    found: socket.socket | None = environ.get("werkzeug.socket") or environ.get(_GUNICORN)
    if found is not None:
        return found
    if _is_gevent():
        body = environ["wsgi.input"]
        raw = getattr(getattr(body, "rfile", body), "raw", None)
        return getattr(raw, "_sock", None)
    return None


def _read_ahead(body: Any, sock: socket.socket) -> bytes:
    """Return the bytes after the handshake that the server has already read; some clients send
    frames before they get the response."""
    unreader = getattr(getattr(body, "reader", None), "unreader", None)
    if unreader is not None:
        # gunicorn.
        return bytes(unreader.buf.getvalue())
    rfile = getattr(body, "rfile", body)
    if not hasattr(rfile, "peek"):
        return b""
    # A timeout of 0 limits this to buffered bytes: peek() of an empty buffer reads the socket.
    sock.settimeout(0)
    with suppress(OSError):
        return bytes(rfile.read(len(rfile.peek())))
    return b""


class _EndedResponse(Response):
    """Placeholder response for the server, which must not send anything, as the websocket used
    the socket and has shut it down."""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        if "werkzeug.socket" in environ:
            return super().__call__(environ, start_response)
        if environ.get(_GUNICORN) is not None:
            # gunicorn 23's workers catch this exception, and send nothing.
            raise StopIteration
        # End the connection: noderpc start and pywsgi would parse further data as a request.
        raise ConnectionResetError(errno.ECONNRESET, "the websocket has ended")
