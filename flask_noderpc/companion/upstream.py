"""A node whose RPC is read: JSON-RPC over HTTP, alone or in batches, decoded by its dialect.

urllib3 keeps the connections: it works with threads and under gevent, checks a kept connection
before it is used again, and reads a body in pieces, so that size and time can be limited.
"""

from __future__ import annotations

import base64
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ReadTimeoutError,
    SSLError,
)

from .. import jsoncodec
from ..errors import (
    DecodeError,
    UpstreamError,
    UpstreamMismatch,
    UpstreamRefused,
    UpstreamUnavailable,
    short_repr,
)
from ..wire.dialect import Dialect
from ..wire.dialects import dialect_named
from . import versions
from .address import Address
from .throttle import Throttle

T = TypeVar("T")

_PIECE = 1 << 16
_CONNECT_S = 5.0
# CometBFT 0.38.8: rpc/config, max_request_batch_size; earlier versions have no limit.
MAX_BATCH = 10
_OVERLOADED = (429, 503)
_MAX_TEXT = 200


Param = int | bytes | str | bool | Mapping[str, Any]
"""A parameter: an integer, bytes, a text, a switch, or an object of JSON."""


@dataclass(frozen=True, slots=True)
class Call:
    """A method with its parameters by name."""

    method: str
    params: Mapping[str, Param]

    def encode(self, number: int) -> dict[str, Any]:
        """Return the call as JSON-RPC has it."""
        params = {name: _param(value) for name, value in self.params.items()}
        return {"jsonrpc": "2.0", "id": number, "method": self.method, "params": params}


def call(method: str, **params: Param) -> Call:
    """Return a call."""
    return Call(method, params)


def _param(value: Param) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    # CometBFT: integers of 64 bits are texts.
    return str(value) if type(value) is int else value


@dataclass(frozen=True, slots=True)
class UpstreamLimits:
    """Limits of what one upstream is asked, and of what it may answer."""

    timeout: float = 10.0
    """Seconds of a request."""
    concurrency: int = 8
    """Requests in flight."""
    rate: float = 0.0
    """Calls per second; 0 for no limit."""
    max_bytes: int = 256 << 20
    """Bytes of a response, which may be that of a whole batch."""
    patience: float = 60.0
    """Seconds for which a request waits for its budget."""


DEFAULT_LIMITS = UpstreamLimits()

Answer = jsoncodec.Raw | UpstreamRefused
"""The JSON of a result, or the error of its call."""


class _Error(jsoncodec.Struct):
    code: int = 0
    message: str = ""
    data: Any = ""


class _Response(jsoncodec.Struct):
    id: Any = None
    result: jsoncodec.Raw = jsoncodec.Raw()
    error: _Error | str | None = None


class _HeadDeadline:
    """Connection that is shut down if the head of a response takes too long.

    A timeout of the socket starts anew with each byte.
    """

    timeout: Any
    sock: Any

    def getresponse(self) -> Any:
        expired = threading.Event()
        timer = threading.Timer(float(self.timeout), _shut_down, (self.sock, expired))
        timer.daemon = True
        timer.start()
        try:
            return super().getresponse()  # type: ignore[misc]
        finally:
            timer.cancel()
            if expired.is_set():
                raise TimeoutError


def _shut_down(sock: Any, expired: threading.Event) -> None:
    expired.set()
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


class _Connection(_HeadDeadline, HTTPConnection):
    pass


