"""Numbers for Prometheus, counted from the signals of :mod:`flask_noderpc.signals`.

They are in the process's own registry, so that a host that shows that has them too. With
``PROMETHEUS_MULTIPROC_DIR`` they are those of all processes together.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from flask import Response, request
from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector

from .. import signals
from ..backend.base import ChainBackend
from ..errors import NodeRPCError

_CALLS = Counter(
    "noderpc_calls", "Calls that were answered.", ["method", "outcome", "transport"]
)
_SECONDS = Histogram("noderpc_call_seconds", "Seconds that they took.", ["method", "transport"])
_WEBSOCKETS = Gauge("noderpc_websockets", "Open websockets.", multiprocess_mode="livesum")
_SUBSCRIPTIONS = Gauge(
    "noderpc_subscriptions", "Subscriptions of websockets.", multiprocess_mode="livesum"
)
_WAITING = Gauge(
    "noderpc_waiting_calls", "Calls that wait for a block.", multiprocess_mode="livesum"
)
_HEIGHT = Gauge(
    "noderpc_height", "The latest height.", ["chain"], multiprocess_mode="mostrecent"
)


def _called(
    sender: object, *, method: str, seconds: float, outcome: int, transport: str
) -> None:
    _CALLS.labels(method, outcome, transport).inc()
    _SECONDS.labels(method, transport).observe(seconds)


def _one_more_websocket(sender: object) -> None:
    _WEBSOCKETS.inc()


def _one_websocket_less(sender: object) -> None:
    _WEBSOCKETS.dec()


def _one_more_subscription(sender: object) -> None:
    _SUBSCRIPTIONS.inc()


def _one_subscription_less(sender: object, *, reason: str) -> None:
    _SUBSCRIPTIONS.dec()


def _one_more_waits(sender: object) -> None:
    _WAITING.inc()


def _one_waits_less(sender: object) -> None:
    _WAITING.dec()


def count(backend: ChainBackend) -> None:
    """Count what happens from now on; once for each backend, however many mounts it has."""
    for signal, receiver in (
        (signals.rpc_called, _called),
        (signals.websocket_opened, _one_more_websocket),
        (signals.websocket_closed, _one_websocket_less),
        (signals.subscription_opened, _one_more_subscription),
        (signals.subscription_closed, _one_subscription_less),
        (signals.wait_began, _one_more_waits),
        (signals.wait_ended, _one_waits_less),
    ):
        signal.connect(receiver, sender=backend)


def page(backend: ChainBackend) -> Response:
    """What Prometheus reads; without the height where the store can't be read."""
    with suppress(NodeRPCError):
        backend.start()
        _HEIGHT.labels(backend.genesis().chain_id).set(backend.latest_height())
    registry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
    encode, content_type = _encoder(request.headers.get("Accept", ""))
    return Response(encode(registry), headers={"Vary": "Accept"}, content_type=content_type)


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    """What a scraper asks for, OpenMetrics or Prometheus's own text."""
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):
        # Of a version that is no number.
        return choose_encoder("")
