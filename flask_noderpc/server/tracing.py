"""Export of spans by ``noderpc start``, as OpenTelemetry's own environment variables say.

The SDK has threads, which must begin after gevent has patched them: so each process sets it up
by itself, and not ``opentelemetry-instrument``, which comes before.
"""

from __future__ import annotations

import os
import sys
import threading
from importlib.metadata import entry_points

from ..errors import ConfigurationError

_VARIABLE = "OTEL_TRACES_EXPORTER"
# OpenTelemetry: SDK configuration. The protocol by default is http/protobuf.
_EXPORTERS = {"otlp": "otlp_proto_http"}
_LAST_EXPORT_S = 3.0


def export_spans() -> None:
    """Set the tracer provider of this process, if ``OTEL_TRACES_EXPORTER`` names an exporter.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if that is not installed.
    """
    name = os.environ.get(_VARIABLE) or "none"
    if name == "none":
        return
    found = entry_points(group="opentelemetry_traces_exporter", name=_EXPORTERS.get(name, name))
    try:
        (exporter,) = found
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except (ModuleNotFoundError, ValueError):
        raise ConfigurationError(
            f"{_VARIABLE}={name} is not installed: pip install 'flask-noderpc[opentelemetry]',"
            " which has otlp and console"
        ) from None
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter.load()()))
    trace.set_tracer_provider(provider)


def end_export() -> None:
    """Export the last spans, also those of an app's own provider; for some seconds at most."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return
    from opentelemetry import trace

    shutdown = getattr(trace.get_tracer_provider(), "shutdown", None)
    if shutdown is not None:
        # A collector that is away would hold up the end of the node.
        last = threading.Thread(target=shutdown, daemon=True)
        last.start()
        last.join(_LAST_EXPORT_S)
