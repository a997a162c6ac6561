"""Strict parser of HTTP request heads and bodies.

Ambiguous requests are refused to prevent request smuggling: with two lengths, an unknown
coding or a bare carriage return, a proxy may take bytes as a request that this parser takes as
a body. The overhead of chunks and trailers is limited, and other greenlets run between two
reads of a socket.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from functools import cached_property
from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import unquote_to_bytes

from ..concurrency import next_turn

# The repetitions are possessive, so that a line that does not match causes no backtracking.
# Like Go's net/http, this accepts HTTP/1.0 and 1.1. The target may be a whole URL, whose host
# then replaces the header Host (RFC 9112, 3.2.2).
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
# Go: httpguts.ValidHostHeader.
_HOST = re.compile(r"[!$%&'()*+,.:;=\[\]_~0-9A-Za-z-]++")
# Like Go's net/url, this also refuses escapes in the host, and brackets without an address.
_URL_HOST = r"\[[0-9A-Fa-f:.]++\](?::[0-9]*+)?|[!$&'()*+,.:;=_~0-9A-Za-z-]++"
_REQUEST_LINE = re.compile(
    rf"({_TOKEN}) (?:(?i:https?)://({_URL_HOST}))?(/[^\x00-\x20\x7f?]*+|\*)?"
    r"(?:\?([^\x00-\x20\x7f]*+))? (HTTP/1\.[01])\r?\n"
)
# A blank before the colon (RFC 9112, 5.1) and folded lines (5.2) are refused. The caller
# strips blanks around the value.
_HEADER = re.compile(rb"(%b):([^\x00-\x08\x0a-\x1f\x7f]*+)\r?\n" % _TOKEN.encode())
_BLANKS = b" \t"
_BETWEEN_OPTIONS = re.compile(r"[\s,]+")
_EMPTY = (b"\r\n", b"\n")
_MAX_HEADERS, _MAX_BYTES = 100, 65_536
_MAX_LINE = 8_192
# Maximum bytes of headers that are kept to compare them with the connection's next request.
_MAX_REMEMBERED = 2_048


class Fields(dict[str, list[str]]):
    """Lists of header values by lower-case name, with derived values that are computed
    once."""

    @cached_property
    def connection(self) -> frozenset[str]:
        """Options of the header ``Connection``."""
        values = self.get("connection", ())
        return frozenset(
            option.strip().lower() for value in values for option in value.split(",")
        )

    @cached_property
    def environ(self) -> dict[str, str]:
        """Variables of the headers in a WSGI environ (PEP 3333)."""
        found = {}
        for name, values in self.items():
            if "_" not in name:
                key = name.upper().replace("-", "_")
                found[f"HTTP_{key}"] = ("; " if key == "COOKIE" else ",").join(values)
        if "content-type" in self:
            del found["HTTP_CONTENT_TYPE"]
            found["CONTENT_TYPE"] = self["content-type"][0]
        if "content-length" in self:
            found["CONTENT_LENGTH"] = found.pop("HTTP_CONTENT_LENGTH")
        return found


class RequestHead(NamedTuple):
    """Request line and headers."""

    method: str
    path: str
    query: str
    version: str
    fields: Fields

    def first(self, name: str, default: str = "") -> str:
        """Return the first value of a header, or ``default``."""
        return self.fields.get(name, (default,))[0]

    @property
    def closes(self) -> bool:
        """True if the client wants the connection closed after the response."""
        options = self.fields.connection
        return "close" in options or (
            self.version == "HTTP/1.0" and "keep-alive" not in options
        )

    @property
    def decoded_path(self) -> str:
        """Path without escapes, its bytes as Latin-1 (PEP 3333)."""
        if "%" not in self.path:
            return self.path
        return unquote_to_bytes(self.path.encode("latin-1")).decode("latin-1")

    @property
    def expects_continue(self) -> bool:
        """True if the client may wait for 100 Continue before it sends the body."""
        # Any other expectation is refused before. HTTP/1.0 has none (RFC 9110, 10.1.1).
        return self.version == "HTTP/1.1" and bool(self.first("expect"))

    @property
    def has_body(self) -> bool:
        """True if bytes of a body follow."""
        return self.is_chunked or bool(self.content_length)

    @property
    def content_length(self) -> int | None:
        """Content-Length in bytes; ``None`` if the header is missing."""
        length = self.first("content-length")
        return int(length) if length else None

    @property
    def is_chunked(self) -> bool:
        """True if the body is chunked."""
        return "transfer-encoding" in self.fields


NO_BODY = RequestHead("GET", "/", "", "HTTP/1.1", Fields())
"""Head of a request without a body."""


class ExpectationFailed(ValueError):
    """Error for a request with an expectation other than ``100-continue``."""


class RequestTooLong(ValueError):
    """Error for a request line that is longer than 8192 bytes."""


class HeadReader:
    """Reader of the heads of a connection's requests.

    Most clients send the same headers again: if the bytes are equal, they are not parsed.
    """

    def __init__(self, source: BufferedReader[Any]) -> None:
        self._source = source
        self._raw = b""
        self._version = ""
        self._fields = Fields()

    def read(self) -> RequestHead | None:
        """Return the next head, ``None`` at the end of the stream; raise :exc:`ValueError` for
        an invalid one."""
        line = self._source.readline(_MAX_LINE)
        if line in _EMPTY:
            # Skip an empty line, which some clients send after a body (RFC 9112, 2.2).
            line = self._source.readline(_MAX_LINE)
        if not line:
            return None
        if len(line) >= _MAX_LINE:
            raise RequestTooLong
        found = _REQUEST_LINE.fullmatch(line.decode("latin-1"))
        if found is None:
            raise ValueError("expected a request line: a method, a path, and HTTP/1.1")
        method, host, path, query, version = found.groups()
        _check_target(method, host, path, query)
        fields = self._read_fields(version)
        if method == "HEAD" and fields.get("content-length", ["0"]) != ["0"]:
            raise ValueError("HEAD has no body")
        if host:
            fields = Fields(fields, host=[host])
        return RequestHead(method, path or "/", query or "", version, fields)

    def _read_fields(self, version: str) -> Fields:
        waiting = self._source.peek(1)
        if version == self._version and waiting.startswith(self._raw):
            self._source.read(len(self._raw))
            return self._fields
        lines = list(_lines(self._source))
        fields = _parsed(lines)
        _check(fields, version)
        raw = b"".join(lines) + b"\r\n"
        # Keep only headers whose bytes equal ``raw``: not large ones, nor lines that end in
        # LF.
        if len(raw) <= _MAX_REMEMBERED and waiting.startswith(raw):
            self._raw, self._version, self._fields = raw, version, fields
        return fields


def _check_target(method: str, host: str | None, path: str | None, query: str | None) -> None:
    """Raise :exc:`ValueError` unless the request target is valid for the method (RFC 9112,
    3.2)."""
    if method == "CONNECT":
        # Bytes after a CONNECT belong to a tunnel and are not requests (RFC 9110, 9.3.6).
        raise ValueError("CONNECT is not supported")
    if not (host or path) or (path == "*" and (host or query or method != "OPTIONS")):
        raise ValueError("expected a target that is a path or a whole URL")


def _parsed(lines: list[bytes]) -> Fields:
    """Return the headers in these lines; raise :exc:`ValueError` for a malformed line."""
    found = Fields()
    for line in lines:
        header = _HEADER.fullmatch(line)
        if header is None:
            raise ValueError("malformed header line")
        name, value = header.groups()
        value = value.strip(_BLANKS)
        found.setdefault(name.decode().lower(), []).append(value.decode("latin-1"))
    return found


def read_trailers(source: BinaryIO) -> None:
    """Read and discard the trailers after the last chunk; raise :exc:`ValueError` for a
    malformed one."""
    for line in _lines(source, ends=(b"\r\n",)):
        if not (_HEADER.fullmatch(line) and line.endswith(b"\r\n")):
            raise ValueError("malformed trailer line")


def _lines(source: BinaryIO, ends: tuple[bytes, ...] = _EMPTY) -> Iterator[bytes]:
    """Yield the lines up to an empty one; raise :exc:`ValueError` if there are too many."""
    room, count = _MAX_BYTES, 0
    while (line := source.readline(room + 1)) not in ends:
        room -= len(line)
        if room < 0 or count == _MAX_HEADERS:
            raise ValueError(
                f"expected at most {_MAX_HEADERS} header lines of {_MAX_BYTES} bytes in total"
            )
        count += 1
        yield line


def _check(found: Fields, version: str) -> None:
    lengths = found.get("content-length", [])
    codings = found.get("transfer-encoding", [])
    if len(lengths) + len(codings) > 1:
        raise ValueError("expected one Content-Length or one Transfer-Encoding")
    if not all(
        length.isascii() and length.isdigit() and len(length) < 20 for length in lengths
    ):
        raise ValueError("expected a number in Content-Length")
    if codings and (version == "HTTP/1.0" or codings[0].lower() != "chunked"):
        raise ValueError("expected the transfer coding chunked, in HTTP/1.1")
    hosts = found.get("host", [])
    if len(hosts) > 1 or (not hosts and version == "HTTP/1.1"):
        raise ValueError(f"expected one Host header, got {len(hosts)}")
    if not all(_HOST.fullmatch(host) for host in hosts if host):
        raise ValueError("expected a host and an optional port in the Host header")
    # Go's net/http also uses only the first Expect header.
    expected = found.get("expect", [""])[0].lower()
    if expected and "100-continue" not in _BETWEEN_OPTIONS.split(expected):
        raise ExpectationFailed("expected no Expect header other than 100-continue")


# The line before a chunk; Go: net/http/internal/chunked.go. Extensions must not contain CR or
# LF, as a proxy might take them as the end of the line.
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[^\r\n]*)?\r\n")
_MAX_CHUNK_LINE = 4096
# Go: bytes of overhead that a chunk may have, and the total by which all chunks may exceed
# this.
_FRAMING_BYTES, _MAX_EXCESS = 16, 16_384


class FairSocketReader(RawIOBase):
    """Raw reader of a socket that lets other greenlets run in each read."""

    def __init__(self, raw: socket.SocketIO, turn: Callable[[], float]) -> None:
        self._raw = raw
        self._sock = raw._sock  # type: ignore[attr-defined]  # where websockets look for it
        self._turn = turn
        """Function that returns another value in each iteration of the event loop."""
        self.has_read = False
        """True if the socket was read since the owner set this to false."""
        self.is_waiting = False
        """True during a read."""

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read into the buffer; return the number of bytes."""
        self.is_waiting = True
        try:
            turn = self._turn()
            count = self._raw.readinto(buffer)
            # A read that had to wait has let others run.
            if self._turn() == turn:
                next_turn()
            self.has_read = True
            return count
        finally:
            self.is_waiting = False

    def close(self) -> None:
        """Close the socket's file."""
        self._raw.close()
        super().close()


