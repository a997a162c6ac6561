"""Fast path for calls of the node's own app: responses by the HTTP rules, without Flask's
views.

Flask handles all other requests: pages, other HTTP methods, forms and websockets.

Repeated requests are not even parsed. If a result depends only on the parameters and the
chain, the response is cached; the key is the bytes of the request, including headers, without
the ID of the call. The same bytes get the same response while the chain is unchanged.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any, BinaryIO, NamedTuple

from flask import Flask, request_finished, request_started, request_tearing_down
from werkzeug.sansio.utils import get_content_length
from werkzeug.wsgi import get_host

from ..errors import BodyTooLarge, InvalidRequest, NodeRPCError
from ..feature import Surface
from ..jsonrpc.dispatch import Dispatcher
from ..jsonrpc.reply import Reply, Reproducible
from ..lru import CacheMemory, LRUCache
from ..mount import Mount
from ..signals import rpc_called
from ..web.rule_conflicts import check_request
from ..web.rules.admit import Admitted, Policy, Refusal, admit, admit_host, unreadable
from ..web.rules.head import Compressed, Head, Response
from ..web.rules.render import add_headers, is_usual, render, render_refusal
from ..web.views import LOOPBACK, status_line
from ..wire.envelope import LargeBody, ResponseBody
from .addresses import NODE
from .http import RequestHead
from .wsgi import parts_of

# Headers with the ID of a trace (W3C Trace Context, B3, Jaeger and AWS X-Ray). They are
# different in each request, so caching such a request is useless.
_TRACE_FIELDS = frozenset(
    (
        "HTTP_TRACEPARENT",
        "HTTP_B3",
        "HTTP_X_B3_TRACEID",
        "HTTP_UBER_TRACE_ID",
        "HTTP_X_AMZN_TRACE_ID",
    )
)
# Header fields of requests that Flask handles.
_WITH_FLASK = frozenset(("upgrade", "expect"))
_SIGNALS = (request_started, request_finished, request_tearing_down)
# Receivers that need not be called: check_request has done its work when the server started.
_WITHOUT_EFFECT = {id(check_request)}


class DirectResponse(NamedTuple):
    """Response to a call."""

    status: HTTPStatus
    head: bytes
    """Encoded head with placeholders for the time headers; :func:`clocks` has their values."""
    body: ResponseBody
    compressed: Compressed | None = None
    reproducible: Reproducible | None = None
    """Result of the call if the response may be cached."""

    def parts(self) -> tuple[bytes | memoryview, ...]:
        """Return the response in parts to send one by one."""
        return parts_of(self.head % clocks(int(time.time())), self.body)


class Sender:
    """The headers and the address that requests of one connection have in common.

    Most clients send the same headers with each request, so the WSGI environ, the permissions
    and the encoded headers of usual responses are computed once.
    """

    def __init__(self, head: RequestHead, environ: dict[str, Any]) -> None:
        self.fields, self.version, self.closes = head.fields, head.version, head.closes
        self.environ = environ
        """WSGI environ without the variables of the request line and the body."""
        self.calls: dict[tuple[str, str], AdmittedCall] = {}
        """Calls that were admitted or refused, by HTTP method and endpoint."""


class AdmittedCall:
    """A kind of call of one sender, admitted or refused."""

    def __init__(self, policy: Policy, head: Head) -> None:
        self.head = head
        self.found = admit_host(policy, head) or admit(policy, head)
        # On a development chain, permissions of a web page also depend on the client's
        # address, which is not part of the cache key.
        by_address = policy.origins.dev and "HTTP_ORIGIN" in head.fields
        self.is_one_time = by_address or not head.fields.keys().isdisjoint(_TRACE_FIELDS)
        self.heads: dict[tuple[HTTPStatus, bool, bool], bytes] = {}
        """Encoded heads of usual responses, with placeholders for what differs, by status,
        whether HTTP caches may keep the response, and whether it has an ETag."""


class DirectAdapter:
    """Responder to the calls of one mount at an address that serves ``surface``."""

    def __init__(self, app: Flask, mount: Mount, surface: Surface = NODE) -> None:
        self._app = app
        self.app_context = app.app_context
        self._mount = mount
        self._policy = mount.views.policy
        self._endpoints = dict(_endpoints(mount, surface))

    def answer(
        self, sender: Sender, request: RequestHead, body: BinaryIO
    ) -> DirectResponse | None:
        """Return the response to a call; ``None`` for a request that Flask handles."""
        endpoint = self._endpoints.get((request.method, request.decoded_path))
        # Leave requests whose client waits for 100 Continue to Flask.
        if endpoint is None or not _WITH_FLASK.isdisjoint(sender.fields) or self.is_bypassed():
            return None
        call = sender.calls.get((request.method, endpoint))
        if call is None:
            head = _head(endpoint, request.method, sender.environ)
            call = AdmittedCall(self._policy, head)
            sender.calls[request.method, endpoint] = call
        # Leave GET with a body, which may be a form, and POST without one, which gets a page,
        # to Flask.
        if call.head.has_body is (request.method == "GET"):
            return None
        # Enter the app's context, as applications and receivers of signals may use
        # current_app.
        with self.app_context():
            return self._answer(sender, call, request.query, body)

    def is_bypassed(self) -> bool:
        """Return true while receivers are connected to Flask's request signals, which only
        Flask sends."""
        for signal in _SIGNALS:
            # Compare IDs first, as this runs before each request and blinker's lookup is
            # slower.
            if not signal.receivers.keys() <= _WITHOUT_EFFECT and any(
                id(receiver) not in _WITHOUT_EFFECT
                for receiver in signal.receivers_for(self._app)
            ):
                return True
        return False

    def _answer(
        self, sender: Sender, call: AdmittedCall, query: str, body: BinaryIO
    ) -> DirectResponse | None:
        head, found = call.head, call.found
        dispatcher = self._mount.dispatchers.get(head.endpoint, self._mount.node)
        if isinstance(found, Refusal):
            _discard(body, found.bytes_to_discard(head))
            response = render_refusal(self._policy, head, found, dispatcher)
            response = add_headers(self._policy, head, response, 0)
            return _encoded(response, sender)
        reply = self._reply(found, dispatcher, query, body)
        return None if reply is None else _rendered(sender, call, found, reply)

    def _reply(
        self, admitted: Admitted, dispatcher: Dispatcher, query: str, body: BinaryIO
    ) -> Reply | None:
        head = admitted.head
        if head.method == "GET":
            return dispatcher.get(head.endpoint, query.encode("latin-1"), admitted.permissions)
        try:
            given = _read(body, head.content_length, admitted.max_body)
        except NodeRPCError as error:
            return dispatcher.error_reply(unreadable(self._policy, head, error))
        return dispatcher.post(given, admitted.permissions) if given else None


def _rendered(
    sender: Sender, call: AdmittedCall, admitted: Admitted, reply: Reply
) -> DirectResponse:
    """Return the response to an admitted call; its head is rendered once if only the length,
    the ETag and the time headers differ."""
    reproducible = None if call.is_one_time else reply.reproducible
    key = reply.status, reply.cacheable, bool(reply.etag)
    if not is_usual(call.head, reply):
        response = render(admitted, reply, 0)
        return _encoded(response, sender)._replace(reproducible=reproducible)
    head = call.heads.get(key)
    if head is None:
        response = render(admitted, reply, 0)
        head = call.heads[key] = _head_of(response, sender, _DIFFERING)
    values = {b"Content-Length": b"%d" % len(reply.body), b"ETag": f'"{reply.etag}"'.encode()}
    return DirectResponse(reply.status, head % values, reply.body, None, reproducible)


def _encoded(response: Response, sender: Sender) -> DirectResponse:
    head = _head_of(response, sender) % {}
    return DirectResponse(response.status, head, response.body, response.compressed)


# Headers whose values differ between usual responses to one kind of call of a sender.
_DIFFERING = frozenset(("Content-Length", "ETag"))
_CLOCKS = frozenset(("Date", "X-Server-Time"))


def _head_of(response: Response, sender: Sender, differing: Set[str] = frozenset()) -> bytes:
    """Return the encoded head of a response as a template for two ``%`` operations: the first
    needs the values of the ``differing`` headers, the second those from :func:`clocks`."""
    lines = [f"{sender.version} {status_line(response.status)}"]
    added = [("Date", "")]
    if sender.version == "HTTP/1.0":
        added.insert(0, ("Connection", "close" if sender.closes else "keep-alive"))
    for name, value in (*response.headers, *added):
        if name in differing:
            lines.append(f"{name}: %({name})b")
        elif name in _CLOCKS:
            lines.append(f"{name}: %%({name})b")
        else:
            lines.append(f"{name}: " + value.replace("%", "%%%%"))
    return "\r\n".join((*lines, "", "")).encode("latin-1")


@lru_cache(maxsize=4)
def clocks(second: int) -> dict[bytes, bytes]:
    """Return the values of the time headers by name, for a time in seconds since 1970."""
    date = formatdate(second, usegmt=True).encode()
    return {b"Date": date, b"X-Server-Time": b"%d" % second}


def _endpoints(mount: Mount, surface: Surface) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the HTTP method and path of each kind of call, with its endpoint."""
    if surface is NODE:
        yield from mount.calls()
    elif surface.is_rpc:
        yield ("POST", "/"), surface.endpoint
        yield ("POST", ""), surface.endpoint


