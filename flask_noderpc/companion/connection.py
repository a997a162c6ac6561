"""Connections with one deadline per request, from DNS lookup to the last byte of the response;
several requests of one client's call may share a deadline."""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from http.client import HTTPResponse
from math import inf
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from .threads import started

_deadline: ContextVar[float] = ContextVar("noderpc_deadline", default=inf)


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Limit the total time of all requests in this context."""
    token = _deadline.set(min(_deadline.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


def seconds_left(seconds: float) -> float:
    """Return the seconds left until this context's deadline, but at most ``seconds``."""
    return max(0.0, min(seconds, _deadline.get() - time.monotonic()))


class _UntilDeadline(io.RawIOBase):
    """Reads a socket until a deadline; a socket's own timeout would start again with each
    read."""

    def __init__(self, sock: Any, deadline: float) -> None:
        # The file keeps the socket open after urllib3 closes the connection object.
        self._sock, self._raw = sock, sock.makefile("rb", buffering=0)
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        found: int | None = self._raw.readinto(buffer)
        return found

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Socket:
    """A socket with the one method that ``http.client`` calls to read a response."""

    def __init__(self, sock: Any, deadline: float) -> None:
        self._sock, self._deadline = sock, deadline

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a file that reads from the socket until the deadline."""
        return io.BufferedReader(_UntilDeadline(self._sock, self._deadline))


def _response(deadline: float, sock: Any, *args: Any, **given: Any) -> HTTPResponse:
    return HTTPResponse(_Socket(sock, deadline), *args, **given)  # type: ignore[arg-type]


class _TimeoutMixin:
    """A connection whose ``timeout`` limits the whole of connecting and of a response.

    ``opened`` is called with the connection once it is open.
    """

    timeout: Any
    response_class: Any

    def __init__(self, *args: Any, opened: Callable[[Any], None], **given: Any) -> None:
        super().__init__(*args, **given)
        self._opened = opened

    def connect(self) -> None:
        # Connect in a thread and abandon it at the timeout: urllib3 applies its timeout to
        # each address and handshake step separately, and not at all to the DNS lookup.
        connecting = started(super().connect, "noderpc-connect")  # type: ignore[misc]
        if not wait([connecting], self.timeout).done:
            connecting.add_done_callback(lambda _: self.close())
            raise ConnectTimeoutError(self, "connecting took too long")
        connecting.result()
        self._opened(self)

    def getresponse(self) -> Any:
        self.response_class = partial(_response, time.monotonic() + self.timeout)
        return super().getresponse()  # type: ignore[misc]

    def close(self) -> None:
        super().close()  # type: ignore[misc]


class _Connection(_TimeoutMixin, HTTPConnection):
    pass


class _UnixConnection(_Connection):
    """A connection to a Unix socket. urllib3 formats hosts as URLs do, so the path is an
    argument of its own."""

    def __init__(self, *args: Any, path: str, **given: Any) -> None:
        super().__init__(*args, **given)
        self._path = path

    def _new_conn(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        try:
            made.connect(self._path)
        except OSError as error:
            made.close()
            raise NewConnectionError(self, str(error)) from None
        return made


class _TlsConnection(_TimeoutMixin, HTTPSConnection):
    pass


class Pool(urllib3.HTTPConnectionPool):
    """A pool of HTTP connections."""

    ConnectionCls = _Connection


class UnixPool(urllib3.HTTPConnectionPool):
    """A pool of HTTP connections to a Unix socket."""

    ConnectionCls = _UnixConnection


class TlsPool(urllib3.HTTPSConnectionPool):
    """A pool of HTTPS connections."""

    ConnectionCls = _TlsConnection
