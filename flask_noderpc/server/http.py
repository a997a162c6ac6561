"""Heads and bodies of requests and answers: framing that nobody reads in two ways, in turns.

gevent.pywsgi takes the first of two lengths, leaves out a coding that it does not know, and a
bare carriage return begins a header for it. A proxy in front may read such a request otherwise,
and then what is body to one is the next request to the other.

gevent.pywsgi reads trailers and the framing of chunks without bound and byte by byte, and a
socket that always has more to read lets no other greenlet run.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from functools import lru_cache
from io import RawIOBase
from typing import Any, BinaryIO

from gevent.pywsgi import Input, WSGIHandler, _InvalidClientInput
from werkzeug.http import HTTP_STATUS_CODES

from ..concurrency import next_turn

# Go: net/http serves the two versions 1, and a request line has three parts.
_REQUEST_LINE = re.compile(r"[!-~]+ [^\x00-\x20\x7f]+ HTTP/1\.[01]\r?\n")
# RFC 9112, 5.1: no blank before the colon; 5.2: no line is folded.
_HEADER = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*\r?\n"
)
_MAX_HEADERS, _MAX_BYTES = 100, 65_536


class ExpectationFailed(ValueError):
    """A request expects of the server what it does not know."""


def check_request_line(line: str) -> None:
    """Raise :exc:`ValueError` for what is no request of HTTP/1."""
    if not _REQUEST_LINE.fullmatch(line):
        raise ValueError("a request begins with a method, a path, and HTTP/1.1")


def read_headers(source: BinaryIO, version: str) -> bytes:
    """The lines of the headers, with the empty one behind them; raise :exc:`ValueError`."""
    lines: list[bytes] = []
    found: dict[bytes, list[bytes]] = {}
    for line in _lines(source):
        header = _HEADER.fullmatch(line)
        if header is None:
            raise ValueError("a line that is no header")
        found.setdefault(header[1].lower(), []).append(header[2])
        lines.append(line)
    _check(found, version)
    return b"".join((*lines, b"\r\n"))


def read_trailers(source: BinaryIO) -> None:
    """Read what follows the last chunk, and leave it; raise :exc:`ValueError`."""
    for line in _lines(source, ends=(b"\r\n",)):
        if not (_HEADER.fullmatch(line) and line.endswith(b"\r\n")):
            raise ValueError("a line that is no trailer")


def _lines(source: BinaryIO, ends: tuple[bytes, ...] = (b"\r\n", b"\n")) -> Iterator[bytes]:
    """The lines before an empty one, so many and no more."""
    room, count = _MAX_BYTES, 0
    while (line := source.readline(room + 1)) not in ends:
        room -= len(line)
        if room < 0 or count == _MAX_HEADERS:
            raise ValueError(f"headers beyond {_MAX_BYTES} bytes, or {_MAX_HEADERS} lines")
        count += 1
        yield line


def _check(found: dict[bytes, list[bytes]], version: str) -> None:
    lengths = found.get(b"content-length", [])
    codings = found.get(b"transfer-encoding", [])
    if len(lengths) + len(codings) > 1:
        raise ValueError("more than one word on where the body ends")
    if not all(length.isdigit() and len(length) < 20 for length in lengths):
        raise ValueError("a length that is no number")
    if codings and (version == "HTTP/1.0" or codings[0].lower() != b"chunked"):
        raise ValueError("a transfer coding other than HTTP/1.1's chunked")
    hosts = len(found.get(b"host", []))
    if hosts > 1 or (hosts == 0 and version == "HTTP/1.1"):
        raise ValueError("a request of HTTP/1.1 names one host")
    # Go: net/http looks at the first.
    expected = found.get(b"expect", [b""])[0].lower()
    if expected and b"100-continue" not in re.split(rb"[\s,]+", expected):
        raise ExpectationFailed("only 100-continue can be expected")


# Go: net/http/internal/chunked.go. Nothing but a line's end may hold a CR or an LF: others
# would see another end.
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[^\r\n]*)?\r\n")
_MAX_LINE = 4096
# Go: what the framing of a chunk may take, and by how much all may exceed that together.
_FRAMING_BYTES, _MAX_EXCESS = 16, 16_384


class InTurns(RawIOBase):
    """The bytes of a socket; others have their turn before a second piece is read."""

    def __init__(self, raw: socket.SocketIO) -> None:
        self._raw = raw
        self._sock = raw._sock  # type: ignore[attr-defined]  # where websockets look for it
        self.has_read = False
        """True if a piece was read in this turn."""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read into the buffer; how many bytes came."""
        if self.has_read:
            next_turn()
        self.has_read = True
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close the socket's file."""
        self._raw.close()
        super().close()


