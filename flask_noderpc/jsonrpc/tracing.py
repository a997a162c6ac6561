"""OpenTelemetry spans of calls, by the semantic conventions of JSON-RPC, version 1.44.

Spans are created if the app or the command ``opentelemetry-instrument`` has set a tracer
provider. A span never has parameters, results or error messages, which may be transactions or
private queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from opentelemetry import trace
from opentelemetry.propagate import extract
from opentelemetry.propagators.textmap import Getter

_SCHEMA = "https://opentelemetry.io/schemas/1.44.0"
# Maximum characters of an unknown method's name, which may be as long as a body.
_MAX_NAME = 100


class _Fields(Getter[Mapping[str, Any]]):
    """Getter of trace headers from fields with CGI names (RFC 3875)."""

    def get(self, carrier: Mapping[str, Any], key: str) -> list[str] | None:
        value = carrier.get("HTTP_" + key.upper().replace("-", "_"))
        return None if value is None else [value]

    def keys(self, carrier: Mapping[str, Any]) -> list[str]:
        names = (name for name in carrier if name.startswith("HTTP_"))
        return [name[5:].lower().replace("_", "-") for name in names]


_FIELDS = _Fields()


class CallSpan:
    """OpenTelemetry span of a call."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def current(self) -> AbstractContextManager[object]:
        """Return a context in which new spans are children of this one."""
        return trace.use_span(self._span, record_exception=False, set_status_on_exception=False)

    def end(self, outcome: int) -> None:
        """End the span with 0 or the code of the call's error."""
        if outcome:
            self._span.set_attributes(
                {"rpc.response.status_code": str(outcome), "error.type": str(outcome)}
            )
            self._span.set_status(trace.StatusCode.ERROR)
        self._span.end()


@lru_cache(1)
def _tracer(provider: trace.TracerProvider) -> trace.Tracer:
    return provider.get_tracer("flask_noderpc", schema_url=_SCHEMA)


def start_span(
    method: str, original: str, transport: str, fields: Mapping[str, Any]
) -> CallSpan:
    """Start the span of a call with the current tracer provider.

    ``method`` is empty if the method does not exist, and ``original`` is the name that the
    client sent. The parent is the current span, such as the request's in an instrumented Flask
    app, else the span that the header ``fields`` name.
    """
    attributes = {
        "rpc.system.name": "jsonrpc",
        "rpc.method": method or "_OTHER",
        "noderpc.transport": transport,
    }
    if not method:
        attributes["rpc.method_original"] = original[:_MAX_NAME]
    if transport not in ("get", "rest"):
        attributes["jsonrpc.protocol.version"] = "2.0"
    has_parent = trace.get_current_span().get_span_context().is_valid
    return CallSpan(
        _tracer(trace.get_tracer_provider()).start_span(
            method or "jsonrpc",
            None if has_parent else extract(fields, getter=_FIELDS),
            trace.SpanKind.SERVER,
            attributes,
        )
    )
