"""JSON over HTTP to a node, with limits on time, bytes, requests in flight and rate.

urllib3 manages the connections: it works with threads and under gevent, checks an idle
connection before it reuses it, and can read a body in pieces, so that its size and time can be
limited.
"""

from __future__ import annotations

import re
import socket
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakSet

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    DecodeError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)

from .. import jsoncodec
from ..errors import UpstreamUnavailable
from .address import Address, hide_path
from .connection import Pool, TlsPool, UnixPool, seconds_left
from .throttle import Throttle

_PIECE = 1 << 16
# zlib: 16 plus the window size in bits selects the gzip format.
_GZIP = 16 + zlib.MAX_WBITS
# An empty gzip member has 20 bytes and takes two microseconds, so a body of 256 MB could keep
# this process busy for half a minute.
_MAX_MEMBERS = 10_000
_CONNECT_S = 5.0
# A process reads and decodes only one body above this size at a time, to limit its memory.
_LARGE_BYTES = 16 << 20
_one_large = threading.Lock()
_OVERLOADED = (429, 503)
_MAX_TEXT, _SHOWN_BYTES = 200, 60
_JSON = re.compile(rb"\s*[{\[]")


@dataclass(frozen=True, slots=True)
class UpstreamLimits:
    """Limits of requests to one upstream, and of its responses."""

    timeout: float = 10.0
    """Maximum seconds from the request to the last byte of the response."""
    concurrency: int = 8
    """Maximum number of requests in flight."""
    rate: float = 0.0
    """Maximum calls a second; 0 means no limit."""
    max_bytes: int = 256 << 20
    """Maximum bytes of a response after decompression; a batch has one response."""
    patience: float = 60.0
    """Maximum seconds for which a request waits until ``concurrency`` and ``rate`` allow
    it."""


DEFAULT_LIMITS = UpstreamLimits()


class Unusable(UpstreamUnavailable):
    """The node sent a response that can't be used; a smaller or different request may
    succeed."""


class _Request(NamedTuple):
    """A request; its ``headers`` are added to the headers of the client."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None = None


class HttpClient:
    """Posts JSON to one address; may be shared among threads and greenlets.

    Raises :exc:`~flask_noderpc.errors.UpstreamUnavailable` if there is no usable response, and
    :exc:`~flask_noderpc.errors.Busy` if the limits did not allow the request in time.
    """

    def __init__(self, url: str | Address, limits: UpstreamLimits, name: str = "") -> None:
        self.address = url if isinstance(url, Address) else Address.parse(url)
        self.name = name or self.address.name
        hide_path(self.address.path)
        self.limits = limits
        self._throttle = Throttle(self.name, limits.concurrency, limits.rate)
        self.connected = 0
        """Number of connections opened so far."""
        self._lock = threading.Lock()
        self._connections: WeakSet[Any] = WeakSet()
        self._pool = self._new_pool(maxsize=limits.concurrency, opened=self._opened)
        self._headers = {
            "Content-Type": "application/json",
            "Accept-Encoding": "gzip",
            **self.address.headers,
        }

    def _new_pool(self, **given: Any) -> urllib3.HTTPConnectionPool:
        host, port = self.address.host, self.address.port
        match self.address.scheme:
            case "unix":
                return UnixPool("localhost", path=host, **given)
            case "https":
                return TlsPool(host, port, **given)
        return Pool(host, port, **given)

    def _opened(self, connection: Any) -> None:
        with self._lock:
            self._connections.add(connection)
            self.connected += 1

    def interrupt(self) -> None:
        """Close the sockets of the requests in flight, so that these fail at once."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            if connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)

    def post(self, body: bytes, kind: Any, *, calls: int = 1, timeout: float = 0.0) -> Any:
        """Return the response to a body, decoded as ``kind``, a struct or a list of structs.

        ``calls`` is the number of calls in the body. A ``timeout`` of 0 stands for the timeout
        in the limits.
        """
        with ExitStack() as held:
            with self._throttle.admit(calls, seconds_left(self.limits.patience)):
                answer = self._exchange(body, timeout or self.limits.timeout, held)
            try:
                return jsoncodec.decode(answer, kind)
            except jsoncodec.NotJSON as error:
                reason = f"expected a JSON-RPC response: {error}; {describe_beginning(answer)}"
                raise Unusable(self.name, reason) from None

    def head_of(self, body: bytes, size: int) -> bytes:
        """Return the first ``size`` bytes of the response to a body, without receiving the
        rest."""
        patience = seconds_left(self.limits.patience)
        with ExitStack() as held, self._throttle.admit(1, patience):
            return bytes(self._exchange(body, self.limits.timeout, held, size))

    def get(self, path: str, accept: str) -> bytes:
        """Return the body of a page below the node's path, with any HTTP status."""
        with ExitStack() as held:
            request = _Request("GET", self.address.below(path), {"Accept": accept})
            hide_path(request.path)
            with self._throttle.admit(1, seconds_left(self.limits.patience)):
                return bytes(self._send(request, self.limits.timeout, held)[1])

    def _exchange(
        self, body: bytes, timeout: float, held: ExitStack, most: int = 0
    ) -> bytearray:
        request = _Request("POST", self.address.path, {}, body)
        response, answer = self._send(request, timeout, held, most)
        self._check(response, answer)
        return answer

    def _send(
        self, request: _Request, timeout: float, held: ExitStack, most: int = 0
    ) -> tuple[urllib3.BaseHTTPResponse, bytearray]:
        left = seconds_left(timeout)
        if not left:
            raise self.unusable_error(_reason(TimeoutError(), timeout))
        try:
            response = self._pool.urlopen(
                request.method,
                request.path,
                request.body,
                {**self._headers, **request.headers},
                retries=False,
                redirect=False,
                preload_content=False,
                timeout=urllib3.Timeout(left, min(_CONNECT_S, left), left),
            )
            try:
                answer = self._body(response, held, most)
            except (ProtocolError, DecodeError) as error:
                response.close()
                raise Unusable(self.name, _reason(error, timeout)) from None
            except BaseException:
                # The body was not read to its end, so the connection can't be reused.
                response.close()
                raise
            if most:
                response.close()
            else:
                response.release_conn()
        except (HTTPError, OSError) as error:
            raise self.unusable_error(_reason(error, timeout)) from None
        return response, answer

    def _body(
        self, response: urllib3.BaseHTTPResponse, held: ExitStack, most: int
    ) -> bytearray:
        """Return the decompressed body; if ``most`` is not 0, stop after that many bytes or a
        few more."""
        body, is_large = bytearray(), False
        for piece in _decoded(response):
            body += piece
            if len(body) > _LARGE_BYTES and not is_large:
                is_large = True
                held.enter_context(_one_large)
            # Limit the compressed bytes as well, as any number of them may decode to nothing.
            if max(len(body), response.tell()) > self.limits.max_bytes:
                raise Unusable(
                    self.name,
                    f"expected a response of at most {self.limits.max_bytes} bytes; to allow"
                    " more, raise --upstream-max-bytes (NODERPC_UPSTREAM_MAX_BYTES)",
                )
            if 0 < most <= len(body):
                break
        return body

    def _check(self, response: urllib3.BaseHTTPResponse, body: bytearray) -> None:
        """Raise ``UpstreamUnavailable`` unless status and body look like a JSON-RPC
        response."""
        retry_after = _seconds(response.headers.get("Retry-After"))
        if response.status in _OVERLOADED:
            self._throttle.record_overload(retry_after)
            raise self.unusable_error(f"HTTP status {response.status}", retry_after)
        if 300 <= response.status < 400:
            to = response.headers.get("Location", "")[:_MAX_TEXT]
            cure = f", a redirect to {to}; name that URL instead" if to else ""
            raise self.unusable_error(f"HTTP status {response.status}{cure}")
        if not _JSON.match(body):
            kind = response.headers.get("Content-Type", "no content type")[:_MAX_TEXT]
            found = describe_beginning(body)
            reason = f"expected JSON, got HTTP status {response.status} with {kind}; {found}"
            has_failed = response.status >= 500
            if has_failed or retry_after is not None:
                self._throttle.record_overload(retry_after)
            error = UpstreamUnavailable if has_failed else Unusable
            raise error(self.name, reason, retry_after)
        self._throttle.record_success()

    def unusable_error(
        self, reason: str, retry_after: float | None = None
    ) -> UpstreamUnavailable:
        """Return the error for a response that can't be used."""
        return UpstreamUnavailable(self.name, reason[:_MAX_TEXT], retry_after)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