def _head(endpoint: str, method: str, environ: Mapping[str, Any]) -> Head:
    return Head(
        endpoint,
        method,
        get_host(environ),  # type: ignore[arg-type]  # it only reads
        environ.get("REMOTE_ADDR", ""),
        environ,
        get_content_length(
            environ.get("CONTENT_LENGTH"), environ.get("HTTP_TRANSFER_ENCODING")
        ),
        environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower(),
        on_loopback=LOOPBACK in environ,
    )


def _read(body: BinaryIO, size: int | None, limit: int) -> bytes:
    """Return the body; raise :exc:`~flask_noderpc.errors.InvalidRequest` if it is too long or
    incomplete. ``size`` is its length, or ``None`` if it is chunked."""
    try:
        # One more byte of a chunked body shows that it is too long. A read allocates
        # as much memory as it may return.
        given = body.read(limit + 1 if size is None else size)
    except OSError:
        raise InvalidRequest("the body ended before it was complete") from None
    if len(given) > limit:
        raise BodyTooLarge(limit)
    return given


def _discard(body: BinaryIO, size: int) -> None:
    if size:
        try:
            body.read(size)
        except OSError:
            return


# Estimated memory of a cached response in addition to its bytes.
_OVERHEAD_BYTES = 1_000
_MAX_ENTRIES = 1_000_000

