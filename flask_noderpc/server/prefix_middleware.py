"""The EVM layer at the root of an address of its own, as clients of Ethereum look for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .server import WSGI

_NOT_FOUND = b"not found\n"


class PrefixMiddleware:
    """Shows one path of an app at ``/``, and nothing else of it."""

    def __init__(self, app: WSGI, path: str) -> None:
        self._app, self._path = app, path

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request."""
        if environ.get("PATH_INFO", "") not in ("", "/"):
            headers = [("Content-Type", "text/plain"), ("Content-Length", "10")]
            start_response("404 Not Found", headers)
            return [_NOT_FOUND]
        environ["PATH_INFO"] = self._path
        return self._app(environ, start_response)
