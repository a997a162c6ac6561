"""Handshake of a websocket, and access to its socket under each server.

flask-sock registers the route. Its own connection is not used: it drops data that does not fit
into the socket's buffer, and reads without a limit.
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
"""Function that gets the socket, and the bytes that the server has read after the handshake."""

PLAIN = "-plain"
"""Suffix of endpoints for requests to a websocket's path without an upgrade."""

_GUNICORN = "gunicorn.socket"
"""Key of the connection's socket in gunicorn's environ."""

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

# Seconds: websockets end all the time, and a server that stops has a successor.
_RETRY = {"Retry-After": "1"}


_SERVERS = (
    "`noderpc start`, gunicorn with -k gevent or --threads, gevent.pywsgi and `flask run` have"
    " websockets"
)
_ONE_THREAD = (
    "the server's process has one thread, which would serve no other client: give gunicorn"
    " --threads 64 or -k gevent, and `flask run` its threads"
)


class WebSocketRoutes(Sock):  # type: ignore[misc]  # flask-sock has no types
    """flask-sock's ``route``, for handlers that get a socket after the handshake.

    ``refuse`` returns the response to a handshake whose sender may not connect, or ``None``;
    ``reserve`` reserves a slot for an open websocket, and raises
    :exc:`~flask_noderpc.errors.Busy`.
    """

    def __init__(
        self,
        refuse: Callable[[], Response | None],
        reserve: Callable[[], AbstractContextManager[None]],
        wrong_version: HTTPStatus = HTTPStatus.UPGRADE_REQUIRED,
    ) -> None:
        super().__init__()
        if "hypercorn.app_wrappers" in sys.modules:
            # hypercorn responds to handshakes itself, so the app can't add a hint there.
            log.warning("hypercorn refuses websockets without asking the app: %s", _SERVERS)
        self._refuse = refuse
        self._reserve = reserve
        self._wrong_version = wrong_version

    def route(self, path: str, bp: Any = None, **options: Any) -> Callable[[Handler], None]:
        """Register a handler on ``bp``; no reference to the app is stored."""

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
    # As in gorilla/websocket. Werkzeug would raise an error, which the app's handlers may
    # handle.
    version = {"Sec-WebSocket-Version": "13"}
    return Response("Bad Request\n", "400 Bad Request", version, mimetype="text/plain")


def _serve(handler: Handler) -> Response:
    sock = _socket(request.environ)
    if sock is None:
        name = request.environ.get("SERVER_SOFTWARE") or "this server"
        return _failed(f"{name} gives its apps no socket: {_SERVERS}")
    if _is_gevent() and not is_patched():
        # One socket would block the whole server.
        return _failed("gevent without monkey.patch_all(): patch before everything else")
    if not (request.environ["wsgi.multithread"] or is_patched()):
        # In gunicorn's sync workers and `flask run --without-threads`.
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
    """Return the response to an invalid handshake, else ``None``."""
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
    """Return the connection's socket, which each server stores in a different place."""
    found: socket.socket | None = environ.get("werkzeug.socket") or environ.get(_GUNICORN)
    if found is not None:
        return found
    if _is_gevent():
        body = environ["wsgi.input"]
        raw = getattr(getattr(body, "rfile", body), "raw", None)
        return getattr(raw, "_sock", None)
    return None


def _read_ahead(body: Any, sock: socket.socket) -> bytes:
    """Return the bytes that the server has read after the handshake: some clients and proxies
    send frames before the response."""
    unreader = getattr(getattr(body, "reader", None), "unreader", None)
    if unreader is not None:
        # gunicorn.
        return bytes(unreader.buf.getvalue())
    rfile = getattr(body, "rfile", body)
    if not hasattr(rfile, "peek"):
        return b""
    # Only buffered bytes: with an empty buffer this would read from the socket.
    sock.settimeout(0)
    with suppress(OSError):
        return bytes(rfile.read(len(rfile.peek())))
    return b""


class _EndedResponse(Response):
    """Placeholder for the server: the real response was already sent on the connection's
    socket, which is shut down."""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        if "werkzeug.socket" in environ:
            return super().__call__(environ, start_response)
        if environ.get(_GUNICORN) is not None:
            # gunicorn 23: its workers catch this, and send nothing.
            raise StopIteration
        # noderpc start and pywsgi would parse later data of the client as its next request.
        raise ConnectionResetError(errno.ECONNRESET, "the websocket has ended")
