"""Answers calls of the node's own app by the HTTP rules, without Flask's views.

Every other path, and every request that is no plain call, goes to Flask: pages, other
methods, forms, websockets, and Flask's own errors.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from flask import Flask, request_finished, request_started, request_tearing_down
from werkzeug.sansio.utils import get_content_length
from werkzeug.wsgi import get_host

from ..errors import BodyTooLarge, InvalidRequest, NodeRPCError
from ..feature import Surface
from ..jsonrpc.dispatch import Dispatcher
from ..jsonrpc.reply import Reply, Reproducible
from ..mount import Mount
from ..web.rule_conflicts import check_request
from ..web.rules.admit import Admitted, Refusal, admit, admit_host, unreadable
from ..web.rules.head import Head, Response
from ..web.rules.render import add_headers, render, render_refusal
from ..web.views import LOOPBACK
from .addresses import NODE

# Headers that name the trace of one request: no other has the same bytes. They are those of
# W3C's Trace Context, B3, Jaeger and AWS X-Ray.
_TRACE_FIELDS = frozenset(
    (
        "HTTP_TRACEPARENT",
        "HTTP_B3",
        "HTTP_X_B3_TRACEID",
        "HTTP_UBER_TRACE_ID",
        "HTTP_X_AMZN_TRACE_ID",
    )
)
_SIGNALS = (request_started, request_finished, request_tearing_down)
# What check_request does was done when the server started.
_WITHOUT_EFFECT = {id(check_request)}


class Answer(NamedTuple):
    """Response to a call, with its result if that may be cached."""

    response: Response
    reproducible: Reproducible | None = None


class DirectAdapter:
    """Answers the calls of one mount at one address, which serves a ``surface``."""

    def __init__(self, app: Flask, mount: Mount, surface: Surface = NODE) -> None:
        self._app = app
        self.app_context = app.app_context
        self._mount = mount
        self._policy = mount.views.policy
        self._endpoints = dict(_endpoints(mount, surface))

    def answer(self, environ: Mapping[str, Any]) -> Answer | None:
        """Return the answer to a call; ``None`` for a request that is Flask's."""
        endpoint = self._endpoints.get((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        if endpoint is None or "HTTP_UPGRADE" in environ or self.is_bypassed():
            return None
        head = _head(endpoint, environ)
        # A form has parameters, and without a body there is a page.
        if head.has_body is (head.method == "GET"):
            return None
        # Applications and receivers of signals may use current_app.
        with self.app_context():
            return self._answer(head, environ)

    def is_bypassed(self) -> bool:
        """Return true while receivers are connected to Flask's signals of requests."""
        for signal in _SIGNALS:
            # Before each request: to compare ids takes less than to ask blinker for receivers.
            if not signal.receivers.keys() <= _WITHOUT_EFFECT and any(
                id(receiver) not in _WITHOUT_EFFECT
                for receiver in signal.receivers_for(self._app)
            ):
                return True
        return False

    def _answer(self, head: Head, environ: Mapping[str, Any]) -> Answer | None:
        dispatcher = self._mount.dispatchers.get(head.endpoint, self._mount.node)
        found = admit_host(self._policy, head) or admit(self._policy, head)
        if isinstance(found, Refusal):
            _discard(environ, found.bytes_to_discard(head))
            response = render_refusal(self._policy, head, found, dispatcher)
            return Answer(add_headers(self._policy, head, response, int(time.time())))
        reply = self._reply(found, dispatcher, environ)
        if reply is None:
            return None
        # A page's permissions depend on its address too, by which nothing is cached.
        by_address = self._policy.origins.dev and "HTTP_ORIGIN" in head.fields
        is_one_time = by_address or not head.fields.keys().isdisjoint(_TRACE_FIELDS)
        return Answer(
            render(found, reply, int(time.time())), None if is_one_time else reply.reproducible
        )

    def _reply(
        self, admitted: Admitted, dispatcher: Dispatcher, environ: Mapping[str, Any]
    ) -> Reply | None:
        head = admitted.head
        if head.method == "GET":
            query = environ["QUERY_STRING"].encode("latin-1")
            return dispatcher.get(head.endpoint, query, admitted.permissions)
        try:
            body = _read(environ, admitted.max_body)
        except NodeRPCError as error:
            return dispatcher.error_reply(unreadable(self._policy, head, error))
        return dispatcher.post(body, admitted.permissions) if body else None


def _endpoints(mount: Mount, surface: Surface) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield methods and paths of calls, and their endpoints."""
    if surface is NODE:
        yield from mount.calls()
    elif surface.is_rpc:
        yield ("POST", "/"), surface.endpoint
        yield ("POST", ""), surface.endpoint


def _head(endpoint: str, environ: Mapping[str, Any]) -> Head:
    return Head(
        endpoint,
        environ["REQUEST_METHOD"],
        get_host(environ),  # type: ignore[arg-type]  # it only reads
        environ.get("REMOTE_ADDR", ""),
        environ,
        get_content_length(
            environ.get("CONTENT_LENGTH"), environ.get("HTTP_TRANSFER_ENCODING")
        ),
        environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower(),
        on_loopback=LOOPBACK in environ,
    )


def _read(environ: Mapping[str, Any], limit: int) -> bytes:
    """Return the body; raise :exc:`~flask_noderpc.errors.InvalidRequest`."""
    try:
        # One more, of a body that came without a length.
        body: bytes = environ["wsgi.input"].read(limit + 1)
    except OSError:
        raise InvalidRequest("the body could not be read to its end") from None
    if len(body) > limit:
        raise BodyTooLarge(limit)
    return body


def _discard(environ: Mapping[str, Any], size: int) -> None:
    if size:
        try:
            environ["wsgi.input"].read(size)
        except OSError:
            return