class _TlsConnection(_HeadDeadline, HTTPSConnection):
    pass


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class Upstream:
    """One node of the chain; safe to share among threads and greenlets.

    ``url`` is as :meth:`Address.parse` takes it, ``dialect`` the name of the node's dialect,
    which is otherwise read from the node. Errors are :exc:`UpstreamUnavailable` without a
    usable response, :exc:`UpstreamRefused` with the node's own error, :exc:`UpstreamMismatch`
    for a response that does not decode, and :exc:`~flask_noderpc.errors.Busy` beyond its
    budget.
    """

    def __init__(
        self, url: str, *, dialect: str = "", limits: UpstreamLimits = DEFAULT_LIMITS
    ) -> None:
        self.address = Address.parse(url)
        self.name = self.address.name
        self.limits = limits
        self._throttle = Throttle(self.name, limits.concurrency, limits.rate)
        self._batch = MAX_BATCH
        self._given = dialect_named(dialect) if dialect else None
        self._found: Dialect | None = None
        kind = _TlsPool if self.address.scheme == "https" else _Pool
        self._pool = kind(self.address.host, self.address.port, maxsize=limits.concurrency)
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "gzip"}
        if self.address.user is not None:
            self._headers |= urllib3.make_headers(basic_auth=self.address.user)

    @property
    def dialect(self) -> Dialect:
        """The dialect that the node speaks, read from it once; :meth:`reconnect` reads it
        again."""
        known = self._given or self._found
        if known is None:
            known = self._found = versions.dialect_of(self)
        return known

    def reconnect(self) -> None:
        """Read the dialect anew at its next use: the node may have been upgraded."""
        self._found = None

    def get(self, result: type[T], method: str, **params: Param) -> T:
        """Return the result of a call, decoded."""
        return self.load(result, method, self.raw(method, **params))

    def raw(self, method: str, **params: Param) -> jsoncodec.Raw:
        """Return the JSON of a call's result."""
        (found,) = self._ask([Call(method, params)], self.limits.timeout)
        if isinstance(found, UpstreamError):
            raise found
        return found

    def load(self, result: type[T], method: str, found: jsoncodec.Raw) -> T:
        """Decode the JSON of a result."""
        try:
            return self.dialect.decode(result, bytes(found))
        except DecodeError as error:
            raise UpstreamMismatch(self.name, f"{method} does not decode: {error}") from None

    def ask(self, calls: Sequence[Call], timeout: float | None = None) -> list[Answer]:
        """Return the JSON of results, or the errors of calls, in the order of the calls.

        As many calls go into a request as the node takes.
        """
        answers: list[Answer] = []
        while len(answers) < len(calls):
            some = calls[len(answers) : len(answers) + self._batch]
            answers += self._ask(some, timeout or self.limits.timeout)
        return answers

    def _ask(self, calls: Sequence[Call], timeout: float) -> list[Answer]:
        objects = [each.encode(number) for number, each in enumerate(calls)]
        body = jsoncodec.encode(objects if len(objects) > 1 else objects[0])
        with self._throttle.admitted(len(calls), self.limits.patience):
            text = self._exchange(body, timeout)
        if len(calls) == 1:
            return [self._answer(self._decoded(text, _Response))]
        if not text.lstrip().startswith(b"["):
            return self._ask_fewer(calls, timeout, text)
        found = {each.id: each for each in self._decoded(text, list[_Response])}
        if found.keys() != set(range(len(calls))):
            raise self._unusable("a batch lacks responses")
        return [self._answer(found[number]) for number in range(len(calls))]

    def _ask_fewer(self, calls: Sequence[Call], timeout: float, text: bytes) -> list[Answer]:
        """Ask in smaller batches, after one that was refused as a whole."""
        self._decoded(text, _Response)
        self._batch = max(1, min(self._batch, len(calls)) // 2)
        rest = iter(calls)
        answers: list[Answer] = []
        while some := list(islice(rest, self._batch)):
            answers += self._ask(some, timeout)
        return answers

    def _decoded(self, text: bytes, kind: Any) -> Any:
        try:
            return jsoncodec.decode(text, kind)
        except jsoncodec.NotJSON as error:
            raise self._unusable(f"no JSON-RPC response: {error}") from None

    def _answer(self, response: _Response) -> Answer:
        error = response.error
        if isinstance(error, str) and error:
            return UpstreamRefused(self.name, 0, error)
        if isinstance(error, _Error):
            data = error.data if isinstance(error.data, str) else short_repr(error.data)
            return UpstreamRefused(self.name, error.code, error.message, data)
        if not bytes(response.result):
            raise self._unusable("a response has neither result nor error")
        return response.result

    # HTTP.

    def _exchange(self, body: bytes, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        try:
            response = self._pool.urlopen(
                "POST",
                self.address.path,
                body,
                self._headers,
                retries=False,
                redirect=False,
                preload_content=False,
                timeout=urllib3.Timeout(connect=min(_CONNECT_S, timeout), read=timeout),
            )
            try:
                text = b"".join(self._pieces(response, deadline, timeout))
            except BaseException:
                # Its connection can't be used again.
                response.close()
                raise
            response.release_conn()
        except (HTTPError, OSError) as error:
            raise self._unusable(_reason(error, timeout)) from None
        self._check(response, text)
        return text

    def _pieces(
        self, response: urllib3.BaseHTTPResponse, deadline: float, timeout: float
    ) -> Iterator[bytes]:
        size = 0
        while piece := response.read1(_PIECE):
            size += len(piece)
            if size > self.limits.max_bytes:
                raise self._unusable(
                    f"a response of more than {self.limits.max_bytes} bytes"
                    " (--upstream-max-bytes raises that)"
                )
            if time.monotonic() > deadline:
                raise self._unusable(f"a response of more than {timeout:g} s")
            yield piece

    def _check(self, response: urllib3.BaseHTTPResponse, text: bytes) -> None:
        """Raise ``UpstreamUnavailable`` unless the body may be JSON-RPC."""
        retry_after = _seconds(response.headers.get("Retry-After"))
        if response.status in _OVERLOADED:
            self._throttle.overloaded(retry_after)
            raise self._unusable(f"HTTP status {response.status}", retry_after)
        if not text.lstrip().startswith((b"{", b"[")):
            self._throttle.overloaded(retry_after)
            kind = response.headers.get("Content-Type", "no content type")[:_MAX_TEXT]
            raise self._unusable(f"HTTP status {response.status} with {kind}, not JSON")
        self._throttle.succeeded()

    def _unusable(self, reason: str, retry_after: float | None = None) -> UpstreamUnavailable:
        return UpstreamUnavailable(self.name, reason[:_MAX_TEXT], retry_after)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


def _seconds(text: str | None) -> float | None:
    """Return the seconds of a ``Retry-After``; a date counts as none."""
    return float(text) if text and text.isdecimal() and len(text) < 6 else None


def _reason(error: Exception, timeout: float) -> str:
    """Return what happened, without the URL that urllib3's own texts have."""
    # Each is a kind of the one after it.
    if isinstance(error, NameResolutionError):
        return "its host name is not known"
    if isinstance(error, NewConnectionError):
        return "it can't be reached"
    if isinstance(error, ConnectTimeoutError):
        return "no connection in time"
    if isinstance(error, ReadTimeoutError | TimeoutError):
        return f"no response within {timeout:g} s"
    if isinstance(error, SSLError):
        return "TLS failed: its certificate is not accepted, or it speaks no TLS"
    return f"the connection broke ({type(error).__name__})"
