"""Apps of a node: its own, and one path of it at the root of an address of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from flask import Flask

from ..errors import ConfigurationError
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
        try:
            blueprint = load(known[name].blueprint)
        except ModuleNotFoundError as error:
            raise ConfigurationError(f"--{name}: {error}") from None
        app.register_blueprint(blueprint, url_prefix=path)
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
