"""Apps of a node: its own, and one path of it at the root of an address of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from flask import Flask

from ..extension import NodeRPC
from .wsgi import WSGI


def node_app(folder: Path, settings: Mapping[str, Any], *, explorer: bool = False) -> Flask:
    """An app that serves a chain of its own at its root; nothing is opened yet.

    With ``explorer``, its pages are at ``/explorer``.
    Raise :exc:`~flask_noderpc.errors.ConfigurationError`.
    """
    app = Flask("flask_noderpc.cometbft", instance_path=str(folder), static_folder=None)
    NodeRPC(app, **settings)
    if explorer:
        from ..explorer.blueprint import explorer_bp

        app.register_blueprint(explorer_bp)
    return app


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
