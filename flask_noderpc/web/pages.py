"""Pages in addition to the RPC: the index at ``GET /``, OpenAPI and metrics.

The index does not link routes that change state, as crawlers and prefetching browsers follow
links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

from flask import Response, current_app, request, url_for
from markupsafe import escape
from werkzeug.routing import BuildError

from .. import jsoncodec
from ..backends.base.backend import ChainBackend
from ..errors import ConfigurationError, NodeRPCError
from ..installation import install_hint
from ..jsonrpc.describe import DISCOVER, examples_of, openapi
from ..jsonrpc.guard import STATUS
from ..jsonrpc.params import Params, specs
from ..jsonrpc.reply import to_rpc_error
from ..jsonrpc.route import Route, RouteTable
from ..jsonrpc.session import WEBSOCKET_METHODS
from ..lru import CacheMemory
from ..wire.dialect import Dialect
from .html import file, html_page, prefers_html
from .readiness import Readiness
from .rule_conflicts import has_get
from .try_page import FILES, TryPage

Page = Callable[[], Response]

EXPLORERS = "noderpc_explorers"
"""Key in ``app.extensions``: names of mounts, by the names of the explorer blueprints that
show them."""


class PageRule(NamedTuple):
    """A URL rule for a page, below the mount's ``url_prefix``."""

    rule: str
    endpoint: str
    page: Page
    method: str = ""
    """RPC method that a client must be allowed to call to read the page; empty if everyone may
    read it."""


def service_pages(
    readiness: Readiness,
    described: Callable[[str], bytes],
    forms: TryPage,
    metrics: Page | None,
) -> dict[str, list[PageRule]]:
    """Return the rules of a mount's pages, by the name that NODERPC_EXCLUDE_ROUTES has for
    them.

    ``described`` returns the OpenAPI document for a base path.
    """
    description = partial(_description, described)
    pages = {
        "readyz": [PageRule("/readyz", "readyz", readiness.page)],
        "openapi": [PageRule("/openapi.json", "openapi", description, DISCOVER)],
        "try": [PageRule("/try", "try", forms.page, STATUS), *_files()],
    }
    if metrics:
        pages["metrics"] = [PageRule("/metrics", "metrics", metrics, "metrics")]
    return pages


def _files() -> Iterator[PageRule]:
    for endpoint, name in FILES.items():
        yield PageRule(f"/{name}", endpoint, partial(file, name))


def descriptions(
    routes: Callable[[], Sequence[Route[Any]]], dialect: Dialect
) -> Callable[[str], bytes]:
    """Return a function that returns the encoded OpenAPI document for a base path."""

    # A url_prefix may have variables, so a mount may have several base paths.
    @lru_cache(maxsize=8)
    def described(base: str) -> bytes:
        return jsoncodec.encode(openapi(routes(), dialect, base))

    return described


def _description(described: Callable[[str], bytes]) -> Response:
    """Return the page at ``GET /openapi.json`` for the base path of the request."""
    return Response(described(base_path()), mimetype="application/json")


def base_path() -> str:
    """Return the path of the current request's mount as the client sees it, without a slash at
    the end."""
    return url_for(".rpc", **(request.view_args or {})).rstrip("/")


@dataclass(frozen=True, slots=True)
class Link:
    """A route on the index page."""

    name: str
    doc: str
    parameters: str
    href: str | None
    """URL with example parameters; ``None`` if the route changes state, or there is no
    example."""
    note: str = ""
    """Reason for ``href`` being ``None``."""


