"""Cache of responses to repeated requests, which are not even parsed.

The first request of its kind is answered by :mod:`.direct`, with every rule. Where its result
followed from its parameters and the chain alone, the response is cached under all bytes of the
request, headers too, but for the id of a call: the same bytes get the same response while the
chain is the same.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import NamedTuple

from ..jsonrpc.reply import Reproducible
from ..lru import CacheMemory, LRUCache
from ..signals import rpc_called
from ..web.rules.head import Compressed, Response
from .wsgi import head_of, parts_of

# Beside their bytes: the entries, and what Python needs for them.
_OVERHEAD_BYTES = 1_000
_MAX_ENTRIES = 1_000_000

# As most clients write them: with others it only takes longer.
_LENGTH = re.compile(rb"\r\ncontent-length: ?(\d{1,4})\r\n", re.IGNORECASE)
_ID = re.compile(rb'"id": ?(0|[1-9]\d{0,17}|"[\w-]{1,40}")(?=[,}])')
_OPENING = b'{"jsonrpc":"2.0","id":'
_CHANGING = ("Date", "X-Server-Time")
_REPEATABLE = (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED)
_NO_CONTEXT = nullcontext()


class RawRequest(NamedTuple):
    """A whole request: its size in bytes, its key in the cache, and the id of its call."""

    size: int
    key: bytes
    request_id: bytes = b""

    @classmethod
    def read(cls, waiting: bytes) -> RawRequest | None:
        """The request that waiting bytes begin with; ``None`` of one that is never cached."""
        end = waiting.find(b"\n\r\n") + 3
        # Lines may end without a carriage return: the empty one is the first of either kind.
        if end < 3 or waiting.find(b"\n\n", 0, end) >= 0:
            return None
        if waiting.startswith(b"GET "):
            return cls(end, waiting[:end])
        return cls._posted(waiting, end) if waiting.startswith(b"POST ") else None

    @classmethod
    def _posted(cls, waiting: bytes, end: int) -> RawRequest | None:
        length = _LENGTH.search(waiting, 0, end)
        size = end + int(length[1]) if length else 0
        body = waiting[end:size]
        request_id = _ID.search(body)
        # An escape could write another "id".
        if not (length and request_id) or body.count(b'"id"') != 1 or b"\\" in body:
            return None
        if len(waiting) < size:
            return None
        # Clients count their calls; but for that they are the same. The length stays: a longer
        # id may be one byte more than a body may have.
        before, behind = waiting[: end + request_id.start(1)], body[request_id.end(1) :]
        return cls(size, before + b"\0" + behind, request_id[1])


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A response without its clocks, before and after the id of its call, and the request."""

    key: bytes
    head: bytes
    before: bytes
    after: bytes
    reproducible: Reproducible
    compressed: Compressed | None = None
    """Body after the id, if responses are compressed."""

    def parts(self, request_id: bytes, clocks: dict[bytes, bytes]) -> tuple[bytes, ...]:
        """Return the response to a call with this id, in parts to send one by one."""
        if self.compressed:
            body = self.compressed.body(self.before + request_id)
        else:
            body = self.before + request_id + self.after if request_id else self.before
        return parts_of(self.head % clocks, body)


class ResponseCache:
    """Cache of responses by their requests; bounded in bytes, also as a part of ``memory``."""

    def __init__(self, max_bytes: int, memory: CacheMemory | None = None) -> None:
        self._responses: LRUCache[bytes, CachedResponse] = LRUCache(
            _MAX_ENTRIES, max_bytes, _weight, memory
        )
        self._fields: dict[bytes, bytes] = {}
        self._second = 0

    def find(
        self, raw_request: RawRequest, context: Callable[[], AbstractContextManager[object]]
    ) -> tuple[bytes, ...] | None:
        """Return the cached response to a request, in parts, or ``None``.

        ``context`` is entered for receivers of ``rpc_called``.
        """
        cached = self._responses.get(raw_request.key)
        if cached is None:
            return None
        try:
            if not cached.reproducible.holds():
                return None
        except Exception:
            # The dispatcher meets the same error, and answers it.
            return None
        entered = context() if rpc_called.receivers else _NO_CONTEXT
        with entered, cached.reproducible.reported():
            return cached.parts(raw_request.request_id, self._now())

    def store(
        self, raw_request: RawRequest, response: Response, reproducible: Reproducible
    ) -> None:
        """Cache a response, while its result holds."""
        if response.status not in _REPEATABLE or not reproducible.may_hold:
            return
        parts = _around_id(response, raw_request.request_id)
        if parts is None:
            return
        # The body is here; the result that it was made of would be held a second time.
        encoded = reproducible.encoded._replace(result=b"", reply=b"")
        cached = CachedResponse(
            raw_request.key,
            _head_of(response),
            *parts,
            reproducible._replace(encoded=encoded),
            response.compressed if raw_request.request_id else None,
        )
        self._responses.put(raw_request.key, cached)

    def _now(self) -> dict[bytes, bytes]:
        """Return the header fields of an answer that carry the time."""
        second = int(time.time())
        if second != self._second:
            date = formatdate(second, usegmt=True).encode()
            self._fields = {b"Date": date, b"X-Server-Time": b"%d" % second}
            self._second = second
        return self._fields


def _head_of(response: Response) -> bytes:
    """Return a head with places for what changes each second."""
    headers = [
        (name, f"%({name})b" if name in _CHANGING else value.replace("%", "%%"))
        for name, value in response.headers
    ]
    return head_of(response._replace(headers=headers), "%(Date)b")


def _around_id(response: Response, request_id: bytes) -> tuple[bytes, bytes] | None:
    """Return a body before and after the id of its call; all of it where there is none."""
    body, compressed = response.body, response.compressed
    if not request_id:
        return body, b""
    opening = _OPENING + request_id
    if compressed:
        return (_OPENING, b"") if compressed.opening == opening else None
    return (_OPENING, body[len(opening) :]) if body.startswith(opening + b",") else None


def _weight(cached: CachedResponse) -> int:
    texts = [cached.key, cached.head, cached.before, cached.after]
    if cached.compressed:
        texts += [cached.compressed.rest, cached.compressed.deflated]
    return sum(map(len, texts)) + _OVERHEAD_BYTES
