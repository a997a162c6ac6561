"""Requests whose beginning and end nobody reads in two ways.

gevent.pywsgi takes the first of two lengths, leaves out a coding that it does not know, and a
bare carriage return begins a header for it. A proxy in front may read such a request otherwise,
and then what is body to one is the next request to the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

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
