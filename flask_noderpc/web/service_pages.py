"""Pages beside the RPC: readiness, OpenAPI and metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from flask import Response, request, url_for

from .. import jsoncodec
from ..backends.base.backend import ChainBackend
from ..jsonrpc.describe import openapi
from ..jsonrpc.failures import to_rpc_error
from ..jsonrpc.route import Route
from ..wire.dialect import Dialect

Page = Callable[[], Response]


def service_pages(
    start: Callable[[], None],
    backend: ChainBackend,
    routes: Callable[[], Sequence[Route[Any]]],
    dialect: Dialect,
    metrics: Page | None,
) -> dict[str, tuple[str, Page]]:
    """The pages of a mount by the names of their endpoints: rule and view."""

    # Each place where the mount is seen has one; a host's prefix may have variables.
    @lru_cache(maxsize=8)
    def described(base: str) -> bytes:
        return jsoncodec.encode(openapi(routes(), dialect, base))

    pages: dict[str, tuple[str, Page]] = {
        "readyz": ("/readyz", lambda: _readiness(start, backend)),
        "openapi": ("/openapi.json", lambda: _description(described)),
    }
    return pages | ({"metrics": ("/metrics", metrics)} if metrics else {})


def _readiness(start: Callable[[], None], backend: ChainBackend) -> Response:
    """The page at ``GET /readyz``; in one line, and without what is for the log alone."""
    try:
        start()
        backend.check_ready()
    except Exception as error:
        detail = to_rpc_error(error).text_with_hint
        return Response(f"{detail}\n", HTTPStatus.SERVICE_UNAVAILABLE, mimetype="text/plain")
    return Response("ready\n", mimetype="text/plain")


def _description(described: Callable[[str], bytes]) -> Response:
    """The page at ``GET /openapi.json``, whose paths stand beside it."""
    own = url_for(".openapi", **(request.view_args or {}))
    document = described(own.removesuffix("/openapi.json"))
    return Response(document, mimetype="application/json")