# Content-Length and "id" in the notation of most clients; other requests are not cached.
_LENGTH = re.compile(rb"\r\ncontent-length: ?(\d{1,4})\r\n", re.IGNORECASE)
_ID = re.compile(rb'"id": ?(0|[1-9]\d{0,17}|"[\w-]{1,40}")(?=[,}])')
_OPENING = b'{"jsonrpc":"2.0","id":'
_REPEATABLE = (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED)
_NO_CONTEXT = nullcontext()


class RawRequest(NamedTuple):
    """An unparsed request: its size in bytes, its cache key, and the ID of its call."""

    size: int
    key: bytes
    request_id: bytes = b""

    @classmethod
    def read(cls, waiting: bytes) -> RawRequest | None:
        """Return the request at the start of the received bytes; ``None`` if it can't be
        cached."""
        end = waiting.find(b"\n\r\n") + 3
        # Give up if an earlier empty line ends in LF only, as the head would end there.
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
        # Don't cache bodies with a backslash, as an escape could hide another "id".
        if not (length and request_id) or body.count(b'"id"') != 1 or b"\\" in body:
            return None
        if len(waiting) < size:
            return None
        # The key has no ID, as clients usually count their calls. Content-Length, which is in
        # the key, still includes the length of the ID.
        before, behind = waiting[: end + request_id.start(1)], body[request_id.end(1) :]
        return cls(size, before + b"\0" + behind, request_id[1])


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A cached response: placeholders for time headers in the head, the body before and after
    the ID of the call, and the cache key."""

    key: bytes
    head: bytes
    before: bytes
    after: bytes
    reproducible: Reproducible
    compressed: Compressed | None = None
    """Compressed body after the ID; ``None`` if the body is not compressed."""

    def parts(self, request_id: bytes) -> tuple[bytes | memoryview, ...]:
        """Return the response to a call with this ID, in parts to send one by one."""
        if self.compressed:
            body = self.compressed.body(self.before + request_id)
        else:
            body = self.before + request_id + self.after if request_id else self.before
        return parts_of(self.head % clocks(int(time.time())), body)


class ResponseCache:
    """Cache of responses by request; ``max_bytes`` and the shared limit ``memory`` bound
    it."""

    def __init__(self, max_bytes: int, memory: CacheMemory | None = None) -> None:
        self._responses: LRUCache[bytes, CachedResponse] = LRUCache(
            _MAX_ENTRIES, max_bytes, _weight, memory
        )

    def find(
        self, raw_request: RawRequest, context: Callable[[], AbstractContextManager[object]]
    ) -> tuple[bytes | memoryview, ...] | None:
        """Return the cached response to a request in parts, or ``None``.

        ``context`` makes the app context in which receivers of ``rpc_called`` are called.
        """
        cached = self._responses.get(raw_request.key)
        if cached is None:
            return None
        try:
            if not cached.reproducible.holds():
                return None
        except Exception:
            # Fall through to the dispatcher, which reports this error.
            return None
        entered = context() if rpc_called.receivers else _NO_CONTEXT
        with entered, cached.reproducible.reported():
            return cached.parts(raw_request.request_id)

    def store(self, raw_request: RawRequest, response: DirectResponse) -> None:
        """Cache a response that may be cached; it is used while its result is valid."""
        reproducible = response.reproducible
        if reproducible is None or not reproducible.may_hold:
            return
        parts = _around_id(response, raw_request.request_id)
        if parts is None or response.status not in _REPEATABLE:
            return
        # Drop the result in ``encoded``, as the body has it already.
        encoded = reproducible.encoded._replace(result=b"", reply=b"")
        cached = CachedResponse(
            raw_request.key,
            response.head,
            *parts,
            reproducible._replace(encoded=encoded),
            response.compressed if raw_request.request_id else None,
        )
        self._responses.put(raw_request.key, cached)


def _around_id(response: DirectResponse, request_id: bytes) -> tuple[bytes, bytes] | None:
    """Return the body before and after the call's ID, or the whole body and nothing if there
    is no ID; ``None`` if the body does not start as expected."""
    body, compressed = response.body, response.compressed
    if isinstance(body, LargeBody):
        # The result is cached by the dispatcher; a copy would take its memory again.
        return None
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