def describe_beginning(body: bytes | bytearray | memoryview) -> str:
    """Return the first bytes of a response for an error message."""
    return f"it begins with {bytes(body[:_SHOWN_BYTES])!r}" if body else "it is empty"


def _decoded(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the decoded body in pieces of at most ``_PIECE`` bytes.

    urllib3 itself would decode each received piece as a whole, and 64 KiB can decode to 64 MB.
    """
    value = response.headers.get("Content-Encoding", "").lower()
    pieces = iter(partial(response.read1, _PIECE, decode_content=False), b"")
    # RFC 9110, 8.4.1.3: x-gzip is another name of gzip.
    codings = [coding.strip() for coding in value.split(",")]
    match [coding for coding in codings if coding not in ("", "identity")]:
        case []:
            return pieces
        case ["gzip" | "x-gzip"]:
            return _inflated(pieces)
    raise DecodeError(f"Content-Encoding: expected gzip, got {value[:_MAX_TEXT]}")


def _inflated(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of a gzip file; raise ``DecodeError`` if it is damaged or cut off."""
    inflate, members, is_empty = zlib.decompressobj(_GZIP), 1, True
    for piece in pieces:
        rest = piece
        while rest:
            if inflate.eof:
                # RFC 1952: a file may have several members.
                inflate, members = zlib.decompressobj(_GZIP), members + 1
                if members > _MAX_MEMBERS:
                    raise DecodeError(f"expected at most {_MAX_MEMBERS} gzip members")
            try:
                yield inflate.decompress(rest, _PIECE)
            except zlib.error as error:
                raise DecodeError(f"expected gzip data: {error}") from None
            rest = inflate.unconsumed_tail or inflate.unused_data
            is_empty = False
    # The rest is at most zlib's window of 32 KiB.
    yield inflate.flush()
    if not (inflate.eof or is_empty):
        raise DecodeError("the gzip data is truncated")


def _seconds(text: str | None) -> float | None:
    """Return the seconds of a ``Retry-After`` header; ``None`` if it is missing or a date."""
    return float(text) if text and text.isdecimal() and len(text) < 6 else None


def _reason(error: Exception, timeout: float) -> str:
    """Describe a failed request, without urllib3's own text, which contains the URL."""
    # Check subclasses before their base classes.
    if isinstance(error, NameResolutionError):
        return "its host name can't be resolved"
    if isinstance(error, NewConnectionError):
        return "it can't be reached"
    if isinstance(error, ConnectTimeoutError):
        return "connecting took too long"
    if isinstance(error, ReadTimeoutError | TimeoutError):
        return f"no response within {timeout:g} s"
    if isinstance(error, SSLError):
        return "TLS failed: its certificate is not accepted, or the port does not use TLS"
    if isinstance(error, DecodeError):
        return f"its body can't be decoded: {error}"
    return f"the connection broke ({type(error).__name__})"
