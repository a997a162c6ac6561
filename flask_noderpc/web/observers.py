"""Observers of the calls of a mount: the log of calls, and metrics and spans where their
optional dependencies are installed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from flask import Response, has_request_context, request

from ..backends.base.backend import ChainBackend
from ..errors import ConfigurationError
from ..jsonrpc.context import CallSpan
from ..lru import CacheMemory

log = logging.getLogger("flask_noderpc.calls")


def log_call(*, method: str, seconds: float, outcome: int, transport: str) -> None:
    """Log a call with the values of :data:`~flask_noderpc.signals.rpc_called`.

    Parameters are never logged: they may be transactions or private queries.
    """
    record = {
        "method": method,
        "outcome": outcome,
        "milliseconds": round(seconds * 1000, 3),
        "transport": transport,
        "client": (request.remote_addr if has_request_context() else None) or "-",
    }
    # As text for readers of lines, and as attributes for JSON formatters.
    log.info(" ".join(f"{name}=%s" for name in record), *record.values(), extra=record)


def metrics_page(backend: ChainBackend, memory: CacheMemory) -> Callable[[], Response]:
    """Count the calls and blocks of a backend; return the view of its metrics.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the extra is not installed.
    """
    try:
        from .metrics import count, page
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"NODERPC_METRICS: {error}; pip install 'flask-noderpc[metrics]'"
        ) from None
    count(backend, memory)
    return lambda: page(backend, memory)


def span_starter() -> Callable[[str, str, str, Mapping[str, Any]], CallSpan | None] | None:
    """Return what starts the spans of calls; ``None`` without ``opentelemetry-api``."""
    try:
        from .tracing import start_span
    except ModuleNotFoundError:
        return None
    return start_span