class Body(Input):  # type: ignore[misc]  # gevent has no types
    """A body with a length, or in chunks."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._excess = 0

    def _chunked_read(self, length: int | None = None, use_readline: bool = False) -> bytes:
        self._send_100_continue()
        read = self.rfile.readline if use_readline else self.rfile.read
        parts: list[bytes] = []
        while self.chunk_length != 0 and length != 0:
            left = self.chunk_length - self.position
            if left <= 0:
                self._begin_chunk()
                continue
            part = read(left if length is None else min(left, length))
            self.position += len(part)
            if not part or (len(part) == left and self.rfile.read(2) != b"\r\n"):
                raise self._broken("a chunk of another length than it says")
            parts.append(part)
            if length is not None:
                length -= len(part)
            if use_readline and part.endswith(b"\n"):
                break
        return b"".join(parts)

    def _begin_chunk(self) -> None:
        line = self.rfile.readline(_MAX_LINE)
        found = _CHUNK_LINE.fullmatch(line)
        if found is None:
            raise self._broken("a line that begins no chunk")
        size = int(found[1], 16)
        self._excess = max(0, self._excess + len(line) + 2 - _FRAMING_BYTES - 2 * size)
        if self._excess > _MAX_EXCESS:
            raise self._broken("chunked encoding contains too much non-data")
        if size == 0:
            self._end_chunks()
        self.chunk_length, self.position = size, 0

    def _end_chunks(self) -> None:
        try:
            read_trailers(self.rfile)
        except ValueError as error:
            raise self._broken(str(error)) from None

    def _broken(self, reason: str) -> OSError:
        # Nothing behind it is read.
        self._chunked_input_error = True
        error: OSError = _InvalidClientInput(reason)
        return error


class HeadWriter(WSGIHandler):  # type: ignore[misc]  # gevent has no types
    """Writes statuses as RFC 9110 does, and answers HTTP/1.0 in HTTP/1.0."""

    def start_response(self, status: str, headers: Any, exc_info: Any = None) -> Any:
        """Begin an answer, with the phrase of its status as it is written in RFC 9110."""
        return super().start_response(_canonical(status), headers, exc_info)

    def finalize_headers(self) -> None:
        """Close behind an answer of HTTP/1.0 that has no length."""
        super().finalize_headers()
        names = {name.lower() for name, _ in self.response_headers}
        has_end = b"content-length" in names or self.code in (204, 304)
        if self.request_version == "HTTP/1.0" and not has_end:
            self.close_connection = True

    def _write_with_headers(self, data: bytes) -> None:
        # gevent answers any version with 1.1.
        self.headers_sent = True
        self.finalize_headers()
        version = b"HTTP/1.0" if self.request_version == "HTTP/1.0" else b"HTTP/1.1"
        lines = [b"%b %b" % (version, self.status)]
        lines += [b"%b: %b" % header for header in self.response_headers]
        self._sendall(b"\r\n".join((*lines, b"", b"")))
        self._write(data)


@lru_cache(maxsize=128)
def _canonical(status: str) -> str:
    code, _, phrase = status.partition(" ")
    known = HTTP_STATUS_CODES.get(int(code), "")
    return f"{code} {known}" if phrase == known.upper() else status
