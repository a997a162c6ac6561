"""Apps of a node: its own, and the EVM layer at the root of an address of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from flask import Flask

from ..cosmos.rest.view import UNKNOWN, is_served
from ..extension import NodeRPC
from ..feature import load
from .banner import page_sets
from .wsgi import WSGI


def node_app(folder: Path, settings: Mapping[str, Any], *, pages: Iterable[str] = ()) -> Flask:
    """An app that serves a chain of its own at its root; nothing is opened yet.

    ``pages`` are names of page sets, each at its path.
    Raise :exc:`~flask_noderpc.errors.ConfigurationError`.
    """
    app = Flask("flask_noderpc.cometbft", instance_path=str(folder), static_folder=None)
    NodeRPC(app, **settings)
    known = page_sets()
    for name in pages:
        path = known[name].path.rstrip("/")
        app.register_blueprint(load(known[name].blueprint), url_prefix=path)
    return app


_SLASHES = re.compile("//+")


class RestMiddleware:
    """Shows the gateway of REST of an app at ``/``, and nothing else; ``rule`` is one of its
    rules."""

    def __init__(self, app: WSGI, rule: str) -> None:
        self._app, self._base = app, rule.rpartition("/")[0].rpartition("/")[0]

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request; those for other paths are answered by the gateway, too."""
        # A base URL may end with a slash. Flask would redirect to a path with the prefix.
        path = _SLASHES.sub("/", environ.get("PATH_INFO", ""))
        environ["PATH_INFO"] = self._base + (path if is_served(path) else UNKNOWN)
        return self._app(environ, start_response)


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
