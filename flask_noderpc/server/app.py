"""The node's own app, a middleware that serves one of its paths at ``/`` of another address,
and the export of spans, which OpenTelemetry's environment variables configure.

Each process sets up OpenTelemetry itself: the SDK's threads must start after gevent's patches,
and ``opentelemetry-instrument`` would start them before.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from flask import Flask

from ..errors import ConfigurationError
from ..extension import NodeRPC
from ..feature import load, page_sets
from ..installation import install_hint
from .wsgi import WSGI


def node_app(folder: Path, settings: Mapping[str, Any], *, pages: Iterable[str] = ()) -> Flask:
    """Return an app that serves its own chain at its root, without opening the chain.

    ``pages`` are names of page sets to serve. Raise
    :exc:`~flask_noderpc.errors.ConfigurationError`.
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
    """WSGI middleware that serves one path of an app at ``/``, and 404 at others."""

    def __init__(self, app: WSGI, path: str) -> None:
        self._app, self._path = app, path

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Respond to a request."""
        if environ.get("PATH_INFO", "") not in ("", "/"):
            headers = [("Content-Type", "text/plain"), ("Content-Length", "10")]
            start_response("404 Not Found", headers)
            return [_NOT_FOUND]
        environ["PATH_INFO"] = self._path
        return self._app(environ, start_response)


_VARIABLE = "OTEL_TRACES_EXPORTER"
# Entry points of exporters whose name in the variable differs; otlp uses http/protobuf.
_EXPORTERS = {"otlp": "otlp_proto_http"}
_LAST_EXPORT_S = 3.0


def export_spans() -> None:
    """Set the tracer provider of this process, if ``OTEL_TRACES_EXPORTER`` names an exporter.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the exporter is not installed.
    """
    name = os.environ.get(_VARIABLE) or "none"
    if name == "none":
        return
    from importlib.metadata import entry_points

    found = entry_points(group="opentelemetry_traces_exporter", name=_EXPORTERS.get(name, name))
    try:
        (exporter,) = found
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except (ModuleNotFoundError, ValueError):
        raise ConfigurationError(
            f"{_VARIABLE}: the exporter {name!r} is not installed; for otlp and console,"
            f" {install_hint('opentelemetry')}"
        ) from None
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter.load()()))
    trace.set_tracer_provider(provider)


def end_export() -> None:
    """Shut the tracer provider down, which exports the last spans; wait at most 3 seconds."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return
    from opentelemetry import trace

    shutdown = getattr(trace.get_tracer_provider(), "shutdown", None)
    if shutdown is not None:
        # Use a thread, as an unreachable collector would delay the end of the process.
        last = threading.Thread(target=shutdown, daemon=True)
        last.start()
        last.join(_LAST_EXPORT_S)