class IndexPage:
    """Index page of one mount; it does not list the routes in ``excluded``."""

    def __init__(
        self,
        routes: RouteTable,
        backend: ChainBackend,
        start: Callable[[], None],
        dialect: Dialect,
        excluded: tuple[str, ...],
    ) -> None:
        self._routes = routes
        self._backend = backend
        self._start = start
        self._dialect = dialect
        self._excluded = excluded

    def page(self) -> Response:
        """Return the page: a table, or CometBFT's plain list of links if the dialect has it and
        the client is not a browser."""
        left_out = self._left_out()
        if self._dialect.http.plain_index and not prefers_html():
            base = request.host + url_for(".rpc", **(request.view_args or {}))
            return plain_index(self._routes, base, left_out, self._dialect.ignored)
        try:
            self._start()
            return index_page(self._routes, self._backend, left_out)
        except NodeRPCError as error:
            trouble = to_rpc_error(error).text_with_hint
            return index_page(self._routes, None, left_out, trouble)

    def _left_out(self) -> tuple[str, ...]:
        """Return the names of routes whose path a setting or a rule of the app has left to the
        app."""
        names = [route.name for route in self._routes if route.name not in self._excluded]
        taken = (
            name for name in names if not has_get(current_app, f"{request.blueprint}.{name}")
        )
        return (*self._excluded, *taken)

    def described(self) -> list[Route[Any]]:
        """Return the routes that the mount serves by GET."""
        left_out = self._left_out()
        return [route for route in self._routes if route.name not in left_out]


def index_page(
    routes: RouteTable,
    backend: ChainBackend | None,
    left_out: tuple[str, ...],
    trouble: str = "",
) -> Response:
    """Return the page; if ``backend`` is ``None``, there are no examples, and the page shows
    ``trouble``, the reason."""
    examples = examples_of(backend) if backend is not None else dict.fromkeys(routes.by_name())
    links = [_link(route, examples) for route in routes if route.name not in left_out]
    return html_page(
        "noderpc/index.html",
        links=links,
        trouble=trouble,
        explorer=_explorer(),
        forms=has_get(current_app, f"{request.blueprint}.try"),
    )


def _explorer() -> str:
    """Return the path of the explorer that shows the current mount; empty if there is no such
    explorer."""
    for name, mount in current_app.extensions.get(EXPLORERS, {}).items():
        if mount == request.blueprint:
            with suppress(BuildError):
                return url_for(f"{name}.overview")
    return ""


def plain_index(
    routes: RouteTable,
    base: str,
    left_out: tuple[str, ...],
    ignored: Mapping[str, tuple[str, ...]],
) -> Response:
    """Return CometBFT's index page: one line with a link for each method, including methods of
    the websocket.

    ``base`` is the host and path of the mount, with a slash at the end; ``ignored`` are
    additional parameters by method, which have no effect.
    """
    # CometBFT: rpc/jsonrpc/server/http_json_handler.go; its first list is always empty.
    params = {route.name: route.params for route in routes} | WEBSOCKET_METHODS
    links = (
        _plain_link(f"//{base}{name}?", params[name], ignored.get(name, ()))
        for name in sorted(params)
        if name not in left_out
    )
    page = (
        "<html><body><br>Available endpoints:<br><br>Endpoints that require arguments:<br>"
        + "".join(links)
        + "</body></html>"
    )
    return Response(page, headers={"Content-Type": "text/html"})


def _plain_link(start: str, params: type[Params], ignored: tuple[str, ...]) -> str:
    names = (*(spec.wire for spec in specs(params)), *ignored)
    link = str(escape(start)) + "&".join(f"{name}=_" for name in names)
    return f'<a href="{link}">{link}</a></br>'


def _link(route: Route[Any], examples: Mapping[str, dict[str, Any] | None]) -> Link:
    found = specs(route.params)
    names = ", ".join(spec.wire for spec in found)
    if route.writes:
        return Link(route.name, route.doc, names, None, "changes state")
    # Routes of the app have no examples, so they are linked only without required parameters.
    needs_more = any(spec.required for spec in found)
    values = examples.get(route.name, None if needs_more else {})
    if values is None:
        return Link(route.name, route.doc, names, None, "nothing to show")
    # Add the values of variables in the url_prefix, which links also need.
    values = {**(request.view_args or {}), **values}
    return Link(
        route.name, route.doc, names, url_for(f"{request.blueprint}.{route.name}", **values)
    )


def metrics_page(backend: ChainBackend, memory: CacheMemory) -> Callable[[], Response]:
    """Start counting the calls and blocks of a backend; return the view of its metrics page.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the extra ``metrics`` is not
    installed.
    """
    try:
        from .metrics import count, page
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"NODERPC_METRICS: {error}; {install_hint('metrics')}"
        ) from None
    count(backend, memory)
    return lambda: page(backend, memory)
