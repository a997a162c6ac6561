"""REST gateway of one mount: its URL rules, and the adapter from Flask requests to the
gateway."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from types import MappingProxyType
from typing import Any

from flask import Flask, Response, request

from ...backends.base.application import ApplicationAccess
from ...chain.embedded import EmbeddedChain
from ...cometbft.info import Query
from ...cometbft.txs import TxParams
from ...domain.abci import QueryResult
from ...domain.responses import ResultABCIQuery, ResultBroadcastTx
from ...errors import InvalidSetting, NodeRPCError
from ...jsonrpc.context import Permissions
from ...jsonrpc.params import Params
from ...jsonrpc.reply import Reply, to_rpc_error
from ...web.layers import Layer, Mounted, Path
from ...web.rules.admit import Admission, Refusal, admit, admit_body
from ...web.rules.head import Head
from ...web.rules.render import render_reply
from ...web.views import Views, discard, head_of, propagates_exceptions, read_body, to_flask
from . import gateway
from .routes import REST_ROUTES, ROUTES

PREFIXES = ("cosmos", "cosmwasm", "feemarket", "ibc")
"""First segments of the SDK's paths; wallets request all of them. A user's modules may have
others."""

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
"""HTTP methods of the URL rules; the gateway responds to most of them with 501."""

VARIABLE = "noderpc_rest"
"""Variable of the URL rules: the path after its first segment."""

REST = "rest"
"""Endpoint of the URL rules."""

# A path without a route, for which the gateway responds with 501.
_UNKNOWN = f"/{PREFIXES[0]}/unknown"


class RestLayer(Layer):
    """URL rules of the gateway, which calls the mount's routes with the client's permissions.

    Raise :exc:`~flask_noderpc.errors.InvalidSetting` for an embedded chain whose application
    is not of the Cosmos SDK.
    """

    admissions = MappingProxyType({REST: Admission(admit_body)})

    def __init__(self, mounted: Mounted) -> None:
        backend = mounted.context.backend
        # Other applications respond to any query, so clients would see an empty state.
        if isinstance(backend, EmbeddedChain) and not _is_of_sdk(backend.application):
            raise InvalidSetting(
                "NODERPC_REST needs a Cosmos SDK chain: set NODERPC_APPLICATION = 'bank', or"
                " NODERPC_UPSTREAM to nodes of such a chain, or implement sdk_prefix() in your"
                " application"
            )
        self._dispatcher = mounted.node
        self._routes = (*ROUTES, *(REST_ROUTES.find(backend) or ()))

    def paths(self, views: Views, excluded: Iterable[str]) -> Iterator[Path]:
        """Yield a URL rule for each prefix."""
        for prefix in dict.fromkeys((*PREFIXES, *(each.prefix for each in self._routes))):
            view = partial(self._view, views, prefix)
            yield Path(f"/{prefix}/<path:{VARIABLE}>", f"{REST}_{prefix}", METHODS, view)

    def _view(self, views: Views, prefix: str, /, **values: str) -> Response:
        head = head_of(REST, has_body=True)
        try:
            reply = self._answer(views, head, f"/{prefix}/{values[VARIABLE]}")
        except Exception as error:
            if not isinstance(error, NodeRPCError) and propagates_exceptions():
                raise
            shown = to_rpc_error(error)
            reply = gateway.error_reply(error, shown.text_with_hint or str(shown))
        plain = Reply(reply.status, reply.body, headers=reply.headers)
        return to_flask(render_reply(views.policy, head, plain))

    def _answer(self, views: Views, head: Head, path: str) -> gateway.Reply:
        found = admit(views.policy, head)
        if isinstance(found, Refusal):
            discard(found.bytes_to_discard(head))
            assert found.error is not None
            raise found.error
        permissions = views.bind_permissions(found.permissions)
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
            self._routes,
        )

    def _query(
        self, permissions: Permissions, path: str, data: bytes, height: int
    ) -> QueryResult:
        asked = Query(path, data, height)
        result: ResultABCIQuery = self._call_route("abci_query", asked, permissions)
        return result.response

    def _send(self, permissions: Permissions, method: str, tx: bytes) -> ResultBroadcastTx:
        result: ResultBroadcastTx = self._call_route(method, TxParams(tx), permissions)
        return result

    def _call_route(self, method: str, params: Params, permissions: Permissions) -> Any:
        return self._dispatcher.call(method, params, permissions, "rest")


def _is_of_sdk(application: ApplicationAccess) -> bool:
    return type(application).sdk_prefix is not ApplicationAccess.sdk_prefix


def _height(head: Head) -> str:
    names = ("HTTP_X_COSMOS_BLOCK_HEIGHT", "HTTP_GRPC_METADATA_X_COSMOS_BLOCK_HEIGHT")
    return next((head.fields[name] for name in names if head.fields.get(name)), "")


_SLASHES = re.compile("//+")


class RestMiddleware:
    """WSGI middleware that serves only an app's REST gateway, at ``/``; ``rule`` is one of the
    gateway's URL rules."""

    def __init__(self, app: Flask, rule: str) -> None:
        self._app, self._base = app, rule.rpartition("/")[0].rpartition("/")[0]
        mount, rules = f"{self._base}/", app.url_map.iter_rules()
        self._prefixes = {
            each.rule.removeprefix(mount).partition("/")[0]
            for each in rules
            if VARIABLE in each.arguments and each.rule.startswith(mount)
        }

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Handle a request; the gateway also responds to paths that it does not have."""
        # Replace the double slash that comes from a base URL with a slash at its end; Flask
        # would redirect it to the app's path.
        path = _SLASHES.sub("/", environ.get("PATH_INFO", ""))
        environ["PATH_INFO"] = self._base + (path if self._is_served(path) else _UNKNOWN)
        return self._app(environ, start_response)

    def _is_served(self, path: str) -> bool:
        """Return true if a URL rule matches the path: it starts with one of the prefixes and
        has no line break."""
        first, _, rest = path.removeprefix("/").partition("/")
        return first in self._prefixes and bool(rest) and "\n" not in rest
