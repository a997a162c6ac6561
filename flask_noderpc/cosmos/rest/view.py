"""The REST gateway of one mount: the adapter between Flask's requests and its answers."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response, request

from ...cometbft.info import Query
from ...cometbft.txs import TxParams
from ...domain.abci import QueryResult
from ...domain.responses import ResultABCIQuery, ResultBroadcastTx
from ...errors import NodeRPCError
from ...jsonrpc.context import Permissions
from ...jsonrpc.dispatch import Dispatcher
from ...jsonrpc.params import Params
from ...jsonrpc.reply import Reply, to_rpc_error
from ...web.rules.admit import Refusal, admit
from ...web.rules.head import REST, Head
from ...web.rules.render import render_reply
from ...web.views import Views, discard, head_of, propagates_exceptions, read_body, to_flask
from . import gateway

PREFIXES = ("cosmos", "cosmwasm", "feemarket", "ibc")
"""First parts of the paths that the gateway answers on an app; wallets ask for all of them."""

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
"""Those that are answered, most of them with 501."""

VARIABLE = "noderpc_rest"
"""Variable of the rules: the path behind its first part."""

REST_ENDPOINT = f"{REST}_{PREFIXES[0]}"
"""Endpoint of Flask's rule of the first prefix."""

UNKNOWN = f"/{PREFIXES[0]}/unknown"
"""A path that the gateway does not have."""


def is_served(path: str) -> bool:
    """Return true if Flask has a rule for a path: it is below one of the prefixes, without a
    line break."""
    first, _, rest = path.removeprefix("/").partition("/")
    return first in PREFIXES and bool(rest) and "\n" not in rest


class RestView:
    """View of the gateway, which calls the routes of a mount as their senders may."""

    def __init__(self, views: Views, dispatcher: Dispatcher) -> None:
        self._views, self._dispatcher = views, dispatcher

    def __call__(self, prefix: str, path: str) -> Response:
        """Answer the current request, for a path below one of the prefixes."""
        head = head_of(REST, has_body=True)
        try:
            reply = self._answer(head, f"/{prefix}/{path}")
        except Exception as error:
            if not isinstance(error, NodeRPCError) and propagates_exceptions():
                raise
            shown = to_rpc_error(error)
            reply = gateway.refused(error, shown.text_with_hint or str(shown))
        plain = Reply(reply.status, reply.body, headers=reply.headers)
        return to_flask(render_reply(self._views.policy, head, plain))

    def _answer(self, head: Head, path: str) -> gateway.Reply:
        found = admit(self._views.policy, head)
        if isinstance(found, Refusal):
            discard(found.bytes_to_discard(head))
            assert found.error is not None
            raise found.error
        permissions = self._views.bound(found.permissions)
        return gateway.answer(
            gateway.Request(
                head.method,
                path,
                request.query_string.decode(errors="replace"),
                read_body(found.max_body) if head.has_body else b"",
                _height(head),
            ),
            partial(self._query, permissions),
            partial(self._send, permissions),
        )

    def _query(
        self, permissions: Permissions, path: str, data: bytes, height: int
    ) -> QueryResult:
        asked = Query(path, data, height)
        result: ResultABCIQuery = self._called("abci_query", asked, permissions)
        return result.response

    def _send(self, permissions: Permissions, method: str, tx: bytes) -> ResultBroadcastTx:
        result: ResultBroadcastTx = self._called(method, TxParams(tx), permissions)
        return result

    def _called(self, method: str, params: Params, permissions: Permissions) -> Any:
        return self._dispatcher.call(method, params, permissions, "rest")


def _height(head: Head) -> str:
    names = ("HTTP_X_COSMOS_BLOCK_HEIGHT", "HTTP_GRPC_METADATA_X_COSMOS_BLOCK_HEIGHT")
    return next((head.fields[name] for name in names if head.fields.get(name)), "")
