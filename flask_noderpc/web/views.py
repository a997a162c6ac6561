"""Flask's views of one mount, and the adapter between Flask and the HTTP rules."""

from __future__ import annotations

import logging
import time
from collections import ChainMap
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from http import HTTPStatus

from flask import Response, current_app, has_request_context, request
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import HTTP_STATUS_CODES

from .. import jsoncodec
from ..errors import BodyTooLarge, InvalidRequest, NodeRPCError, NotAuthorized
from ..jsonrpc.context import Permissions
from ..jsonrpc.dispatch import Dispatcher
from ..jsonrpc.guard import STATUS, Authorize, bind_authorizer
from ..jsonrpc.params import check_text, is_utf8, not_utf8, values_of
from ..jsonrpc.reply import Reply
from ..wire.envelope import URI_ID
from .rules import head as rules
from .rules.admit import (
    FORM,
    Admitted,
    Policy,
    Refusal,
    admit,
    admit_host,
    permissions_of,
    unreadable,
)
from .rules.head import HTML, RPC, WEBSOCKET, Head, plain_text
from .rules.head import Response as PlainResponse
from .rules.render import added_headers, render_refusal, render_reply

log = logging.getLogger("flask_noderpc.calls")

LOOPBACK = "noderpc.loopback"
"""Key in the WSGI environ that our server sets at a loopback address without a proxy in front.
"""

_PART = 1 << 16
"""Maximum bytes to read at once when a body is discarded."""


def head_of(endpoint: str = "", *, has_body: bool = False) -> rules.Head:
    """Return the head of the current request; with ``has_body``, including the length and type
    of its body.

    Host and client address are the ones that middleware of the app may have set.
    """
    environ = request.environ
    head = rules.Head(
        endpoint,
        request.method,
        request.host,
        request.remote_addr or "",
        environ,
        on_loopback=LOOPBACK in environ,
    )
    if not has_body:
        return head
    return head._replace(
        content_length=request.content_length,
        mimetype=request.mimetype,
        max_body=request.max_content_length,
    )


class _Response(Response):
    # Add no content type: the rules set it, and an empty body has none.
    default_mimetype = None


def to_flask(response: rules.Response) -> Response:
    """Return a response as a Flask response."""
    return _Response(bytes(response.body), status_line(response.status), response.headers)


@cache
def status_line(status: HTTPStatus) -> str:
    """Return the status line with the phrase of RFC 9110; Werkzeug would write it in upper
    case.
    """
    return f"{status.value} {HTTP_STATUS_CODES.get(status.value, status.phrase)}"


def refuse(
    policy: Policy, head: rules.Head, refusal: Refusal, dispatcher: Dispatcher
) -> Response:
    """Discard the body of a refused request; return the response."""
    if refusal.max_body:
        discard(refusal.bytes_to_discard(head))
    return to_flask(render_refusal(policy, head, refusal, dispatcher))


def read_body(limit: int, *, cache: bool = False) -> bytes:
    """Return the request's body; raise :exc:`~flask_noderpc.errors.InvalidRequest`."""
    # Allow one more byte, to detect a body that is too long: Werkzeug silently cuts one that
    # has no length.
    request.max_content_length = limit + 1
    try:
        body = request.get_data(cache=cache)
    except RequestEntityTooLarge:
        raise BodyTooLarge(limit) from None
    except Exception:
        # Catch every exception, as each server raises different ones for a broken body.
        raise InvalidRequest("the body ended before it was complete") from None
    if len(body) > limit:
        raise BodyTooLarge(limit)
    return body


def read_form(limit: int) -> Mapping[str, str]:
    """Return the values of the URL and the form; values of the URL take precedence.

    Raise :exc:`~flask_noderpc.errors.InvalidRequest`, or
    :exc:`~flask_noderpc.errors.InvalidParams` for values that are not UTF-8.
    """
    body = read_body(limit, cache=True)
    if request.mimetype == FORM:
        check_text("form", body)
        # Limit the fields here, as Flask only limits the parts of multipart forms.
        if body.count(b"&") >= (request.max_form_parts or len(body)):
            raise BodyTooLarge(limit)
    elif not is_utf8(body):
        raise not_utf8("form")
    try:
        return ChainMap(dict(values_of(request.query_string)), request.form)
    except RequestEntityTooLarge:
        raise BodyTooLarge(limit) from None


