"""``explorer_bp``: a Flask blueprint with the pages of the explorer."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

from flask import Blueprint, Flask, Response, current_app, g, render_template, request, url_for
from flask.blueprints import BlueprintSetupState

from ..errors import (
    Busy,
    ConfigurationError,
    Forbidden,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    NodeRPCError,
    NotAuthorized,
    NotFound,
    NotSupported,
    Refused,
    SearchTooCostly,
    UpstreamError,
)
from ..jsonrpc.reply import to_rpc_error
from ..web.html import SHARED_STYLE, file
from ..web.pages import EXPLORERS
from . import accounts, chain, charts, contract, finding, operation, text, txs, validators
from .node import Node, tx_line

explorer_bp = Blueprint(
    "explorer",
    __name__,
    url_prefix="/explorer",
    template_folder="templates",
    static_folder="static",
)
"""Pages of the explorer; register it on the app that has ``noderpc_bp``.

``register_blueprint(explorer_bp, mount="mirror", name="mirror_explorer", url_prefix="/…")``
shows the chain of another mount.
"""

explorer_bp.add_url_rule(f"/static/{SHARED_STYLE}", "pages_style", lambda: file(SHARED_STYLE))
_METHODS: dict[str, str] = {}
"""RPC methods by endpoint: a page's reader must be allowed to call its method."""


def _add_pages() -> None:
    modules = (chain, txs, accounts, contract, finding, charts, validators, operation)
    # Some pages take the ABI of a contract in a form, as it is too long for a URL.
    rules = [(module.VIEWS, "GET") for module in modules]
    for views, http_method in (*rules, (txs.FORMS, "POST"), (contract.FORMS, "POST")):
        for rule, (view, method) in views.items():
            explorer_bp.add_url_rule(rule, view.__name__, view, methods=[http_method])
            _METHODS[view.__name__] = method


_add_pages()


@explorer_bp.route("/<path:missing>")
def _no_page(missing: str) -> str:
    raise NotFound(f"the explorer has no page /{missing[:80]}")


_METHODS[_no_page.__name__] = "status"


def _remember_mount(state: BlueprintSetupState) -> None:
    if "<" in (state.url_prefix or ""):
        raise ConfigurationError(
            f"explorer_bp: expected a url_prefix without variables, got {state.url_prefix!r};"
            " register it once for each value"
        )
    name = f"{state.name_prefix}.{state.name}".lstrip(".")
    app: Flask = state.app  # type: ignore[assignment]  # a blueprint is Flask's for a while
    app.extensions.setdefault(EXPLORERS, {})[name] = state.options.get("mount", "noderpc")


explorer_bp.record(_remember_mount)


@explorer_bp.before_request
def _find_node() -> Response | None:
    mounts: dict[str, str] = current_app.extensions[EXPLORERS]
    g.node = node = Node(mounts[str(request.blueprint)])
    refusal = node.refuse_host()
    method = _METHODS.get((request.endpoint or "").rpartition(".")[2])
    if refusal is None and method:
        node.check(method)
    return refusal


# Hosts that are safe to copy into the Content-Security-Policy.
_HOST = re.compile(r"[\w.-]+(:\d+)?|\[[\da-fA-F:.]+\](:\d+)?", re.ASCII)


@explorer_bp.after_request
def _add_headers(response: Response) -> Response:
    sockets = f" ws://{request.host} wss://{request.host}"
    # List the websocket URLs, as 'self' does not include them in older browsers.
    connect = "'self'" + (sockets if _HOST.fullmatch(request.host) else "")
    response.headers["Content-Security-Policy"] = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        f" connect-src {connect}; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    # Shared caches must not store a page that only this reader may see.
    response.headers.setdefault("Cache-Control", "private, no-cache")
    return response


@explorer_bp.context_processor
def _names() -> dict[str, Any]:
    return {
        "node": g.node,
        "url": lambda view, **values: url_for(f".{view}", **values),
        "text": text,
        "tx_line": tx_line,
        "whole": "whole" in request.args,
        "query": request.args.get("q", ""),
    }


_STATUSES = {
    NotFound: HTTPStatus.NOT_FOUND,
    MethodNotFound: HTTPStatus.NOT_FOUND,
    NotSupported: HTTPStatus.NOT_IMPLEMENTED,
    Forbidden: HTTPStatus.FORBIDDEN,
    InvalidParams: HTTPStatus.BAD_REQUEST,
    InvalidRequest: HTTPStatus.BAD_REQUEST,
    Refused: HTTPStatus.BAD_REQUEST,
    SearchTooCostly: HTTPStatus.SERVICE_UNAVAILABLE,
    Busy: HTTPStatus.SERVICE_UNAVAILABLE,
    UpstreamError: HTTPStatus.BAD_GATEWAY,
}


@explorer_bp.errorhandler(NodeRPCError)
def _show_error(error: NodeRPCError) -> Response:
    if "node" not in g:
        # Raise the error of a missing mount, which is a mistake of the app.
        raise error
    shown = to_rpc_error(error)
    status: int = HTTPStatus.INTERNAL_SERVER_ERROR
    for kind, each in _STATUSES.items():
        if isinstance(error, kind):
            status = each
            break
    headers = {}
    if isinstance(error, NotAuthorized):
        status, headers = error.status, error.headers
    page = render_template(
        "noderpc_explorer/error.html",
        title=HTTPStatus(status).phrase,
        reason=shown.text or shown.message,
        hint=shown.hint,
    )
    return Response(page, status, headers)
