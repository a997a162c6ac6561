"""Read the same bytes with our HTTP reader, Go's net/http and Node's llhttp.

A client's connection is a stream of bytes that ends. A reader returns the requests that it sees
in the stream.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from io import BufferedReader, BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import pytest

from flask_noderpc.server.direct import RawRequest
from flask_noderpc.server.http import Body, HeadReader, InvalidBody, RequestHead

httptools: Any = pytest.importorskip("httptools", reason="the extra test-all has it")

# Headers that say where a body ends: some readers keep them, others remove them.
_AUTHORITY = re.compile(r"\Ahttps?://([^/?]*)", re.IGNORECASE)
_FRAMING = ("host", "transfer-encoding", "content-length", "trailer")


@dataclass
class Request:
    """A request that a reader saw; each byte is the character with its number."""

    method: str
    target: str
    version: str
    host: str
    headers: dict[str, list[str]]
    body: str = ""
    is_cut: bool = False
    """True if the body ends before its framing says so."""


def _request(
    method: str, target: str, version: str, host: str, headers: dict[str, list[str]]
) -> Request:
    """Return a request in the same form for each reader."""
    # Our reader drops the host of an absolute URL, and an empty query.
    path, _, query = _AUTHORITY.sub("", target).partition("?")
    target = f"{path or '/'}?{query}" if query else path or "/"
    kept = {name: values for name, values in headers.items() if name not in _FRAMING}
    return Request(method, target, version, host, kept)


@dataclass
class Seen:
    """Requests that a reader sees in a stream of bytes."""

    requests: list[Request] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    """Offsets in the stream at which the requests begin, and at which the rest begins."""


def ours(stream: bytes) -> Seen:
    """Read a stream like the server of the package."""
    source = BufferedReader(cast("Any", BytesIO(stream)))
    reader, seen = HeadReader(source), Seen()
    while True:
        begin = source.tell()
        seen.begins.append(begin)
        try:
            head = reader.read()
        except ValueError:
            return seen
        if head is None:
            return seen
        target = f"{head.path}?{head.query}"
        request = _request(
            head.method, target, head.version, head.first("host"), dict(head.fields)
        )
        body = Body(source, head, lambda: None, None)
        seen.requests.append(request)
        try:
            request.body = body.read().decode("latin-1")
        except InvalidBody:
            request.is_cut = True
            return seen
        _check_raw(stream[begin:], source.tell() - begin, head)
        if head.closes:
            seen.begins.append(source.tell())
            return seen


def _check_raw(stream: bytes, size: int, head: RequestHead) -> None:
    """Check that the response cache finds the end of a request in the same place."""
    raw = RawRequest.read(stream)
    # A GET with a body goes to the app, whose responses are not cached.
    has_body = head.is_chunked or head.content_length
    if raw is not None and not (head.method == "GET" and has_body):
        assert raw.size == size, stream


class Go(AbstractContextManager["Go"]):
    """A process of ``tests/clients/go/readhttp``."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def read(self, stream: bytes) -> Seen:
        """Read a stream like a server of net/http."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(struct.pack(">I", len(stream)) + stream)
        stdin.flush()
        found = json.loads(stdout.readline())
        return Seen([_of_go(**each) for each in found["requests"]])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._process:
            # Closing its input ends the program.
            pass


def _of_go(body: str, is_cut: bool, **parts: Any) -> Request:
    return replace(_request(**parts), body="" if is_cut else body, is_cut=is_cut)


class _Events:
    """Callbacks of llhttp, which collect the requests."""

    def __init__(self) -> None:
        self.seen = Seen()
        self.parser: Any = httptools.HttpRequestParser(self)

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._target, self._headers, self._body = b"", dict[str, list[str]](), b""
        self.is_complete = self.has_head = False

    def on_url(self, url: bytes) -> None:
        """Add a part of the target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header or a trailer."""
        if not self.has_head:
            key = name.decode("latin-1").lower()
            # llhttp keeps blanks behind a value, which are not part of it (RFC 9112, 5.1).
            self._headers.setdefault(key, []).append(value.decode("latin-1").rstrip(" \t"))

    def on_headers_complete(self) -> None:
        """End the head."""
        self.has_head = True
        target = self._target.decode("latin-1")
        authority = _AUTHORITY.match(target)
        host = authority[1] if authority else self._headers.get("host", [""])[0]
        request = _request(
            self.parser.get_method().decode("latin-1"),
            target,
            f"HTTP/{self.parser.get_http_version()}",
            host,
            self._headers,
        )
        self.seen.requests.append(replace(request, is_cut=True))

    def on_body(self, part: bytes) -> None:
        """Add a part of the body."""
        self._body += part

    def on_message_complete(self) -> None:
        """End the request."""
        body = self._body.decode("latin-1")
        self.seen.requests[-1] = replace(self.seen.requests[-1], body=body, is_cut=False)


def llhttp(stream: bytes) -> Seen:
    """Read a stream like Node's parser."""
    events = _Events()
    with suppress(httptools.HttpParserUpgrade, httptools.HttpParserError):
        events.parser.feed_data(stream)
    return events.seen