class InvalidBody(OSError):
    """Error for a body whose framing violates HTTP/1.1; the response has status 400."""


class Body(BufferedReader):
    """Body of a request, read from the connection's file ``rfile``.

    ``begin`` is called before the first read. ``continue_to`` is the socket if the client
    waits for ``100 Continue``, which is sent before the first read.
    """

    def __init__(
        self,
        rfile: BufferedReader[Any],
        head: RequestHead,
        begin: Callable[[], None],
        continue_to: socket.socket | None,
    ) -> None:
        self.rfile = rfile
        self._framing = _BodyBytes(rfile, head, begin, continue_to)
        super().__init__(self._framing)

    @property
    def is_read(self) -> bool:
        """True if the whole body was read from the connection."""
        return self._framing.is_read

    @property
    def is_awaited(self) -> bool:
        """True if the client still waits for ``100 Continue``."""
        return self._framing.continue_to is not None and not self.is_read

    def abandon(self) -> None:
        """Don't send ``100 Continue``, and don't read the rest of the body."""
        self._framing.continue_to = None
        self._framing.is_broken = True

    def close(self) -> None:
        """Do nothing, as a wrapper such as TextIOWrapper closes the body before it is read."""

    def discard(self) -> None:
        """Read and discard the rest of the body; raise :exc:`InvalidBody` for invalid
        chunks."""
        if self.is_awaited:
            # Don't wait for a body that the client may never send.
            return
        try:
            while not self._framing.is_broken and self.read1():
                pass
        except InvalidBody:
            raise
        except OSError:
            return


