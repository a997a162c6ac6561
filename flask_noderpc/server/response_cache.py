"""Answers that were sent before, sent again before a request is even taken apart.

The first request of its kind goes the whole way, through Flask and every guard. Where its
answer followed from its parameters and the chain alone, the response is cached under all bytes
that were asked, headers too, but for the id of a call: the same bytes get the same answer
while the chain is the same.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from email.utils import formatdate
from typing import Any, NamedTuple

from flask import Flask, request_finished, request_started, request_tearing_down

from ..extension import mounts
from ..jsonrpc.reply import Reproducible
from ..lru import CacheMemory, LRUCache
from ..mount import Mount
from ..web.rule_conflicts import check_request
from ..web.views import Views

# Beside their bytes: the entries, and what Python needs for them.
_OVERHEAD_BYTES = 1_000
_MOST = 1_000_000

# As most clients write them: with others it only takes longer.
_LENGTH = re.compile(rb"\r\ncontent-length: ?(\d{1,4})\r\n", re.IGNORECASE)
_ID = re.compile(rb'"id": ?(0|[1-9]\d{0,17}|"[\w-]{1,40}")(?=[,}])')
_OPENING = b'{"jsonrpc":"2.0","id":'
_CHANGING = re.compile(rb"(?<=\r\n)(Date|X-Server-Time): [^\r]*")
# Sent apart, as copying takes longer than one more packet.
_LARGE = 32 * 1024
_SIGNALS = (request_started, request_finished, request_tearing_down)
# What a class of the host's may do otherwise, with each request.
_STEPS = (
    "__call__",
    "request_context",
    "full_dispatch_request",
    "preprocess_request",
    "dispatch_request",
    "make_response",
    "finalize_request",
    "process_response",
)
_REPEATABLE = (b"HTTP/1.1 200 ", b"HTTP/1.1 304 ")


def why_no_response_cache(app: Flask) -> str:
    """Return what of the host's has to see every request of an app; empty if nothing does."""
    if type(app).wsgi_app is not Flask.wsgi_app or "wsgi_app" in vars(app):
        return "the app has WSGI middleware"
    if any(getattr(type(app), step) is not getattr(Flask, step) for step in _STEPS):
        return "the app's class answers requests in its own way"
    if any(mount.asks_host for mount in mounts(app).values()):
        return "the app authorizes each call"
    if any(mount.settings.log_calls for mount in mounts(app).values()):
        return "each call is logged with its client"
    if _has_request_receivers(app):
        return "the app listens to Flask's signals of requests"
    hooks: tuple[dict[Any, list[Any]], ...] = (
        app.url_value_preprocessors,
        app.before_request_funcs,
        app.after_request_funcs,
        app.teardown_request_funcs,
    )
    if not all(_is_ours(one) for kind in hooks for found in kind.values() for one in found):
        return "the app has hooks around requests"
    return ""


def _has_request_receivers(app: Flask) -> bool:
    """Return true if receivers of the host's are connected to Flask's request signals."""
    # What check_request does was done when the server started.
    return any(
        receiver is not check_request
        for signal in _SIGNALS
        for receiver in signal.receivers_for(app)
    )


def _is_ours(hook: object) -> bool:
    return isinstance(getattr(hook, "__self__", None), Mount | Views)


class RawRequest(NamedTuple):
    """A whole request: how long it is, what it is known by, and the id of its call."""

    size: int
    key: bytes
    request_id: bytes = b""

    @classmethod
    def read(cls, waiting: bytes) -> RawRequest | None:
        """The request that waiting bytes begin with; ``None`` of one that goes the long way."""
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
    """An answer but for its clocks, around the id of its call, and what it was sent to."""

    key: bytes
    head: bytes
    before: bytes
    after: bytes
    reproducible: Reproducible


class ResponseCache:
    """Cache of responses by their requests; bounded in bytes, also as a part of ``memory``.

    It answers nothing while receivers are connected to the request signals of ``app``.
    """

    def __init__(
        self, max_bytes: int, memory: CacheMemory | None = None, app: Flask | None = None
    ) -> None:
        self._app = app
        self._sent: LRUCache[bytes, CachedResponse] = LRUCache(
            _MOST, max_bytes, _weight, memory
        )
        self._fields: dict[bytes, bytes] = {}
        self._second = 0

    def find(self, raw_request: RawRequest) -> tuple[bytes, ...] | None:
        """The answer to a request, in parts, if it is the same as before."""
        sent = self._sent.get(raw_request.key)
        # A receiver may be connected at any time, unlike a hook.
        if sent is None or (self._app is not None and _has_request_receivers(self._app)):
            return None
        try:
            if not sent.reproducible.holds():
                return None
        except Exception:
            # Whatever it is, the long way tells.
            return None
        with sent.reproducible.instrumented():
            body = (
                sent.before + raw_request.request_id + sent.after
                if raw_request.request_id
                else sent.before
            )
            head = sent.head % self._now()
            return (head, body) if len(body) > _LARGE else (head + body,)

    def store(self, raw_request: RawRequest, reproducible: Reproducible, sent: bytes) -> None:
        """Keep what was sent."""
        head, end, before = sent.partition(b"\r\n\r\n")
        if not head.startswith(_REPEATABLE) or b"\r\nSet-Cookie:" in head:
            return
        after = b""
        if raw_request.request_id:
            opening = _OPENING + raw_request.request_id
            if not before.startswith(opening + b","):
                return
            before, after = _OPENING, before[len(opening) :]
        made = _CHANGING.sub(rb"\1: %(\1)b", (head + end).replace(b"%", b"%%"))
        # What was sent is here; the result that it was made of would be held a second time.
        encoded = replace(reproducible.encoded, result=b"", reply=b"")
        reproducible = replace(reproducible, encoded=encoded)
        self._sent.put(
            raw_request.key, CachedResponse(raw_request.key, made, before, after, reproducible)
        )

    def _now(self) -> dict[bytes, bytes]:
        """Return the header fields of an answer that carry the time."""
        second = int(time.time())
        if second != self._second:
            date = formatdate(second, usegmt=True).encode()
            self._fields = {b"Date": date, b"X-Server-Time": b"%d" % second}
            self._second = second
        return self._fields


def _weight(sent: CachedResponse) -> int:
    texts = (sent.key, sent.head, sent.before, sent.after)
    return sum(map(len, texts)) + _OVERHEAD_BYTES
