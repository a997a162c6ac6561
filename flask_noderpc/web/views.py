"""Views of one mount: routes by GET, JSON-RPC bodies, and the EVM layer's."""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus

from flask import Response, request

from ..errors import NodeRPCError, NotAuthorized
from ..jsonrpc.context import Permissions
from ..jsonrpc.dispatch import Dispatcher
from ..jsonrpc.guard import Authorize, bound, check_authorized
from ..jsonrpc.reply import Reply
from ..wire.envelope import URI_ID
from .http import head_of, read_body, read_form, refuse, to_flask
from .rules.admit import (
    Admitted,
    Policy,
    Refusal,
    admit,
    admit_host,
    permissions_of,
    unreadable,
)
from .rules.head import EVM, EVM_WEBSOCKET, HTML, RPC, WEBSOCKET, Head, plain_text
from .rules.head import Response as PlainResponse
from .rules.render import added_headers, render_reply

View = Callable[..., Response | str]


class Views:
    """Flask's views of one mount; ``index`` is the page for a person."""

    def __init__(
        self,
        policy: Policy,
        dispatcher: Dispatcher,
        evm_dispatcher: Dispatcher | None,
        index: Callable[[], Response | str],
        authorize: Authorize | None = None,
    ) -> None:
        self.policy = policy
        self._dispatcher = dispatcher
        self._evm_dispatcher = evm_dispatcher
        self._index = index
        self._authorize = authorize

    # The variables of a url_prefix are the host's business; its hooks see them.

    def route(self, name: str) -> View:
        """Return the view of a route's path."""

        def view(**_: object) -> Response:
            head = head_of(name, has_body=self.policy.takes_forms)
            found = admit(self.policy, head)
            if isinstance(found, Refusal):
                return refuse(head, found, self._dispatcher)
            return _answer(head, self._get(name, found))

        return view

    def _get(self, name: str, admitted: Admitted) -> Reply:
        try:
            limit = admitted.max_body
            values = read_form(limit) if limit else request.query_string
        except NodeRPCError as error:
            return self._dispatcher.refusal(error, URI_ID)
        return self._dispatcher.get(name, values, self._bound(admitted.permissions))

    def rpc(self, **_: object) -> Response | str:
        """Answer a JSON-RPC body; its content type does not matter."""
        empty = self._index if self.policy.page_for_empty_body else None
        return self._body(RPC, self._dispatcher, empty)

    def index(self, **_: object) -> Response | str:
        """Answer a GET of the root."""
        # CometBFT: it is the body that makes a call, not the method.
        return self.rpc() if self.policy.takes_forms else self._index()

    def evm(self, **_: object) -> Response | str:
        """Answer a JSON-RPC body of the EVM layer."""
        assert self._evm_dispatcher is not None
        return self._body(EVM, self._evm_dispatcher, _empty_page)

    def _body(
        self, endpoint: str, dispatcher: Dispatcher, empty: Callable[[], Response | str] | None
    ) -> Response | str:
        """Answer a body, an empty one with the page ``empty`` if there is one."""
        head = head_of(endpoint, has_body=True)
        found = admit(self.policy, head)
        if isinstance(found, Refusal):
            return refuse(head, found, dispatcher)
        try:
            body = read_body(found.max_body)
        except NodeRPCError as error:
            return _answer(head, dispatcher.refusal(unreadable(head, error)))
        if not body and empty:
            return empty()
        return _answer(head, dispatcher.post(body, self._bound(found.permissions)))

    def _bound(self, permissions: Permissions) -> Permissions:
        """Add the host's decision about the calls of the current request."""
        if self._authorize is None:
            return permissions
        current = request._get_current_object()  # type: ignore[attr-defined]
        return permissions._replace(denial=bound(self._authorize, current))

    def refuse_handshake(self) -> Response | None:
        """Return the response to a handshake whose sender may not connect."""
        head = head_of(WEBSOCKET)
        found = admit(self.policy, head)
        if isinstance(found, Refusal):
            return refuse(head, found, self._dispatcher)
        try:
            check_authorized(self._bound(found.permissions), WEBSOCKET)
        except NotAuthorized as error:
            headers = error.headers.items()
            return to_flask(plain_text(str(error), HTTPStatus(error.status), *headers))
        return None

    def permissions(self) -> Permissions:
        """Return what the sender of the current request may do, except signing."""
        return self._bound(permissions_of(self.policy, head_of()))

    def signer(self) -> Permissions:
        """The same, of a request of the EVM layer, which may have keys of the node sign."""
        return self._bound(permissions_of(self.policy, head_of(EVM_WEBSOCKET)))

    def refuse_host(self) -> Response | None:
        """Return the response to a request for a host that is not served."""
        refusal = admit_host(self.policy, head_of())
        return to_flask(refusal.response) if refusal and refusal.response else None

    def add_headers_to(self, response: Response) -> Response:
        """Add the headers that all responses of this mount have."""
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


def _empty_page() -> Response:
    return to_flask(PlainResponse(HTTPStatus.OK, [HTML], b""))


def _answer(head: Head, reply: Reply) -> Response:
    return to_flask(render_reply(head, reply))