def discard(size: int) -> None:
    """Read and discard ``size`` bytes of the body of the current request."""
    if not size:
        return
    # Werkzeug reads less if the app has already read a part.
    request.max_content_length = size
    with suppress(Exception):
        while request.stream.read(_PART):
            pass


# Default maximum bytes of a body to read in request_cost().
_MAX_BYTES = 5 * 1024 * 1024


def request_cost() -> int:
    """Return the number of calls in the current request, for an app's rate limits.

    A request whose body is not a batch, or can't be read, counts as one call.
    """
    given = request.max_content_length
    # Read the body with every HTTP method, as CometBFT and geth even execute the body of a
    # GET.
    request.max_content_length = _MAX_BYTES if given is None else given
    try:
        return max(1, len(jsoncodec.decode(request.get_data(), list[jsoncodec.Raw])))
    except (jsoncodec.NotJSON, RequestEntityTooLarge):
        return 1
    finally:
        # Restore the limit, as the app's views may accept larger bodies.
        request.max_content_length = given


View = Callable[..., Response | str]


class Views:
    """Flask views of one mount; ``index`` returns the index page."""

    def __init__(
        self,
        policy: Policy,
        dispatcher: Dispatcher,
        index: Callable[[], Response | str],
        authorize: Authorize | None = None,
    ) -> None:
        self.policy = policy
        self._dispatcher = dispatcher
        self._index = self.page(index, STATUS)
        self._authorize = authorize

    # Views ignore the variables of a url_prefix, which only the app's hooks use.

    def route(self, name: str) -> View:
        """Return the view of a route's path."""

        def view(**_: object) -> Response:
            head = head_of(name, has_body=self.policy.takes_forms)
            found = admit(self.policy, head)
            if isinstance(found, Refusal):
                return refuse(self.policy, head, found, self._dispatcher)
            return self._answer(head, self._get(name, found))

        return view

    def _get(self, name: str, admitted: Admitted) -> Reply:
        try:
            limit = admitted.max_body
            values = read_form(limit) if limit else request.query_string
        except NodeRPCError as error:
            return self._dispatcher.error_reply(error, URI_ID)
        return self._dispatcher.get(name, values, self.bind_permissions(admitted.permissions))

    def page(self, page: Callable[[], Response | str], method: str) -> View:
        """Return the view of a page that only clients who may call ``method`` can read; if it
        is empty, everyone can."""

        def view(**_: object) -> Response | str:
            return (method and self.refuse(method)) or page()

        return view

    def rpc(self, **_: object) -> Response | str:
        """Execute a JSON-RPC body; its content type is ignored."""
        empty = self._index if self.policy.page_for_empty_body else None
        return self._body(RPC, self._dispatcher, empty)

    def index(self, **_: object) -> Response | str:
        """Respond to a GET of the mount's root: with the index page, or to a call in its
        body."""
        # CometBFT executes a body with any HTTP method.
        return self.rpc() if self.policy.takes_forms else self._index()

    def body(
        self,
        endpoint: str,
        dispatcher: Dispatcher,
        empty: Callable[[], Response | str],
        page: Callable[[], Response | None],
    ) -> View:
        """Return the view of a JSON-RPC endpoint; ``empty`` responds to an empty body. ``page``
        returns the response to a browser that opens the URL, and ``None`` to other
        requests."""
        return lambda **_: page() or self._body(endpoint, dispatcher, empty)

    def _body(
        self, endpoint: str, dispatcher: Dispatcher, empty: Callable[[], Response | str] | None
    ) -> Response | str:
        """Execute a JSON-RPC body; ``empty`` responds to an empty body, unless it is
        ``None``."""
        head = head_of(endpoint, has_body=True)
        found = admit(self.policy, head)
        if isinstance(found, Refusal):
            return refuse(self.policy, head, found, dispatcher)
        try:
            body = read_body(found.max_body)
        except NodeRPCError as error:
            return self._answer(
                head, dispatcher.error_reply(unreadable(self.policy, head, error))
            )
        if not body and empty:
            return empty()
        return self._answer(
            head, dispatcher.post(body, self.bind_permissions(found.permissions))
        )

    def _answer(self, head: Head, reply: Reply) -> Response:
        return to_flask(render_reply(self.policy, head, reply))

    def bind_permissions(self, permissions: Permissions) -> Permissions:
        """Return permissions that ask the app's ``authorize`` about each call of the
        request."""
        if self._authorize is None:
            return permissions
        current = request._get_current_object()  # type: ignore[attr-defined]
        return permissions._replace(denial=bind_authorizer(self._authorize, current))

    def refuse_handshake(self) -> Response | None:
        """Return the refusal of a handshake, or ``None`` if its sender may connect."""
        head = head_of(WEBSOCKET)
        found = admit(self.policy, head)
        if isinstance(found, Refusal):
            return refuse(self.policy, head, found, self._dispatcher)
        return self.refuse(WEBSOCKET)

    def refuse(self, method: str) -> Response | None:
        """Return the refusal of the current request, or ``None`` if its sender may call
        ``method``."""
        try:
            self.permissions().check(method)
        except NotAuthorized as error:
            headers = error.headers.items()
            return to_flask(plain_text(str(error), HTTPStatus(error.status), *headers))
        return None

    def permissions(self, endpoint: str = "") -> Permissions:
        """Return the permissions of the current request's sender at an endpoint; only some
        endpoints allow signing."""
        return self.bind_permissions(permissions_of(self.policy, head_of(endpoint)))

    def refuse_host(self) -> Response | None:
        """Return the refusal of the current request, or ``None`` if its host is served."""
        refusal = admit_host(self.policy, head_of())
        return to_flask(refusal.response) if refusal and refusal.response else None

    def add_headers_to(self, response: Response) -> Response:
        """Return a response with the headers that all responses of this mount get."""
        head = head_of()
        if self.policy.cors.is_preflight(head):
            response.status_code = HTTPStatus.NO_CONTENT
            response.set_data(b"")
            del response.headers["Allow"]
        for name, value in added_headers(self.policy, head, int(time.time())):
            if name == "Vary":
                response.vary.update(value.split(", "))
            else:
                response.headers[name] = value
        return response

    def adder_to_unmatched(self, url_prefix: str) -> Callable[[Response], Response]:
        """Return a function that adds these headers to the 404 of a path below ``url_prefix``
        that has no rule."""

        def add(response: Response) -> Response:
            is_unmatched = request.url_rule is None
            if is_unmatched and request.path.startswith(f"{url_prefix}/"):
                return self.add_headers_to(response)
            return response

        return add


def log_call(*, method: str, seconds: float, outcome: int, transport: str) -> None:
    """Log a call with the values of :data:`~flask_noderpc.signals.rpc_called`.

    Parameters are never logged: they may be transactions or private queries.
    """
    record = {
        "method": method,
        "outcome": outcome,
        "milliseconds": round(seconds * 1000, 3),
        "transport": transport,
        "client": (request.remote_addr if has_request_context() else None) or "-",
    }
    # Log the values in the text, and as attributes of the record for JSON formatters.
    log.info(" ".join(f"{name}=%s" for name in record), *record.values(), extra=record)


def propagates_exceptions() -> bool:
    """Return true if Flask passes exceptions of views on to the server or the test."""
    # Flask.handle_exception has the same rule.
    setting = current_app.config["PROPAGATE_EXCEPTIONS"]
    return bool(current_app.testing or current_app.debug if setting is None else setting)


def empty_page() -> Response:
    """Return an empty HTML page."""
    return to_flask(PlainResponse(HTTPStatus.OK, [HTML], b""))
