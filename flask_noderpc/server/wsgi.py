"""Writer of a WSGI application's response to a connection (PEP 3333)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from email.utils import formatdate
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from werkzeug.http import HTTP_STATUS_CODES

from ..wire.envelope import LargeBody, ResponseBody

if TYPE_CHECKING:
    from .http import Body, RequestHead

WSGI = Callable[[dict[str, Any], Any], Iterable[bytes]]

_NO_BODY = (204, 304)
# From this size on, head and body are sent separately, as copying takes longer than one more
# packet.
_LARGE = 32 * 1024


class WSGIResponse:
    """Response to the request with ``head`` and ``body``; ``send`` writes bytes to the
    connection, and ``close`` is true if the connection must be closed afterwards."""

    def __init__(
        self, send: Callable[[bytes | memoryview], None], head: RequestHead, body: Body
    ) -> None:
        self._send, self._request, self._body = send, head, body
        self.close = head.closes
        self.status = ""
        self.begun = False
        """True if a part of the response was sent."""
        self._headers: list[tuple[str, str]] = []
        self._names: dict[str, str] = {}
        self._chunked = False
        self._left: int | None = None
        """Remaining bytes of the body; ``None`` if its length is unknown."""
        self._result: Iterable[bytes] | None = None
        """Result of the application; ``None`` while the application runs and may call
        write()."""

    def run(self, app: WSGI, environ: dict[str, Any]) -> None:
        """Call the application and send its response."""
        self._result = app(environ, self.start_response)
        try:
            self.send_all(self._result)
        finally:
            if hasattr(self._result, "close"):
                self._result.close()

    def send_all(self, result: Iterable[bytes]) -> None:
        """Send the head and the body of a response."""
        self._result = result
        for data in result:
            if data:
                self.write(data)
            if self.begun and self._request.method == "HEAD":
                break
        if not self.status and "upgrade" in self._request.fields:
            # The request was a websocket that used the connection's socket and has ended
            # (Flask-Sock under gevent).
            self.close = True
            return
        if not self.begun:
            self.write(b"")
        if self._chunked:
            self._send(b"0\r\n\r\n")
        if self._left:
            # Close the connection if the body is shorter than its length, like Go's net/http.
            self.close = True

    def start_response(
        self, status: str, headers: Iterable[tuple[str, str]], exc_info: Any = None
    ) -> Callable[[bytes], None]:
        """Begin a response, whose head is sent with the first byte of the body; return
        :meth:`write`."""
        if exc_info and self.begun:
            raise exc_info[1].with_traceback(exc_info[2])
        if self.status and not exc_info:
            raise AssertionError("start_response() was called before, and exc_info is missing")
        self._headers = list(headers)
        if any(_breaks_line(part) for field in self._headers for part in field):
            raise ValueError("carriage return or newline in a header")
        if _breaks_line(status):
            raise ValueError("carriage return or newline in status")
        self.status, self._names = status, {k.lower(): v for k, v in self._headers}
        if self._names.get("connection", "").lower() == "close":
            self.close = True
        if self._code in _NO_BODY and self._names.get("content-length", "0") != "0":
            raise AssertionError(f"a {self._code} response has no Content-Length")
        return self.write

    @property
    def _code(self) -> int:
        return int(self.status[:3])

    def write(self, data: bytes) -> None:
        """Send a part of the body."""
        if not self.status:
            raise AssertionError("The application did not call start_response()")
        if self._code in _NO_BODY and data:
            raise AssertionError(f"The {self._code} response must have no body")
        head = b"" if self.begun else self._head()
        data = self._framed(data)
        parts = parts_of(head, data)
        # An error before this point can still be reported in another response.
        self.begun = True
        for part in parts:
            if part:
                self._send(part)

    def _framed(self, data: bytes) -> bytes:
        """Return the bytes to send for a part of the body."""
        if self._request.method == "HEAD":
            return b""
        if self._left is not None:
            # Drop bytes beyond the length, like Go's net/http.
            data = data[: self._left]
            self._left -= len(data)
        elif self._chunked and data:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        return data

    def _head(self) -> bytes:
        """Return the encoded head, including the length of the body or its coding."""
        length = [] if self._code in _NO_BODY else self._length()
        headers = [*self._headers, *self._connection()]
        if "date" not in self._names:
            headers.append(("Date", _date(int(time.time()))))
        lines = [f"{self._request.version} {canonical_status(self.status)}"]
        lines += [f"{name}: {value}" for name, value in (*headers, *length)]
        return "\r\n".join((*lines, "", "")).encode("latin-1")

    def _connection(self) -> list[tuple[str, str]]:
        """Return the header ``Connection`` if the client needs it, in a list."""
        is_awaited = self._body.is_awaited
        if is_awaited:
            # Close the connection, as the next bytes may be the body or another request (like
            # Go).
            self._body.abandon()
            self.close = True
        if "connection" in self._names:
            return []
        if not is_awaited and self._request.version != "HTTP/1.0":
            return []
        return [("Connection", "close" if self.close else "keep-alive")]

    def _length(self) -> list[tuple[str, str]]:
        """Decide how the client finds the end of the body; return the header for it, in a
        list."""
        length, is_head = self._names.get("content-length"), self._request.method == "HEAD"
        added: list[tuple[str, str]] = []
        if length is None and isinstance(self._result, (list, tuple)):
            length = str(sum(map(len, self._result)))
            # Don't add a length of 0 to a HEAD, for which an application may omit the body.
            if length != "0" or not is_head:
                added = [("Content-Length", length)]
        if is_head:
            return added
        if length is not None:
            self._left = int(length)
        elif self._request.version == "HTTP/1.0":
            self.close = True
        else:
            added = [("Transfer-Encoding", "chunked")]
            self._chunked = True
        return added


def parts_of(head: bytes, body: ResponseBody) -> tuple[bytes | memoryview, ...]:
    """Return a response in parts to send one by one."""
    if isinstance(body, LargeBody):
        return head, *body.parts
    return (head, body) if head and len(body) > _LARGE else (head + body,)


def _breaks_line(text: str) -> bool:
    if not isinstance(text, str):
        raise UnicodeError("headers and the status are native strings", text)
    return "\r" in text or "\n" in text


@lru_cache(maxsize=4)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


@lru_cache(maxsize=128)
def canonical_status(status: str) -> str:
    """Return a status line with the phrase of RFC 9110 instead of one in upper case."""
    code, _, phrase = status.partition(" ")
    known = HTTP_STATUS_CODES.get(int(code), "")
    return f"{code} {known}" if phrase == known.upper() else status
