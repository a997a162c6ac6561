"""Parts of a mount that need an optional dependency, imported when they are enabled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flask import Response

from .backends.base.backend import ChainBackend
from .errors import ConfigurationError
from .jsonrpc.context import CallSpan
from .lru import CacheMemory


def metrics_page(backend: ChainBackend, memory: CacheMemory) -> Callable[[], Response]:
    """Count the calls and blocks of a backend; return the view of its metrics.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the extra is not installed.
    """
    try:
        from .web.metrics import count, page
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"NODERPC_METRICS: {error}; pip install 'flask-noderpc[metrics]'"
        ) from None
    count(backend, memory)
    return lambda: page(backend, memory)


def span_starter() -> Callable[[str, str, str, Mapping[str, Any]], CallSpan | None] | None:
    """Return what starts the spans of calls; ``None`` without ``opentelemetry-api``."""
    try:
        from .web.tracing import start_span
    except ModuleNotFoundError:
        return None
    return start_span