class _BodyBytes(RawIOBase):
    """Raw reader of a body, without the framing of chunks."""

    def __init__(
        self,
        rfile: BufferedReader[Any],
        head: RequestHead,
        begin: Callable[[], None],
        continue_to: socket.socket | None,
    ) -> None:
        self._rfile, self.continue_to = rfile, continue_to
        self._begin: Callable[[], None] | None = begin
        self._in_chunks = head.is_chunked
        self._left = head.content_length or 0
        """Remaining bytes of the body, or of its current chunk."""
        self._excess = 0
        self.is_read = not (self._in_chunks or self._left)
        self.is_broken = False

    @property
    def _sock(self) -> Any:
        # simple_websocket looks for the socket here under gevent.
        return self._rfile.raw._sock

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into the buffer, waiting if necessary; return the number of bytes, 0 at the
        end."""
        if self.is_read:
            return 0
        if self._begin is not None:
            self._begin()
            self._begin = None
        if self.continue_to is not None:
            self.continue_to.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.continue_to = None
        if self._in_chunks and not self._left and not self._begin_chunk():
            return 0
        count = self._rfile.readinto1(memoryview(buffer)[: self._left])
        if not count:
            raise self._broken("the body is shorter than its length")
        self._left -= count
        if not self._left:
            self._end_part()
        return count

    def _end_part(self) -> None:
        if not self._in_chunks:
            self.is_read = True
        elif self._rfile.read(2) != b"\r\n":
            raise self._broken("expected CRLF after a chunk")

    def _begin_chunk(self) -> bool:
        """Read the line before a chunk; return false after the last chunk."""
        line = self._rfile.readline(_MAX_CHUNK_LINE)
        found = _CHUNK_LINE.fullmatch(line)
        if found is None:
            raise self._broken("expected the length of a chunk in hex")
        self._left = int(found[1], 16)
        self._excess = max(0, self._excess + len(line) + 2 - _FRAMING_BYTES - 2 * self._left)
        if self._excess > _MAX_EXCESS:
            raise self._broken("chunked encoding contains too much non-data")
        if not self._left:
            self._end_chunks()
        return self._left > 0

    def _end_chunks(self) -> None:
        try:
            read_trailers(self._rfile)
        except ValueError as error:
            raise self._broken(str(error)) from None
        self.is_read = True

    def _broken(self, reason: str) -> InvalidBody:
        # After this, nothing more is read from the connection.
        self.is_broken = True
        return InvalidBody(reason)
