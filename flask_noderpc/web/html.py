"""Pages for people at URLs that programs call, and which requests get them."""

from __future__ import annotations

import shlex
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from flask import (
    Response,
    current_app,
    render_template,
    request,
    send_from_directory,
    url_for,
)
from markupsafe import Markup

from .. import jsoncodec
from ..jsonrpc.dispatch import Dispatcher
from .rule_conflicts import has_get
from .views import Views

NODE_ADDRESS = "noderpc.node_address"
"""Key in the WSGI environ that our server sets at the addresses of APIs: scheme and port of the
node's RPC, and the port of the API."""


SHARED_STYLE = "pages.css"
"""Name of the style sheet of all pages."""

_FOLDER = Path(__file__).parent / "static"


def file(name: str) -> Response:
    """Return a static file of the pages."""
    return send_from_directory(_FOLDER, name)


@cache
def _style() -> str:
    return (_FOLDER / SHARED_STYLE).read_text()


@cache
def _policy() -> str:
    digest = b64encode(sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    )


def prefers_html() -> bool:
    """Return true if the client prefers HTML to JSON, as browsers do; programs usually accept
    every type, or do not say."""
    accepted = request.accept_mimetypes
    return accepted.quality("text/html") > accepted.quality("application/json")


def html_page(template: str, **values: Any) -> Response:
    """Return a page at a URL at which programs get another response.

    The page contains its styles, as it may be at an address that serves nothing else.
    """
    html = render_template(template, style=Markup(_style()), **values)
    headers = {
        "Content-Security-Policy": _policy(),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Vary": "Accept",
    }
    return Response(html, headers=headers)


class FirstCall(NamedTuple):
    """Content of the page of an API: a title, a method without parameters for the first
    request, and the method that returns the chain ID."""

    title: str
    method: str
    chain_id: str


class ApiPage:
    """Page for browsers at the URL of an API that only takes JSON-RPC."""

    def __init__(self, first: FirstCall, dispatcher: Dispatcher, views: Views) -> None:
        self._first, self._dispatcher, self._views = first, dispatcher, views

    def page(self) -> Response | None:
        """Return the page if a browser opens the URL, otherwise ``None``."""
        is_visit = request.method == "GET" and not request.query_string and prefers_html()
        if not is_visit or request.content_length or request.headers.get("Transfer-Encoding"):
            return None
        call = {"jsonrpc": "2.0", "id": 1, "method": self._first.method, "params": []}
        found = html_page(
            "noderpc/api.html",
            title=self._first.title,
            url=shlex.quote(
                request.host_url if NODE_ADDRESS in request.environ else request.base_url
            ),
            body=jsoncodec.encode(call).decode(),
            chain_id=self._chain_id(),
            node=_node_url(request.environ),
        )
        # Shared caches must not store what only this reader may see.
        found.headers["Cache-Control"] = "private, no-cache"
        return found

    def _chain_id(self) -> str:
        """Return the chain ID in both notations, or the reason why it is not shown."""
        call = {"jsonrpc": "2.0", "id": 1, "method": self._first.chain_id, "params": []}
        reply = self._dispatcher.post(jsoncodec.encode(call), self._views.permissions())
        answer = jsoncodec.decode(bytes(reply.body))
        if "error" in answer:
            return str(answer["error"].get("message", ""))
        return f"{int(answer['result'], 16)} ({answer['result']})"


def _node_url(environ: Mapping[str, Any]) -> str:
    """Return the URL of the node's index page; empty if it has none, or the client does not
    reach this server directly, so that the node's port may have another number there."""
    endpoint = f"{request.blueprint}.index"
    if not has_get(current_app, endpoint):
        return ""
    path = url_for(endpoint, **(request.view_args or {}))
    if NODE_ADDRESS not in environ:
        return path
    scheme, port, own_port = environ[NODE_ADDRESS]
    host, _, given = request.host.rpartition(":")
    return f"{scheme}://{host}:{port}{path}" if given == str(own_port) else ""
