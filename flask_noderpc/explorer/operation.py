"""Explorer pages about the node: metrics, forms for transactions and queries, and events."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flask import g, render_template

from ..backends.base.backend import ChainBackend
from ..chain.embedded import EmbeddedChain
from .node import Node


@dataclass(slots=True)
class Calls:
    """Statistics of a method's calls since the start of the node's processes."""

    method: str
    count: float = 0
    errors: float = 0
    seconds: float = 0
    buckets: dict[float, float] = field(default_factory=lambda: defaultdict(float))
    """Number of calls that took at most this time, by seconds."""

    @property
    def mean_ms(self) -> float:
        """Mean duration of a call in milliseconds."""
        return 1000 * self.seconds / self.count if self.count else 0

    def within_ms(self, share: float) -> float:
        """Return the upper limit in milliseconds of the histogram bucket up to which this
        share of the calls falls."""
        for limit, count in sorted(self.buckets.items()):
            if count >= share * self.count:
                return 1000 * limit
        return float("inf")


def metrics() -> str:
    """Page with numbers and durations of calls, from the node's metrics."""
    node: Node = g.node
    found = node.metrics()
    calls = None if found is None else sorted(_calls(found), key=lambda each: -each.count)
    return render_template(
        "noderpc_explorer/metrics.html",
        calls=calls,
        total=sum(each.count for each in calls or ()),
        seconds=sum(each.seconds for each in calls or ()),
        now=time.monotonic(),
    )


def _calls(text: str) -> list[Calls]:
    # Import this here: the package is certainly installed if metrics are served.
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, Calls] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples if family.name.startswith("noderpc_call") else ():
            method = sample.labels["method"]
            _add(found.setdefault(method, Calls(method)), sample)
    return list(found.values())


def _add(calls: Calls, sample: Any) -> None:
    match sample.name:
        case "noderpc_calls_total" if sample.labels["outcome"] != "0":
            calls.errors += sample.value
        case "noderpc_call_seconds_count":
            calls.count += sample.value
        case "noderpc_call_seconds_sum":
            calls.seconds += sample.value
        case "noderpc_call_seconds_bucket":
            calls.buckets[float(sample.labels["le"])] += sample.value


def send() -> str:
    """Page with forms to send a transaction and to query the application."""
    node: Node = g.node
    return render_template(
        "noderpc_explorer/send.html",
        refusal=node.refusal("broadcast_tx_sync"),
        query_refusal=node.refusal("abci_query"),
        application=_application(node),
        faucet=_faucet(node),
    )


def _application(node: Node) -> str:
    """Return the name of the application of an embedded chain, or an empty string."""

    def name(backend: ChainBackend) -> str:
        abci = backend.store.abci if isinstance(backend, EmbeddedChain) else None
        return abci.name if abci else ""

    return node.read("status", name)


def _faucet(node: Node) -> str:
    """Return the application whose development accounts fund others, or an empty string.

    The node decides at the call whether a caller may sign, so the form may be refused.
    """
    funds = {"bank": node.serves("dev_faucet"), "evm": node.has_evm}
    application = _application(node) if node.settings.dev else ""
    return application if funds.get(application) else ""


def monitor() -> str:
    """Page that shows the websocket events that match a query."""
    return render_template("noderpc_explorer/monitor.html")


VIEWS: dict[str, tuple[Callable[..., Any], str]] = {
    "/metrics": (metrics, "metrics"),
    "/send": (send, "status"),
    "/monitor": (monitor, "status"),
}
